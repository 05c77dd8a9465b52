import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Variables,
  initializationOptions,
  reaction,
  readSettings,
  serverSettings,
  substitute,
  wanted,
} from "../../src/settings";
import manifest from "../../package.json" with { type: "json" };

const VARIABLES: Variables = {
  workspaceFolder: "/work space/a",
  workspaceFolders: { a: "/work space/a", b: "/b" },
  userHome: "/home/me",
  env: { CONDA_PREFIX: "/opt/conda" },
};

function read(values: Record<string, unknown> = {}) {
  return readSettings((key) => values[key], VARIABLES);
}

void test("what is not set has the default that the manifest shows", () => {
  const defaults = read() as unknown as Record<string, unknown>;
  const shown = Object.entries(manifest.contributes.configuration.properties);
  for (const [name, property] of shown.filter(([one]) => one !== "torchmemlint.trace.server")) {
    assert.deepEqual(defaults[name.replace("torchmemlint.", "")], property.default, name);
  }
  assert.equal(Object.keys(defaults).length, shown.length - 1);
});

void test("every value that the manifest allows is taken as it is", () => {
  for (const [name, property] of Object.entries(manifest.contributes.configuration.properties)) {
    const key = name.replace("torchmemlint.", "");
    for (const value of key !== "trace.server" && "enum" in property ? property.enum : []) {
      assert.equal((read({ [key]: value }) as unknown as Record<string, unknown>)[key], value);
    }
  }
});

void test("what is none of the allowed values counts as not set", () => {
  const settings = read({ run: "always", enable: "yes", logLevel: 3, select: [1, "TML1", " ", null], ignore: {} });
  assert.equal(settings.run, "onType");
  assert.equal(settings.enable, true);
  assert.equal(settings.logLevel, "info");
  assert.deepEqual(settings.select, ["TML1"]);
  assert.deepEqual(settings.ignore, []);
});

void test("a single text is a list of one", () => {
  assert.deepEqual(read({ path: "~/bin/torchmemlint" }).path, ["/home/me/bin/torchmemlint"]);
});

void test("variables are replaced in paths, and only there", () => {
  const settings = read({
    path: ["${workspaceFolder}/.venv/bin/torchmemlint", "${workspaceFolder:b}/x"],
    interpreter: ["${env:CONDA_PREFIX}/bin/python"],
    configuration: "~/torchmemlint.toml",
    select: ["${workspaceFolder}"],
  });
  assert.deepEqual(settings.path, ["/work space/a/.venv/bin/torchmemlint", "/b/x"]);
  assert.deepEqual(settings.interpreter, ["/opt/conda/bin/python"]);
  assert.equal(settings.configuration, "/home/me/torchmemlint.toml");
  assert.deepEqual(settings.select, ["${workspaceFolder}"]);
});

void test("a variable that is not known stays, one of the environment that is not set is empty", () => {
  assert.equal(substitute("${command:x}/a", VARIABLES), "${command:x}/a");
  assert.equal(substitute("${workspaceFolder}/a", { ...VARIABLES, workspaceFolder: null }), "${workspaceFolder}/a");
  assert.equal(substitute("${env:NOTHING}/a", VARIABLES), "/a");
  assert.equal(substitute("~other/a", VARIABLES), "~other/a");
});

void test("an empty path of a configuration is none", () => {
  assert.equal(read({ configuration: "" }).configuration, null);
});

void test("a confidence that there is not is none", () => {
  assert.equal(read({ confidence: "possible" }).confidence, "possible");
  assert.equal(read({ confidence: "sure" }).confidence, null);
  assert.equal(read().confidence, null);
});

void test("the server is told the settings of each folder, and nothing about where it lies", () => {
  const common = read({ path: ["/x"], select: ["TML1"] });
  const folder = read({ ignore: ["TML301"], run: "onSave" });
  const options = initializationOptions(common, [{ uri: "file:///a", settings: folder }]);
  assert.deepEqual(options.settings, serverSettings(common));
  assert.deepEqual(Object.keys(options.settings).sort(), [
    "codeLens",
    "confidence",
    "configuration",
    "enable",
    "extendSelect",
    "fixAll",
    "ignore",
    "logLevel",
    "run",
    "select",
    "showSyntaxErrors",
    "workspaceDiagnostics",
  ]);
  assert.deepEqual(options.workspaces, [{ workspace: "file:///a", ...serverSettings(folder) }]);
});

void test("it runs as long as one folder wants it", () => {
  const on = { settings: read() };
  const off = { settings: read({ enable: false }) };
  assert.equal(wanted(off.settings, [on, off]), true);
  assert.equal(wanted(on.settings, [off, off]), false);
  assert.equal(wanted(on.settings, []), true);
  assert.equal(wanted(off.settings, []), false);
});

void test("a change of where the server lies starts it anew, others are told to it", () => {
  const after = (changed: string) => reaction((setting) => setting === changed);
  assert.equal(after("torchmemlint.path"), "restart");
  assert.equal(after("torchmemlint.interpreter"), "restart");
  assert.equal(after("torchmemlint.importStrategy"), "restart");
  assert.equal(after("torchmemlint.logLevel"), "restart");
  assert.equal(after("torchmemlint.trace.server"), "nothing");
  assert.equal(after("editor.fontSize"), "nothing");
  for (const key of Object.keys(serverSettings(read())).filter((one) => one !== "logLevel")) {
    assert.equal(after(`torchmemlint.${key}`), "tell", key);
  }
});

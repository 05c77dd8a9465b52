import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Bundle,
  type Interpreter,
  type Machine,
  type Outcome,
  type Wishes,
  TAKEN,
  complaint,
  findServer,
  fits,
  summary,
  target,
  which,
} from "../../src/discovery";

/** A program that answers as torchmemlint does. */
function torchmemlint(version = "0.1.0", server: Partial<Outcome> = {}): Program {
  const answer = { status: 0, stdout: `torchmemlint ${version} (pygls 2.1.1)\n`, stderr: "", ...server };
  return (args) => (args[0] === "--version" ? { status: 0, stdout: `torchmemlint ${version}\n`, stderr: "" } : answer);
}

/** An interpreter that answers as the probe does. */
function python(about: Partial<Interpreter> = {}): Program {
  const whole: Interpreter = {
    version: [3, 12, 1],
    implementation: "cpython",
    freeThreaded: false,
    executable: "/usr/bin/python3",
    torchmemlint: null,
    server: false,
    pygls: null,
    ...about,
  };
  return (args) => ({ status: args[0]?.endsWith("probe.py") ? 0 : 2, stdout: JSON.stringify(whole), stderr: "" });
}

const INSTALLED = { torchmemlint: "0.1.0", server: true, pygls: "2.1.1" };

type Program = (args: readonly string[]) => Outcome;

function machine(programs: Record<string, Program>, more: Partial<Machine> = {}): Machine & { ran: string[] } {
  const ran: string[] = [];
  return {
    ran,
    platform: "linux",
    arch: "x64",
    musl: false,
    env: { PATH: "/usr/local/bin:/usr/bin" },
    isFile: (path) => Promise.resolve(path in programs),
    run: (command, args) => {
      ran.push(command);
      const program = programs[command];
      return Promise.resolve(program?.(args) ?? { status: null, stdout: "", stderr: "ENOENT" });
    },
    ...more,
  };
}

const BUNDLE: Bundle = { version: "0.1.0", target: "linux-x64", pythons: ["3.10", "3.11", "3.12"] };

function wishes(more: Partial<Wishes> = {}): Wishes {
  return { path: [], importStrategy: "fromEnvironment", interpreters: [], bundled: "/ext/bundled", bundle: BUNDLE, ...more };
}

const chosen = (path: string) => ({ path, from: "the Python extension" });

void test("the setting goes before all others, and nothing else is run", async () => {
  const here = machine({
    "/opt/torchmemlint": torchmemlint("0.9.0"),
    "/venv/bin/python": python(INSTALLED),
    "/usr/bin/torchmemlint": torchmemlint(),
  });
  const { server, attempts } = await findServer(
    wishes({ path: ["/gone", "/opt/torchmemlint"], interpreters: [chosen("/venv/bin/python")] }),
    here,
  );
  assert.deepEqual(server, {
    source: "setting",
    command: "/opt/torchmemlint",
    args: ["server"],
    version: "0.9.0",
    location: "/opt/torchmemlint",
  });
  assert.deepEqual(new Set(here.ran), new Set(["/opt/torchmemlint"]));
  assert.deepEqual(
    attempts.map(({ outcome }) => outcome),
    ["does not exist", TAKEN],
  );
});

void test("the chosen interpreter goes before the PATH, and runs without the project's folder on its path", async () => {
  const here = machine({ "/venv/bin/python": python(INSTALLED), "/usr/bin/torchmemlint": torchmemlint() });
  const { server } = await findServer(wishes({ interpreters: [chosen("/venv/bin/python")] }), here);
  assert.equal(server?.source, "environment");
  assert.equal(server.command, "/venv/bin/python");
  assert.deepEqual(server.args, ["/ext/bundled/run.py", "server"]);
});

void test("the PATH goes before the bundled copy", async () => {
  const here = machine({ "/usr/bin/torchmemlint": torchmemlint(), "/usr/bin/python3": python() });
  const { server } = await findServer(wishes(), here);
  assert.equal(server?.source, "PATH");
});

void test("useBundled passes over the environment and the PATH, not over the setting", async () => {
  const programs = {
    "/venv/bin/python": python(INSTALLED),
    "/usr/bin/torchmemlint": torchmemlint(),
    "/opt/torchmemlint": torchmemlint(),
  };
  const wanted = wishes({ importStrategy: "useBundled", interpreters: [chosen("/venv/bin/python")] });
  const { server } = await findServer(wanted, machine(programs));
  assert.equal(server?.source, "bundled");
  assert.deepEqual(server.args, ["/ext/bundled/run.py", "--libs", "server"]);
  const named = await findServer({ ...wanted, path: ["/opt/torchmemlint"] }, machine(programs));
  assert.equal(named.server?.source, "setting");
});

void test("the bundled copy runs with the first interpreter that it fits", async () => {
  const here = machine({
    "/venv/bin/python": python({ version: [3, 9, 2] }),
    "/usr/local/bin/python3": python({ version: [3, 14, 0] }),
    "/usr/bin/python": python({ version: [3, 11, 7] }),
  });
  const { server, attempts } = await findServer(
    wishes({ importStrategy: "useBundled", interpreters: [chosen("/venv/bin/python")] }),
    here,
  );
  assert.equal(server?.command, "/usr/bin/python");
  assert.match(attempts[0]?.outcome ?? "", /is CPython 3\.9; the bundled copy fits CPython 3\.10, 3\.11 and 3\.12 on linux-x64/);
  assert.match(attempts[1]?.outcome ?? "", /is CPython 3\.14/);
});

void test("the bundled copy does not fit other implementations, free threads or other machines", async () => {
  for (const [about, reason] of [
    [{ implementation: "pypy" }, /is pypy; the bundled copy fits/],
    [{ freeThreaded: true }, /is a free-threaded CPython 3\.12/],
  ] as const) {
    const { server, attempts } = await findServer(wishes(), machine({ "/usr/bin/python3": python(about) }));
    assert.equal(server, null);
    assert.match(attempts.at(-1)?.outcome ?? "", reason);
  }
  const arm = machine({ "/usr/bin/python3": python() }, { arch: "arm64" });
  const { attempts } = await findServer(wishes(), arm);
  assert.match(attempts.at(-1)?.outcome ?? "", /the copy was made for linux-x64, and this machine is linux-arm64/);
});

void test("platforms are named as VS Code names them", () => {
  assert.equal(target(machine({})), "linux-x64");
  assert.equal(target(machine({}, { musl: true })), "alpine-x64");
  assert.equal(target(machine({}, { platform: "darwin", arch: "arm64" })), "darwin-arm64");
  assert.equal(target(machine({}, { platform: "win32" })), "win32-x64");
  assert.equal(fits({ ...BUNDLE, pythons: ["3.12"] }), "CPython 3.12 on linux-x64");
});

void test("an environment says why it was not taken", async () => {
  const here = machine({
    "/a": python(),
    "/b": python({ torchmemlint: "0.0.1" }),
    "/c": python({ torchmemlint: "0.1.0", server: true }),
    "/d": python({ version: [3, 8, 10] }),
    "/e": () => ({ status: 1, stdout: "", stderr: "Segmentation fault" }),
  });
  const { attempts } = await findServer(
    wishes({ bundle: null, interpreters: ["/a", "/b", "/c", "/d", "/e", "/f"].map(chosen) }),
    here,
  );
  const outcomes = attempts.filter(({ source }) => source === "environment").map(({ outcome }) => outcome);
  assert.deepEqual(outcomes, [
    "has no torchmemlint installed",
    "has torchmemlint 0.0.1, which is too old to have a language server",
    "has torchmemlint 0.1.0 without its language server: pip install 'torchmemlint[lsp]'",
    "is Python 3.8.10; torchmemlint needs 3.10 or newer",
    "is not a Python that works: it ended with 1: Segmentation fault",
    "does not exist",
  ]);
});

void test("an executable that has no server is not taken", async () => {
  const here = machine({
    "/old": torchmemlint("0.0.1", { status: 2, stdout: "", stderr: "Error: No such option: --version" }),
    "/bare": torchmemlint("0.1.0", { status: 2, stdout: "", stderr: "Error: needs pygls: pip install 'torchmemlint[lsp]'" }),
    "/other": () => ({ status: 0, stdout: "ruff 0.8\n", stderr: "" }),
  });
  const { server, attempts } = await findServer(wishes({ bundle: null, path: ["/old", "/bare", "/other"] }), here);
  assert.equal(server, null);
  const outcomes = attempts.slice(0, 3).map(({ outcome }) => outcome);
  assert.deepEqual(outcomes, [
    "is torchmemlint 0.0.1, which is too old to have a language server",
    "is torchmemlint 0.1.0 without its language server: ended with 2: Error: needs pygls: pip install 'torchmemlint[lsp]'",
    "is not torchmemlint: `--version` ended with 0: ruff 0.8",
  ]);
});

void test("the complaint names the reason that helps most", async () => {
  const nothing = await findServer(wishes({ bundle: null }), machine({}));
  assert.equal(
    complaint(nothing),
    "No torchmemlint was found. Install it into your environment with: pip install 'torchmemlint[lsp]'",
  );
  const bare = python({ torchmemlint: "0.1.0", server: true });
  const extra = await findServer(
    wishes({ bundle: null, interpreters: [chosen("/venv/bin/python")] }),
    machine({ "/venv/bin/python": bare }),
  );
  assert.equal(
    complaint(extra),
    "/venv/bin/python (the Python extension) has torchmemlint 0.1.0 without its language server. Install it with: pip install 'torchmemlint[lsp]'",
  );
  const unfit = await findServer(wishes(), machine({ "/usr/bin/python3": python({ version: [3, 14, 0] }) }));
  assert.match(complaint(unfit), /^No torchmemlint was found \(bundled copy: \/usr\/bin\/python3 is CPython 3\.14; the bundled copy fits/);
});

void test("the summary has a line for every place", async () => {
  const { attempts } = await findServer(wishes(), machine({ "/usr/bin/python3": python() }));
  assert.equal(summary(attempts), "PATH: torchmemlint is not on the PATH\nbundled: /ext/bundled/libs taken");
});

void test("the PATH is read as the system does, but never relative to the project", async () => {
  const here = machine({ "./torchmemlint": torchmemlint(), "bin/torchmemlint": torchmemlint() }, { env: { PATH: ".:bin:" } });
  assert.equal(await which("torchmemlint", here), null);
  const windows = machine(
    { "C:\\Python312\\python.exe": python(), "C:\\Users\\me\\WindowsApps\\python.exe": python() },
    { platform: "win32", env: { Path: "C:\\Users\\me\\WindowsApps;C:\\Python312\\" } },
  );
  assert.equal(await which("python", windows), "C:\\Python312\\python.exe");
});

// Makes the .vsix.
//
//     npm run package                                  # with a copy of torchmemlint, for this platform
//     npm run package -- --target darwin-arm64         # the same for another one
//     npm run package -- --without-bundle              # for all platforms, without a copy
//     npm run package -- --keep-bundle                 # with what `bundled/libs` holds already
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { parseArgs } from "node:util";
import { createVSIX } from "@vscode/vsce";

const { values } = parseArgs({
  options: {
    target: { type: "string" },
    "without-bundle": { type: "boolean", default: false },
    "keep-bundle": { type: "boolean", default: false },
  },
});
const about = "bundled/libs/bundle.json";

if (values["without-bundle"]) {
  rmSync("bundled/libs", { recursive: true, force: true });
} else if (!(values["keep-bundle"] && existsSync(about))) {
  const python = process.env.PYTHON ?? (process.platform === "win32" ? "python" : "python3");
  const target = values.target === undefined ? [] : ["--target", values.target];
  execFileSync(python, ["scripts/bundle.py", ...target], { stdio: "inherit" });
}

const target = values["without-bundle"] ? undefined : JSON.parse(readFileSync(about, "utf8")).target;
const { name, version } = JSON.parse(readFileSync("package.json", "utf8"));
const packagePath = `${name}-${version}${target === undefined ? "" : `-${target}`}.vsix`;
await createVSIX({ packagePath, target, dependencies: false, allowMissingRepository: true });

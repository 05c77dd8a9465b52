// Puts code-server, which is VS Code in a browser, and playwright-core into a folder, without what they would download
// from elsewhere than npm's registry:
//
//     node test/browser/install.mjs [FOLDER]
//
// The folder is `$CODE_SERVER_FOLDER` or `~/.cache/torchmemlint/code-server`. Needs Node 20 (code-server 4.100 is made for
// it), Python, a C++ compiler and, on Debian, `apt-get install ripgrep libkrb5-dev`.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGES = ["code-server@4.100.3", "playwright-core@1.65.1"];
// What has no compiled files in its package. `argon2` must be told where node-pre-gyp would have put them.
const NATIVE = ["@parcel/watcher", "@vscode/spdlog", "@vscode/deviceid", "native-watchdog", "node-pty", "kerberos"];
const ARGON2 = ["--module_name=argon2", "--napi_version=3", "--napi_build_version=3"];

export const defaultFolder = process.env.CODE_SERVER_FOLDER ?? path.join(homedir(), ".cache", "torchmemlint", "code-server");

function run(command, args, cwd) {
  try {
    execFileSync(command, args, { cwd, stdio: "pipe", encoding: "utf8" });
  } catch (error) {
    console.error(error.stdout, error.stderr);
    throw new Error(`${command} ${args.join(" ")} failed in ${cwd}`, { cause: error });
  }
}

function link(target, where) {
  rmSync(where, { force: true, recursive: true });
  symlinkSync(target, where);
}

export function install(folder = defaultFolder) {
  const done = path.join(folder, "installed");
  if (existsSync(done)) {
    return folder;
  }
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "package.json"), '{ "private": true }\n');
  run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...PACKAGES], folder);

  const modules = path.join(folder, "node_modules");
  const vscode = path.join(modules, "code-server", "lib", "vscode");
  for (const part of [vscode, path.join(vscode, "extensions")]) {
    run("npm", ["install", "--ignore-scripts", "--omit=dev", "--legacy-peer-deps"], part);
  }

  const root = execFileSync("npm", ["root", "--global"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  const gyp = path.join(root, "npm", "node_modules", "node-gyp", "bin", "node-gyp.js");
  // Node's headers where they are installed beside it; otherwise node-gyp downloads them.
  const prefix = path.resolve(process.execPath, "..", "..");
  const headers = existsSync(path.join(prefix, "include", "node")) ? [`--nodedir=${prefix}`] : [];
  for (const name of NATIVE) {
    run(process.execPath, [gyp, "rebuild", ...headers], path.join(vscode, "node_modules", name));
  }
  const argon2 = path.join(modules, "argon2");
  run(process.execPath, [gyp, "rebuild", ...headers, ...ARGON2, `--module_path=${argon2}/lib/binding/napi-v3`], argon2);

  // What the packages' own scripts would have done besides.
  link("node_modules", path.join(vscode, "node_modules.asar"));
  link("code-linux.sh", path.join(vscode, "bin", "remote-cli", "code-server"));
  link("browser-linux.sh", path.join(vscode, "bin", "helpers", "browser.sh"));
  const ripgrep = path.join(vscode, "node_modules", "@vscode", "ripgrep", "bin");
  mkdirSync(ripgrep, { recursive: true });
  link(execFileSync("which", ["rg"], { encoding: "utf8" }).trim(), path.join(ripgrep, "rg"));

  writeFileSync(done, `${PACKAGES.join("\n")}\n`);
  return folder;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(install(process.argv[2]));
}

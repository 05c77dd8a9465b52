// Tries the extension in a real VS Code: code-server, with Chromium before it.
//
//     npm run test:browser -- [--vsix FILE] [--images FOLDER]
//
// Needs what install.mjs names, Chromium (`CHROMIUM=PATH`), and a `torchmemlint` with its language server on the PATH
// (or `TORCHMEMLINT=PATH`). Installs the .vsix, opens the example project, and then does what a user would: reads the
// problems, hovers over one, opens the quick fixes, applies one, explains a rule, fixes all, breaks and mends the settings.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { createVSIX } from "@vscode/vsce";
import { install } from "./install.mjs";

const { values } = parseArgs({
  options: { vsix: { type: "string" }, images: { type: "string" }, keep: { type: "boolean", default: false } },
});
const here = import.meta.dirname;
const extension = path.resolve(here, "..", "..");
const folder = install();
const { chromium } = createRequire(path.join(folder, "package.json"))("playwright-core");
const work = mkdtempSync(path.join(tmpdir(), "torchmemlint-vscode-"));
const images = path.resolve(values.images ?? path.join(work, "images"));
const project = path.join(work, "example");
const settingsFile = path.join(work, "user", "User", "settings.json");
const program = path.join(project, "train.py");
mkdirSync(images, { recursive: true });

const SETTINGS = {
  "workbench.colorTheme": "Default Light Modern",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.layoutControl.enabled": false,
  "window.commandCenter": false,
  "editor.minimap.enabled": false,
  "editor.stickyScroll.enabled": false,
  "editor.fontSize": 14,
  "editor.hover.delay": 100,
  "security.workspace.trust.enabled": false,
  "extensions.ignoreRecommendations": true,
  "telemetry.telemetryLevel": "off",
  "files.autoSave": "off",
  "git.enabled": false,
  "chat.commandCenter.enabled": false,
};

function entry(...args) {
  return [path.join(folder, "node_modules", "code-server", "out", "node", "entry.js"), ...args];
}

function where() {
  return ["--user-data-dir", path.join(work, "user"), "--extensions-dir", path.join(work, "extensions")];
}

function settings(more) {
  mkdirSync(path.dirname(settingsFile), { recursive: true });
  writeFileSync(settingsFile, JSON.stringify({ ...SETTINGS, ...more }, undefined, 2));
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function started(address) {
  for (let tries = 0; tries < 300; tries += 1) {
    try {
      await fetch(address);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  throw new Error("code-server did not start");
}

/** A notebook whose second cell sums losses with their graphs. */
function notebook() {
  const cell = (source) => ({ cell_type: "code", execution_count: null, metadata: {}, outputs: [], source });
  return JSON.stringify({
    nbformat: 4,
    nbformat_minor: 5,
    metadata: { language_info: { name: "python" } },
    cells: [
      cell("import torch\nfrom torch import nn\nmodel = nn.Linear(2, 2)\ntotal = 0.0"),
      cell("for x, y in loader:\n    loss = nn.functional.mse_loss(model(x), y)\n    loss.backward()\n    total += loss\nprint(total)"),
    ],
  });
}

/** The interpreter beside `torchmemlint`, unless TORCHMEMLINT_PYTHON names one, if it has torchmemlint. */
function interpreter(executable) {
  const python = process.env.TORCHMEMLINT_PYTHON ?? path.join(path.dirname(executable), "python");
  try {
    execFileSync(python, ["-c", "import torchmemlint.server.app"], { stdio: "ignore", cwd: work });
    return python;
  } catch {
    return null;
  }
}

function makeVsix() {
  execFileSync("npm", ["run", "package", "--", "--without-bundle"], { cwd: extension, stdio: "pipe" });
  const { version } = JSON.parse(readFileSync(path.join(extension, "package.json"), "utf8"));
  return path.join(extension, `torchmemlint-${version}.vsix`);
}

let number = 0;
function step(what) {
  number += 1;
  console.log(`${String(number).padStart(2)}. ${what}`);
}

/** A VS Code in a page of the browser, in a user's words. */
class Window {
  constructor(page) {
    this.page = page;
  }

  async shoot(name, clip) {
    const file = path.join(images, `${name}.png`);
    await this.page.screenshot({ path: file, ...(clip === undefined ? {} : { clip }) });
    return file;
  }

  async command(title) {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget input.input").first();
    await input.fill(`>${title}`);
    await this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: title }).waitFor();
    await this.page.keyboard.press("Enter");
  }

  async open(name) {
    await this.page.keyboard.press("Control+KeyP");
    await this.page.locator(".quick-input-widget input.input").first().fill(name);
    await this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: name }).waitFor();
    await this.page.keyboard.press("Enter");
    await this.page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor();
  }

  squiggles(kind) {
    return this.page.locator(`.view-overlays .squiggly-${kind}`);
  }

  /** Text of the editor, at the place where it is shown. */
  text(text) {
    return this.page.locator(".view-line span span", { hasText: text }).first();
  }

  async goTo(line, column) {
    await this.page.keyboard.press("Control+KeyG");
    const input = this.page.locator(".quick-input-widget input.input").first();
    await input.waitFor();
    await input.fill(`:${line}:${column}`);
    await this.page.keyboard.press("Enter");
  }

  /** Choose an action from the menu that is open, by keys: over the menu lies a thing that takes the clicks. */
  async choose(title) {
    const focused = this.page.locator(".action-widget .monaco-list-row.focused");
    for (let presses = 0; presses < 20; presses += 1) {
      if (((await focused.textContent()) ?? "").includes(title)) {
        await this.page.keyboard.press("Enter");
        return;
      }
      await this.page.keyboard.press("ArrowDown");
    }
    assert.fail(`${title} cannot be reached`);
  }

  status() {
    return this.page.locator(".statusbar-item[id*='torchmemlint.problems']");
  }

  async statusSays(pattern) {
    await this.page.waitForFunction(
      ([source]) => {
        const item = document.querySelector(".statusbar-item[id*='torchmemlint.problems']");
        return item !== null && new RegExp(source).test(item.getAttribute("aria-label") ?? item.textContent ?? "");
      },
      [pattern.source],
      { timeout: 60000 },
    );
  }

  /** Change the user's settings as a user does, who has their file open. */
  async set(more) {
    await this.command("Preferences: Open User Settings (JSON)");
    await this.page.locator('.tab.active[data-resource-name="settings.json"]').waitFor();
    await this.page.keyboard.press("Control+KeyA");
    await this.page.keyboard.insertText(JSON.stringify({ ...SETTINGS, ...more }));
    await this.save();
    await this.page.locator('.tab.active[data-resource-name="settings.json"]:not(.dirty)').waitFor();
    await this.open("train.py");
  }

  async save() {
    await this.page.keyboard.press("Control+KeyS");
  }
}

async function fileHas(text, present = true) {
  for (let tries = 0; tries < 200; tries += 1) {
    if (readFileSync(program, "utf8").includes(text) === present) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`${program} ${present ? "has not got" : "still has"} ${text}`);
}

async function scenario(page, python) {
  const window = new Window(page);

  step("a file is opened; the problems are underlined");
  await window.open("train.py");
  await page.keyboard.press("Control+KeyB"); // more room: the side bar is closed
  await window.squiggles("error").first().waitFor({ timeout: 60000 });
  await window.squiggles("warning").first().waitFor();
  await window.statusSays(/error +1 .*warning +2 .*info +1/);
  console.log(`    status bar: ${(await window.status().getAttribute("aria-label"))?.split("\n")[0]}`);

  step("the list of problems names their codes, with links");
  await window.command("Problems: Focus on Problems View");
  const rows = page.locator(".markers-panel .monaco-list-row");
  await rows.filter({ hasText: "TML101" }).first().waitFor();
  for (const code of ["TML101", "TML105", "TML201"]) {
    await rows.filter({ hasText: code }).first().waitFor();
  }
  assert.ok((await rows.allTextContents()).some((row) => row.includes("runs with gradients enabled")), "no related information");
  await page.waitForTimeout(600);
  await window.shoot("vscode-problems");
  await window.command("View: Close Panel").catch(() => window.command("View: Toggle Panel Visibility"));

  step("hovering over a problem shows it, and why it costs memory");
  await window.command("View: Focus Active Editor Group");
  await window.goTo(18, 14);
  await window.text("running_loss").first().waitFor();
  await window.command("Show or Focus Hover");
  const hover = page.locator(".monaco-hover:visible");
  await hover.filter({ hasText: "keeps every" }).first().waitFor();
  await hover.filter({ hasText: "TML101 graph-accumulation" }).first().waitFor();
  await page.waitForTimeout(800);
  await window.shoot("vscode-hover");
  await page.keyboard.press("Escape");

  step("the quick fixes");
  await window.goTo(18, 14);
  await page.keyboard.press("Control+Period");
  const menu = page.locator(".action-widget");
  await menu.locator(".monaco-list-row", { hasText: "Fix TML101" }).first().waitFor();
  const titles = (await menu.locator(".monaco-list-row.action").allTextContents()).map((title) => title.trim());
  console.log(`    ${titles.join(" | ")}`);
  for (const title of ["Ignore TML101 on this line", "Ignore TML101 in this file", "Explain TML101"]) {
    assert.ok(titles.some((one) => one.startsWith(title)), `no action ${title} among ${titles.join(", ")}`);
  }
  await page.waitForTimeout(500);
  await window.shoot("vscode-quick-fix");

  step("a rule is explained in the Markdown preview");
  await window.choose("Explain TML101");
  const preview = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  await preview.getByRole("heading", { name: "graph-accumulation (TML101)" }).waitFor({ timeout: 30000 });
  assert.equal(await page.locator(".tab", { hasText: "TML101.md" }).count(), 1, "the page is opened twice");
  await page.waitForTimeout(500);
  await window.shoot("vscode-explain");
  await window.open("train.py");

  step("the fix is applied, and its problem goes");
  await window.goTo(18, 14);
  await page.keyboard.press("Control+Period");
  await menu.locator(".monaco-list-row", { hasText: "Fix TML101" }).first().waitFor();
  await window.choose("Fix TML101");
  await window.text("detach").waitFor();
  await window.squiggles("error").first().waitFor({ state: "detached" });
  await window.save();
  await fileHas("running_loss += loss.detach()");
  await fileHas("@torch.no_grad()", false);
  await page.waitForTimeout(500);
  await window.shoot("vscode-fixed");

  step("the command fixes the other safe ones");
  await window.command("torchmemlint: Fix all auto-fixable problems");
  await window.text("@torch").waitFor();
  await window.save();
  await fileHas("@torch.no_grad()\ndef accuracy(");

  step("what is typed is looked at without being saved");
  await window.goTo(18, 1 + "            running_loss += loss".length);
  await page.keyboard.press("Shift+End");
  await page.keyboard.press("Delete");
  await window.squiggles("error").first().waitFor();
  await fileHas("running_loss += loss.detach()");
  await page.keyboard.press("Control+KeyZ");
  await window.squiggles("error").first().waitFor({ state: "detached" });

  step("a rule is chosen from the list");
  await window.command("torchmemlint: Explain a rule");
  const picker = page.locator(".quick-input-widget");
  await picker.locator(".monaco-list-row", { hasText: "TML101" }).first().waitFor();
  await window.shoot("vscode-rules");
  await picker.locator("input.input").first().fill("map-location");
  await picker.locator(".monaco-list-row.focused", { hasText: "load-without-map-location" }).waitFor();
  await page.keyboard.press("Enter");
  await preview.getByRole("heading", { name: "(TML504)" }).waitFor({ timeout: 30000 });
  await window.open("train.py");

  step("settings reach the server while it runs");
  await window.set({ "torchmemlint.ignore": ["TML105"] });
  await window.squiggles("warning").first().waitFor({ state: "detached", timeout: 30000 });
  await window.set({});
  await window.squiggles("warning").first().waitFor({ timeout: 30000 });

  step("turned off, nothing is shown; turned on, it is back");
  await window.set({ "torchmemlint.enable": false });
  await window.squiggles("warning").first().waitFor({ state: "detached", timeout: 30000 });
  await window.status().waitFor({ state: "detached" });
  await window.set({});
  await window.squiggles("warning").first().waitFor({ timeout: 30000 });

  step("the cells of a notebook");
  await window.open("train.ipynb");
  await page.locator(".notebookOverlay .squiggly-warning").first().waitFor({ timeout: 30000 });
  await page.waitForTimeout(300);
  await window.shoot("vscode-notebook");
  await window.open("train.py");

  if (python === null) {
    console.log("    no interpreter with torchmemlint: TORCHMEMLINT_PYTHON names one");
  } else {
    step("the interpreter that is chosen in the Python extension goes before the PATH");
    await window.set({ "python.defaultInterpreterPath": python });
    await window.statusSays(/from the Python environment/);
    await window.squiggles("warning").first().waitFor({ timeout: 30000 });
    await window.set({});
    await window.statusSays(/from the PATH/);
  }

  step("an executable that is none is said, and the next place taken");
  await window.set({ "torchmemlint.path": ["/bin/false"] });
  await window.squiggles("warning").first().waitFor({ timeout: 30000 });
  await window.command("torchmemlint: Print debug information");
  await page.locator(".view-line", { hasText: "/bin/false is not torchmemlint" }).first().waitFor();
  await page.locator(".view-line", { hasText: "Where torchmemlint was looked for" }).first().waitFor();
  await page.waitForTimeout(300);
  await window.shoot("vscode-debug");

  step("useBundled takes the copy that came with the extension, or says that there is none");
  await window.set({ "torchmemlint.importStrategy": "useBundled" });
  if (existsSync(path.join(installed(), "bundled", "libs", "bundle.json"))) {
    await window.statusSays(/bundled with the extension/);
    await window.squiggles("warning").first().waitFor({ timeout: 30000 });
    return;
  }
  const notification = page.locator(".notification-toast", { hasText: "No torchmemlint was found" });
  await notification.first().waitFor({ timeout: 30000 });
  for (const button of ["Install", "Settings", "Show log"]) {
    await notification.getByRole("button", { name: button, exact: true }).first().waitFor();
  }
  await window.shoot("vscode-missing");
}

/** The folder that the extension was unpacked into. */
function installed() {
  const extensions = path.join(work, "extensions");
  return path.join(extensions, readdirSync(extensions).find((name) => name.startsWith("torchmemlint.")));
}

async function main() {
  const vsix = path.resolve(values.vsix ?? makeVsix());
  const executable = process.env.TORCHMEMLINT ?? execFileSync("which", ["torchmemlint"], { encoding: "utf8" }).trim();
  const browserPath = process.env.CHROMIUM ?? execFileSync("which", ["chromium"], { encoding: "utf8" }).trim();
  assert.ok(existsSync(vsix), vsix);
  cpSync(path.join(extension, "..", "example"), project, { recursive: true });
  writeFileSync(path.join(project, "train.ipynb"), notebook());
  settings({});

  step("the extension is installed, and a stand-in for the Python extension");
  const stand = path.join(work, "python.vsix");
  await createVSIX({ cwd: path.join(here, "python"), packagePath: stand, allowMissingRepository: true, skipLicense: true });
  execFileSync(process.execPath, entry("--install-extension", stand, ...where()), { stdio: "pipe" });
  execFileSync(process.execPath, entry("--install-extension", vsix, ...where()), { stdio: "pipe" });
  const port = await freePort();
  // VS Code takes its PATH from what a login shell says.
  writeFileSync(path.join(work, ".bash_profile"), `export PATH="${path.dirname(executable)}:$PATH"\n`);
  const env = { ...process.env, HOME: work, SHELL: "/bin/bash" };
  const args = ["--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry", "--disable-update-check"];
  const server = spawn(process.execPath, entry(...args, ...where()), { env, stdio: "pipe" });
  let said = "";
  server.stdout.on("data", (data) => (said += data));
  server.stderr.on("data", (data) => (said += data));
  const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu"] });
  const page = await browser.newPage({ viewport: { width: 1000, height: 680 }, deviceScaleFactor: 1 });
  try {
    await started(`http://127.0.0.1:${port}/`);
    await page.goto(`http://127.0.0.1:${port}/?folder=${project}`);
    await page.locator(".monaco-workbench").waitFor({ timeout: 60000 });
    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "train.py" }).first().waitFor({ timeout: 60000 });
    await scenario(page, interpreter(executable));
    console.log(`All ${number} steps. Screenshots: ${images}`);
  } catch (error) {
    await page.screenshot({ path: path.join(images, "failure.png") });
    console.error(`Failed in step ${number}; see ${path.join(images, "failure.png")}`);
    console.error(said.split("\n").slice(-15).join("\n"));
    throw error;
  } finally {
    await browser.close();
    server.kill();
    if (values.images !== undefined && !values.keep) {
      rmSync(work, { recursive: true, force: true });
    }
  }
}

await main();

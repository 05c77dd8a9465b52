/** The extension: finds the server, starts it, and starts it anew where that has become necessary. */

import { readFile } from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
import { DidChangeConfigurationNotification, type LanguageClient, State as ClientState } from "vscode-languageclient/node";
import { SELECTOR, makeClient } from "./client";
import { registerCommands } from "./commands";
import { folderSettings, settingsOf } from "./configuration";
import { type Bundle, type Search, type Server, type Wishes, complaint, findServer, summary } from "./discovery";
import { thisMachine } from "./machine";
import { Pages } from "./pages";
import { ChosenPython } from "./python";
import { SECTION, reaction, serverSettings, wanted } from "./settings";
import { Status } from "./status";
import { TraceChannel } from "./trace";

let extension: Extension | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  extension = new Extension(context);
  context.subscriptions.push(extension);
  await extension.restart();
}

export async function deactivate(): Promise<void> {
  await extension?.stop();
}

export class Extension implements vscode.Disposable {
  readonly log = vscode.window.createOutputChannel("torchmemlint", { log: true });
  readonly trace = new TraceChannel("torchmemlint Language Server Trace");
  readonly pages = new Pages();
  readonly machine = thisMachine();
  search: Search = { server: null, attempts: [] };
  client: LanguageClient | undefined;

  private readonly status = new Status(SELECTOR);
  private readonly python = new ChosenPython();
  private readonly subscriptions: { dispose(): unknown }[];
  /** One start or stop after the other. */
  private queue: Promise<void> = Promise.resolve();
  /** How many starts wait; only the last of them is worth doing. */
  private waiting = 0;

  constructor(readonly context: vscode.ExtensionContext) {
    this.subscriptions = [
      this.log,
      this.trace,
      this.pages,
      this.status,
      this.python,
      ...registerCommands(this),
      this.python.onDidChange(() => this.restart()),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.restart()),
      vscode.workspace.onDidChangeConfiguration((event) => this.reconfigure(event)),
    ];
  }

  /** Start the server, or start it anew. */
  restart(): Promise<void> {
    this.waiting += 1;
    return this.enqueue(async () => {
      this.waiting -= 1;
      if (this.waiting === 0) {
        await this.stopNow();
        await this.startNow();
      }
    });
  }

  stop(): Promise<void> {
    return this.enqueue(() => this.stopNow());
  }

  private enqueue(step: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(step).catch((error: unknown) => {
      this.log.error(error instanceof Error ? error : String(error));
    });
    return this.queue;
  }

  private async stopNow(): Promise<void> {
    const { client } = this;
    this.client = undefined;
    this.status.show({ kind: "stopped" });
    if (client !== undefined) {
      await client.dispose().catch((error: unknown) => {
        this.log.warn(`The server did not stop in an orderly way: ${String(error)}`);
      });
    }
  }

  private async startNow(): Promise<void> {
    if (!wanted(settingsOf(undefined), folderSettings())) {
      this.log.info("Turned off by the setting torchmemlint.enable");
      return;
    }
    this.status.show({ kind: "starting" });
    this.search = await findServer(await this.wishes(), this.machine);
    for (const line of summary(this.search.attempts).split("\n")) {
      this.log.info(line);
    }
    const { server } = this.search;
    if (server === null) {
      this.fail(complaint(this.search));
      return;
    }
    const client = makeClient(server, this, (page) => this.pages.show(page));
    client.onDidChangeState(({ newState }) => {
      this.follow(client, server, newState);
    });
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      this.fail(`The server of torchmemlint ${server.version} (${server.location}) did not start: ${said(error)}`);
    }
  }

  /** Show what became of a client: it also starts its server anew by itself, when that has crashed. */
  private follow(client: LanguageClient, server: Server, state: ClientState): void {
    if (this.client !== client) {
      return;
    }
    if (state === ClientState.Running) {
      const version = client.initializeResult?.serverInfo?.version ?? server.version;
      this.status.show({ kind: "running", server, version });
    } else if (state === ClientState.Starting) {
      this.status.show({ kind: "starting" });
    } else {
      this.status.show({ kind: "failed", why: "The server has stopped; the log says more" });
    }
  }

  private async wishes(): Promise<Wishes> {
    const folder = vscode.workspace.workspaceFolders?.[0];
    const settings = settingsOf(folder);
    const interpreters = settings.interpreter.map((one) => ({ path: one, from: "torchmemlint.interpreter" }));
    // The environment may lie in the folder itself, which must be trusted before anything of it is run.
    if (interpreters.length === 0 && vscode.workspace.isTrusted) {
      const chosen = await this.python.interpreter(folder?.uri).catch((error: unknown) => {
        this.log.warn(`The Python extension gave no interpreter: ${said(error)}`);
        return null;
      });
      interpreters.push(...(chosen === null ? [] : [{ path: chosen, from: "chosen in the Python extension" }]));
    }
    const bundled = this.context.asAbsolutePath("bundled");
    const { importStrategy, path } = settings;
    return { path, importStrategy, interpreters, bundled, bundle: await readBundle(bundled) };
  }

  private async reconfigure(event: vscode.ConfigurationChangeEvent): Promise<void> {
    const what = reaction((setting) => event.affectsConfiguration(setting));
    const on = wanted(settingsOf(undefined), folderSettings());
    if (what === "restart" || (what === "tell" && on !== (this.client !== undefined))) {
      await this.restart();
    } else if (what === "tell" && this.client?.state === ClientState.Running) {
      const settings = { [SECTION]: serverSettings(settingsOf(undefined)) };
      await this.client.sendNotification(DidChangeConfigurationNotification.type, { settings });
    }
  }

  private fail(why: string): void {
    this.status.show({ kind: "failed", why });
    this.log.error(why);
    void this.offerWaysOut(why);
  }

  private async offerWaysOut(why: string): Promise<void> {
    const interpreter = ChosenPython.isInstalled ? ["Choose interpreter"] : [];
    const answer = await vscode.window.showErrorMessage(why, "Install", ...interpreter, "Settings", "Show log");
    switch (answer) {
      case "Install":
        await this.install();
        break;
      case "Choose interpreter":
        await vscode.commands.executeCommand("python.setInterpreter");
        break;
      case "Settings":
        await vscode.commands.executeCommand("workbench.action.openSettings", `${SECTION}.path`);
        break;
      case "Show log":
        this.log.show();
    }
  }

  /** Write the command into a terminal, where the user can read it before running it. */
  private async install(): Promise<void> {
    const [interpreter] = (await this.wishes()).interpreters;
    const terminal = vscode.window.createTerminal("Install torchmemlint");
    terminal.show();
    const python = interpreter === undefined ? "python3" : `"${interpreter.path}"`;
    terminal.sendText(`${python} -m pip install --upgrade "torchmemlint[lsp]"`, false);
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }
}

async function readBundle(bundled: string): Promise<Bundle | null> {
  try {
    return JSON.parse(await readFile(path.join(bundled, "libs", "bundle.json"), "utf8")) as Bundle;
  } catch {
    return null;
  }
}

function said(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

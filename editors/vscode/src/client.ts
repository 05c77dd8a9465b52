/** The language client: one for the window, whatever the number of folders. */

import * as readline from "node:readline";
import * as vscode from "vscode";
import {
  type ConfigurationItem,
  type LanguageClientOptions,
  type Middleware,
  type ServerOptions,
  LanguageClient,
  RevealOutputChannelOn,
} from "vscode-languageclient/node";
import { allSettings, settingsOf } from "./configuration";
import type { Server } from "./discovery";
import { type Page, isPage } from "./rules";
import { SECTION, serverSettings } from "./settings";

/** Python in files, in what has not been saved yet, and in the cells of notebooks. */
export const SELECTOR = ["file", "untitled", "vscode-notebook", "vscode-notebook-cell"].map((scheme) => ({
  scheme,
  language: "python",
}));

/** The server's commands. VS Code knows them too: the client registers what the server offers. */
export const COMMANDS = {
  fixAll: "torchmemlint.server.fixAll",
  explain: "torchmemlint.server.explain",
  debug: "torchmemlint.server.debug",
} as const;

export interface Channels {
  log: vscode.LogOutputChannel;
  trace: vscode.LogOutputChannel;
}

export function makeClient(server: Server, channels: Channels, explain: (page: Page) => Promise<void>): LanguageClient {
  const serverOptions: ServerOptions = { command: server.command, args: server.args };
  const clientOptions: LanguageClientOptions = {
    documentSelector: SELECTOR,
    diagnosticCollectionName: SECTION,
    outputChannel: channels.log,
    traceOutputChannel: channels.trace,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationOptions: allSettings,
    // The extension says by itself what went wrong, with ways out of it.
    initializationFailedHandler: () => false,
    middleware: middleware(explain),
    stdioOptions: {
      stdout: () => undefined, // the messages themselves
      stderr: (input, channel) => {
        readline.createInterface({ input }).on("line", (line) => {
          log(line, channel);
        });
      },
    },
  };
  return new LanguageClient(SECTION, "torchmemlint", serverOptions, clientOptions);
}

function middleware(explain: (page: Page) => Promise<void>): Middleware {
  let explaining = 0;
  return {
    window: {
      // The server opens a rule's page as a file, for clients that have no preview to show it in.
      showDocument: (params, token, next) => (explaining > 0 ? { success: true } : next(params, token)),
    },
    workspace: {
      // The server asks for `torchmemlint`, folder by folder; it gets paths without `${...}` and nothing it has no use for.
      configuration: async (params, token, next) => {
        const answers: unknown = await next(params, token);
        const items = Array.isArray(answers) ? answers : [];
        return params.items.map((item, index) => (item.section === SECTION ? configurationOf(item) : (items[index] as unknown))) as never;
      },
      // Sent by the extension, in the same form.
      didChangeConfiguration: () => Promise.resolve(),
    },
    executeCommand: async (command, args, next) => {
      if (command !== COMMANDS.explain) {
        return next(command, args) as unknown;
      }
      explaining += 1;
      try {
        const answer: unknown = await next(command, args);
        if (isPage(answer)) {
          await explain(answer);
        }
        return answer;
      } finally {
        explaining -= 1;
      }
    },
  };
}

function configurationOf({ scopeUri }: ConfigurationItem): unknown {
  const folder = scopeUri === undefined ? undefined : vscode.workspace.getWorkspaceFolder(vscode.Uri.parse(scopeUri));
  return serverSettings(settingsOf(folder));
}

/** The server's log comes line by line, each with its level somewhere near the beginning. */
function log(line: string, channel: vscode.LogOutputChannel): void {
  const level = /\b(DEBUG|INFO|WARNING|ERROR|CRITICAL)\b/.exec(line.slice(0, 60))?.[1];
  switch (level) {
    case "DEBUG":
      channel.debug(line);
      break;
    case "WARNING":
      channel.warn(line);
      break;
    case "ERROR":
    case "CRITICAL":
      channel.error(line);
      break;
    default:
      channel.info(line);
  }
}

/** The commands of the palette. */

import * as vscode from "vscode";
import { ExecuteCommandRequest } from "vscode-languageclient/node";
import { COMMANDS } from "./client";
import { allSettings } from "./configuration";
import { SOURCE, codeOf } from "./counts";
import { summary } from "./discovery";
import type { Extension } from "./extension";
import { type Rule, choices, parseRules } from "./rules";

export function registerCommands(extension: Extension): vscode.Disposable[] {
  const commands: Record<string, () => unknown> = {
    "torchmemlint.restart": () => extension.restart(),
    "torchmemlint.showLogs": () => {
      extension.log.show();
    },
    "torchmemlint.showServerLogs": () => {
      extension.trace.show();
    },
    "torchmemlint.executeAutofix": () => fixAll(extension),
    "torchmemlint.explainRule": () => explainRule(extension),
    "torchmemlint.debugInformation": () => debugInformation(extension),
  };
  return Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(name, run));
}

async function fixAll(extension: Extension): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== "python") {
    return;
  }
  if (extension.client?.isRunning() !== true) {
    void vscode.window.showErrorMessage("torchmemlint does not run; its log says why.");
    return;
  }
  // A cell of a notebook has an address of its own, which the server knows.
  const uri = extension.client.code2ProtocolConverter.asUri(editor.document.uri);
  try {
    await extension.client.sendRequest(ExecuteCommandRequest.type, { command: COMMANDS.fixAll, arguments: [uri] });
  } catch (error) {
    void vscode.window.showErrorMessage(`torchmemlint could not fix this file: ${String(error)}`);
  }
}

async function explainRule(extension: Extension): Promise<void> {
  const rules = await readRules(extension);
  if (rules === null) {
    void vscode.window.showErrorMessage("torchmemlint could not list its rules; its log says why.");
    return;
  }
  const chosen = await vscode.window.showQuickPick(choices(rules, underCursor()), {
    title: "Explain a rule of torchmemlint",
    placeHolder: "Code, name or what it is about",
    matchOnDescription: true,
    matchOnDetail: true,
  });
  if (chosen !== undefined) {
    const { code, explanation } = chosen.rule;
    await extension.pages.show({ code, markdown: explanation });
  }
}

/** Ask the command line, which answers even where the server does not run. */
async function readRules(extension: Extension): Promise<Rule[] | null> {
  const { server } = extension.search;
  if (server === null) {
    return null;
  }
  const args = [...server.args.slice(0, -1), "rule", "--all", "--output-format", "json"];
  const { status, stdout, stderr } = await extension.machine.run(server.command, args);
  try {
    if (status === 0) {
      return parseRules(stdout);
    }
    extension.log.error(stderr);
  } catch (error) {
    extension.log.error(error instanceof Error ? error : String(error));
  }
  return null;
}

/** The codes of our problems at the cursor. */
function underCursor(): string[] {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return [];
  }
  return vscode.languages
    .getDiagnostics(editor.document.uri)
    .filter(({ source, range }) => source === SOURCE && range.intersection(editor.selection) !== undefined)
    .map(({ code }) => codeOf(code));
}

async function debugInformation(extension: Extension): Promise<void> {
  const { context, search, client } = extension;
  const { version } = context.extension.packageJSON as { version: string };
  const parts = [
    `torchmemlint's extension ${version}, ${vscode.env.appName} ${vscode.version}, ${process.platform} ${process.arch}`,
    `trusted: ${vscode.workspace.isTrusted ? "yes" : "no"}`,
    "",
    "Where torchmemlint was looked for:",
    summary(search.attempts),
    "",
    "Settings:",
    JSON.stringify(allSettings(), undefined, 2),
    "",
    "Server:",
    client?.isRunning() === true ? await serverInformation(client) : "does not run",
  ];
  const document = await vscode.workspace.openTextDocument({ language: "plaintext", content: `${parts.join("\n")}\n` });
  await vscode.window.showTextDocument(document);
}

async function serverInformation(client: NonNullable<Extension["client"]>): Promise<string> {
  try {
    const answer: unknown = await client.sendRequest(ExecuteCommandRequest.type, { command: COMMANDS.debug, arguments: [] });
    return typeof answer === "string" ? answer : JSON.stringify(answer, undefined, 2);
  } catch (error) {
    return `gave no information: ${String(error)}`;
  }
}

/** What the user sees of the extension's state: the language status of Python files, and an item in the status bar. */

import * as vscode from "vscode";
import { SOURCE, brief, count, total, words } from "./counts";
import type { Server } from "./discovery";

export type State =
  | { kind: "starting" }
  | { kind: "running"; server: Server; version: string }
  | { kind: "failed"; why: string }
  | { kind: "stopped" };

const ORIGINS: Record<Server["source"], string> = {
  setting: "named in the settings",
  environment: "from the Python environment",
  PATH: "from the PATH",
  bundled: "bundled with the extension",
};

export class Status implements vscode.Disposable {
  private readonly language: vscode.LanguageStatusItem;
  private readonly bar: vscode.StatusBarItem;
  private readonly subscriptions: { dispose(): unknown }[];
  private state: State = { kind: "stopped" };
  private pending: NodeJS.Timeout | undefined;

  constructor(selector: vscode.DocumentSelector) {
    this.language = vscode.languages.createLanguageStatusItem("torchmemlint.status", selector);
    this.language.name = "torchmemlint";
    this.bar = vscode.window.createStatusBarItem("torchmemlint.problems", vscode.StatusBarAlignment.Left, 0);
    this.bar.name = "torchmemlint";
    this.subscriptions = [
      this.language,
      this.bar,
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.refresh();
      }),
      vscode.languages.onDidChangeDiagnostics(() => {
        this.refreshSoon();
      }),
    ];
    this.refresh();
  }

  show(state: State): void {
    this.state = state;
    this.refresh();
  }

  /** Diagnostics change with every keystroke; the numbers need not. */
  private refreshSoon(): void {
    this.pending ??= setTimeout(() => {
      this.pending = undefined;
      this.refresh();
    }, 100);
  }

  private refresh(): void {
    this.refreshLanguage();
    this.refreshBar();
  }

  private refreshLanguage(): void {
    const { language, state } = this;
    language.busy = state.kind === "starting";
    language.severity =
      state.kind === "failed" ? vscode.LanguageStatusSeverity.Error : vscode.LanguageStatusSeverity.Information;
    language.command = { title: "Show log", command: "torchmemlint.showLogs" };
    switch (state.kind) {
      case "running":
        language.text = `torchmemlint ${state.version}`;
        language.detail = ORIGINS[state.server.source];
        break;
      case "failed":
        language.text = "torchmemlint does not run";
        language.detail = state.why;
        language.command = { title: "Restart", command: "torchmemlint.restart" };
        break;
      case "starting":
      case "stopped":
        language.text = "torchmemlint";
        language.detail = state.kind === "starting" ? "starting" : "turned off";
    }
  }

  private refreshBar(): void {
    const { bar, state } = this;
    const counts = count(vscode.languages.getDiagnostics().map(([, problems]) => problems));
    const inPython = vscode.window.activeTextEditor?.document.languageId === "python";
    if (state.kind === "stopped" || (!inPython && total(counts) === 0)) {
      bar.hide();
      return;
    }
    bar.backgroundColor = undefined;
    bar.command = "workbench.actions.view.problems";
    const tooltip = new vscode.MarkdownString("", true);
    tooltip.isTrusted = { enabledCommands: ["torchmemlint.restart", "torchmemlint.showLogs", "torchmemlint.executeAutofix"] };
    switch (state.kind) {
      case "running":
        bar.text = `${SOURCE} ${brief(counts)}`;
        tooltip.appendMarkdown(`**torchmemlint ${state.version}**, ${ORIGINS[state.server.source]}\n\n`);
        tooltip.appendText(`${state.server.location}\n`);
        tooltip.appendMarkdown(`\n${words(counts)}\n\n`);
        for (const [code, number] of [...counts.rules].slice(0, 10)) {
          tooltip.appendMarkdown(`- ${code}: ${number}\n`);
        }
        break;
      case "starting":
        bar.text = `$(loading~spin) ${SOURCE}`;
        tooltip.appendMarkdown("torchmemlint starts\n");
        break;
      case "failed":
        bar.text = `$(error) ${SOURCE}`;
        bar.backgroundColor = new vscode.ThemeColor("statusBarItem.errorBackground");
        bar.command = "torchmemlint.showLogs";
        tooltip.appendText(`${state.why}\n`);
    }
    tooltip.appendMarkdown("\n[Restart](command:torchmemlint.restart) · [Log](command:torchmemlint.showLogs)");
    bar.tooltip = tooltip;
    bar.show();
  }

  dispose(): void {
    clearTimeout(this.pending);
    vscode.Disposable.from(...this.subscriptions).dispose();
  }
}

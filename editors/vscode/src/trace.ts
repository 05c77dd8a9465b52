/** The channel that shows the messages between VS Code and the server. */

import * as vscode from "vscode";
import { SECTION } from "./settings";

/**
 * The client traces only into a channel whose level is `Trace`, which users would have to set in a menu of its own.
 * This one says so of itself as long as the setting `torchmemlint.trace.server` is on.
 */
export class TraceChannel implements vscode.LogOutputChannel, vscode.Disposable {
  private readonly inner: vscode.LogOutputChannel;
  private readonly changed = new vscode.EventEmitter<vscode.LogLevel>();
  private readonly subscriptions: { dispose(): unknown }[];

  readonly onDidChangeLogLevel = this.changed.event;

  constructor(readonly name: string) {
    this.inner = vscode.window.createOutputChannel(name, { log: true });
    this.subscriptions = [
      this.inner,
      this.changed,
      this.inner.onDidChangeLogLevel(() => {
        this.changed.fire(this.logLevel);
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration(`${SECTION}.trace.server`)) {
          this.changed.fire(this.logLevel);
        }
      }),
    ];
  }

  get logLevel(): vscode.LogLevel {
    const setting = vscode.workspace.getConfiguration(SECTION).get<string>("trace.server", "off");
    return setting === "off" ? this.inner.logLevel : vscode.LogLevel.Trace;
  }

  trace(message: string, ...rest: unknown[]): void {
    if (this.inner.logLevel === vscode.LogLevel.Trace) {
      this.inner.trace(message, ...rest);
    } else {
      this.inner.info(message, ...rest);
    }
  }

  debug(message: string, ...rest: unknown[]): void {
    this.inner.debug(message, ...rest);
  }

  info(message: string, ...rest: unknown[]): void {
    this.inner.info(message, ...rest);
  }

  warn(message: string, ...rest: unknown[]): void {
    this.inner.warn(message, ...rest);
  }

  error(error: string | Error, ...rest: unknown[]): void {
    this.inner.error(error, ...rest);
  }

  append(value: string): void {
    this.inner.append(value);
  }

  appendLine(value: string): void {
    this.inner.appendLine(value);
  }

  replace(value: string): void {
    this.inner.replace(value);
  }

  clear(): void {
    this.inner.clear();
  }

  show(columnOrFocus?: vscode.ViewColumn | boolean, preserveFocus?: boolean): void {
    this.inner.show(typeof columnOrFocus === "boolean" ? columnOrFocus : preserveFocus);
  }

  hide(): void {
    this.inner.hide();
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }
}

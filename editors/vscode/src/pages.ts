/** A rule's page, in VS Code's Markdown preview. */

import * as vscode from "vscode";
import type { Page } from "./rules";

const SCHEME = "torchmemlint-rule";

export class Pages implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "";
  }

  async show({ code, markdown }: Page): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${code}.md` });
    this.texts.set(uri.path, markdown);
    try {
      await vscode.commands.executeCommand("markdown.showPreview", uri);
    } catch {
      // The built-in Markdown extension can be turned off.
      await vscode.window.showTextDocument(uri, { preview: true });
    }
  }

  dispose(): void {
    this.registration.dispose();
  }
}

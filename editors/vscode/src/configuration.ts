/** VS Code's settings, as `settings` reads them. */

import { homedir } from "node:os";
import * as vscode from "vscode";
import {
  type InitializationOptions,
  type Settings,
  SECTION,
  initializationOptions,
  readSettings,
} from "./settings";

/** The settings of a folder, or without one those of the window. */
export function settingsOf(folder: vscode.WorkspaceFolder | undefined): Settings {
  const section = vscode.workspace.getConfiguration(SECTION, folder?.uri ?? null);
  const folders = vscode.workspace.workspaceFolders ?? [];
  return readSettings((key) => section.get(key), {
    workspaceFolder: (folder ?? folders[0])?.uri.fsPath ?? null,
    workspaceFolders: Object.fromEntries(folders.map(({ name, uri }) => [name, uri.fsPath])),
    userHome: homedir(),
    env: process.env,
  });
}

export function folderSettings(): { uri: string; settings: Settings }[] {
  const folders = vscode.workspace.workspaceFolders ?? [];
  return folders.map((folder) => ({ uri: folder.uri.toString(), settings: settingsOf(folder) }));
}

export function allSettings(): InitializationOptions {
  return initializationOptions(settingsOf(undefined), folderSettings());
}

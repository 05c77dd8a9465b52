/** The interpreter that is chosen in Microsoft's Python extension, where that is installed. */

import * as vscode from "vscode";

const PYTHON_EXTENSION = "ms-python.python";

/** As much of that extension's API as is used here; see https://github.com/microsoft/vscode-python/wiki/Python-Environment-APIs */
interface PythonApi {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(environment: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

export class ChosenPython implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private subscription: vscode.Disposable | undefined;

  /** Fired when another interpreter is chosen. */
  readonly onDidChange = this.changed.event;

  /** The path of the interpreter for a folder, or null. */
  async interpreter(folder: vscode.Uri | undefined): Promise<string | null> {
    const api = await this.api();
    if (api === null) {
      return null;
    }
    const resolved = await api.environments.resolveEnvironment(api.environments.getActiveEnvironmentPath(folder));
    return resolved?.executable.uri?.fsPath ?? null;
  }

  static get isInstalled(): boolean {
    return vscode.extensions.getExtension(PYTHON_EXTENSION) !== undefined;
  }

  private async api(): Promise<PythonApi | null> {
    const extension = vscode.extensions.getExtension<Partial<PythonApi>>(PYTHON_EXTENSION);
    if (extension === undefined) {
      return null;
    }
    const api = extension.isActive ? extension.exports : await extension.activate();
    const { environments } = api;
    if (environments === undefined) {
      return null;
    }
    this.subscription ??= environments.onDidChangeActiveEnvironmentPath(() => {
      this.changed.fire();
    });
    return { environments };
  }

  dispose(): void {
    this.subscription?.dispose();
    this.changed.dispose();
  }
}

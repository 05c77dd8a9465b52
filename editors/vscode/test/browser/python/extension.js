const vscode = require("vscode");

const SETTING = "python.defaultInterpreterPath";

function chosen() {
  return vscode.workspace.getConfiguration().get(SETTING);
}

exports.activate = (context) => {
  const changed = new vscode.EventEmitter();
  const follow = vscode.workspace.onDidChangeConfiguration((event) => {
    if (event.affectsConfiguration(SETTING)) {
      changed.fire({ path: chosen() });
    }
  });
  context.subscriptions.push(changed, follow);
  return {
    ready: Promise.resolve(),
    environments: {
      getActiveEnvironmentPath: () => ({ id: chosen(), path: chosen() }),
      resolveEnvironment: ({ path }) =>
        Promise.resolve(path === "" ? undefined : { path, executable: { uri: vscode.Uri.file(path) } }),
      onDidChangeActiveEnvironmentPath: changed.event,
    },
  };
};

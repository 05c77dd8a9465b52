/**
 * The server that this machine has, found as the extension finds it and spoken to with Node's library of the protocol,
 * which the extension's client stands on. `TORCHMEMLINT` names an executable, otherwise it is looked for on the PATH.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { after, before, suite, test } from "node:test";
import { pathToFileURL } from "node:url";
import {
  type CodeAction,
  CodeActionRequest,
  CodeActionResolveRequest,
  ConfigurationRequest,
  DidChangeConfigurationNotification,
  DidChangeTextDocumentNotification,
  DidOpenNotebookDocumentNotification,
  DidOpenTextDocumentNotification,
  DocumentDiagnosticRequest,
  ExecuteCommandRequest,
  ExitNotification,
  HoverRequest,
  type InitializeResult,
  InitializeRequest,
  InitializedNotification,
  NotebookCellKind,
  type ProtocolConnection,
  RegistrationRequest,
  ApplyWorkspaceEditRequest,
  ShutdownRequest,
  type TextEdit,
  type WorkspaceEdit,
  createProtocolConnection,
  type Diagnostic,
  DiagnosticRefreshRequest,
} from "vscode-languageserver-protocol/node";
import { type Server, type Wishes, findServer, summary } from "../../src/discovery";
import { thisMachine } from "../../src/machine";
import { isPage, parseRules } from "../../src/rules";
import { initializationOptions, readSettings, serverSettings } from "../../src/settings";

const EXTENSION = process.cwd();
const BUNDLED = path.join(EXTENSION, "bundled");
const PROGRAM = readFileSync(path.join(EXTENSION, "..", "example", "train.py"), "utf8");
const LEAK = PROGRAM.split("\n").findIndex((line) => line.includes("running_loss += loss"));
const NAMED = process.env.TORCHMEMLINT;
const VARIABLES = { workspaceFolder: null, workspaceFolders: {}, userHome: "/", env: {} };

const settings = (values: Record<string, unknown> = {}) => readSettings((key) => values[key], VARIABLES);

function wishes(more: Partial<Wishes> = {}): Wishes {
  const named = NAMED === undefined ? [] : [NAMED];
  return { path: named, importStrategy: "fromEnvironment", interpreters: [], bundled: BUNDLED, bundle: null, ...more };
}

/** A text after edits, which are given for the text as it was. */
function edited(text: string, edits: readonly TextEdit[]): string {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const offset = ({ line, character }: { line: number; character: number }) => (starts[line] ?? text.length) + character;
  return [...edits]
    .sort((a, b) => offset(b.range.start) - offset(a.range.start))
    .reduce((all, { range, newText }) => all.slice(0, offset(range.start)) + newText + all.slice(offset(range.end)), text);
}

function editsOf(edit: WorkspaceEdit | undefined, uri: string): TextEdit[] {
  const changes = edit?.documentChanges?.flatMap((change) =>
    "edits" in change && change.textDocument.uri === uri ? (change.edits as TextEdit[]) : [],
  );
  return changes ?? edit?.changes?.[uri] ?? [];
}

/** A client with as much as the tests need of what VS Code has. */
class Client {
  readonly process;
  readonly connection: ProtocolConnection;
  readonly applied: WorkspaceEdit[] = [];
  refreshed = 0;
  answers = serverSettings(settings());
  log = "";

  constructor(server: Server) {
    this.process = spawn(server.command, server.args, { stdio: "pipe" });
    this.process.stderr.on("data", (data: Buffer) => (this.log += data.toString()));
    this.connection = createProtocolConnection(this.process.stdout, this.process.stdin);
    this.connection.onRequest(ConfigurationRequest.type, ({ items }) => items.map(() => ({ ...this.answers })));
    this.connection.onRequest(RegistrationRequest.type, () => undefined);
    this.connection.onRequest(DiagnosticRefreshRequest.type, () => {
      this.refreshed += 1;
    });
    this.connection.onRequest(ApplyWorkspaceEditRequest.type, ({ edit }) => {
      this.applied.push(edit);
      return { applied: true };
    });
    this.connection.listen();
  }

  async begin(folder: string): Promise<InitializeResult> {
    const uri = pathToFileURL(folder).toString();
    const result = await this.connection.sendRequest(InitializeRequest.type, {
      processId: process.pid,
      // eslint-disable-next-line @typescript-eslint/no-deprecated -- the protocol still asks for it
      rootUri: uri,
      workspaceFolders: [{ uri, name: "example" }],
      initializationOptions: initializationOptions(settings(), [{ uri, settings: settings() }]),
      capabilities: {
        workspace: {
          configuration: true,
          workspaceFolders: true,
          applyEdit: true,
          workspaceEdit: { documentChanges: true },
          didChangeConfiguration: { dynamicRegistration: true },
          diagnostics: { refreshSupport: true },
        },
        textDocument: {
          diagnostic: { relatedDocumentSupport: false },
          codeAction: {
            codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix", "source.fixAll"] } },
            resolveSupport: { properties: ["edit"] },
            dataSupport: true,
            isPreferredSupport: true,
          },
        },
        notebookDocument: { synchronization: {} },
      },
    });
    await this.connection.sendNotification(InitializedNotification.type, {});
    return result;
  }

  async open(uri: string, text: string): Promise<void> {
    const textDocument = { uri, languageId: "python", version: 1, text };
    await this.connection.sendNotification(DidOpenTextDocumentNotification.type, { textDocument });
  }

  async problems(uri: string): Promise<Diagnostic[]> {
    const report = await this.connection.sendRequest(DocumentDiagnosticRequest.type, { textDocument: { uri } });
    assert.equal(report.kind, "full");
    return report.items;
  }

  async actions(uri: string, diagnostics: Diagnostic[], only: string[]): Promise<CodeAction[]> {
    const range = diagnostics[0]?.range ?? { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } };
    const context = { diagnostics, only };
    const found = await this.connection.sendRequest(CodeActionRequest.type, { textDocument: { uri }, range, context });
    return (found ?? []).filter((action): action is CodeAction => !("command" in action && typeof action.command === "string"));
  }

  async end(): Promise<number | null> {
    const ended = new Promise<number | null>((resolve) => this.process.once("exit", resolve));
    await this.connection.sendRequest(ShutdownRequest.type);
    await this.connection.sendNotification(ExitNotification.type);
    return ended;
  }
}

const codes = (problems: readonly Diagnostic[]) => problems.map(({ code }) => String(code)).sort();

const { server: found, attempts } = await findServer(wishes(), thisMachine());
const none = found === null ? `no torchmemlint with a language server: ${summary(attempts)}` : false;

void suite("the real server", { skip: none, timeout: 60_000 }, () => {
  let client: Client;
  let folder: string;
  let uri: string;
  let capabilities: InitializeResult["capabilities"];

  before(async () => {
    assert.ok(found);
    folder = mkdtempSync(path.join(tmpdir(), "torchmemlint-client-"));
    writeFileSync(path.join(folder, "train.py"), PROGRAM);
    uri = pathToFileURL(path.join(folder, "train.py")).toString();
    client = new Client(found);
    const result = await client.begin(folder);
    capabilities = result.capabilities;
    assert.deepEqual(result.serverInfo, { name: "torchmemlint", version: found.version });
    await client.open(uri, PROGRAM);
  });

  after(async () => {
    assert.equal(await client.end(), 0, client.log);
    rmSync(folder, { recursive: true, force: true });
  });

  void test("it can do what the extension counts on", () => {
    assert.ok(capabilities.diagnosticProvider);
    assert.ok(capabilities.notebookDocumentSync);
    assert.ok(capabilities.hoverProvider);
    assert.deepEqual(
      ["fixAll", "explain", "debug"].map((name) => `torchmemlint.server.${name}`).sort(),
      [...(capabilities.executeCommandProvider?.commands ?? [])].sort(),
    );
  });

  void test("problems have codes, links, places that led to them, and severities", async () => {
    const problems = await client.problems(uri);
    assert.deepEqual(codes(problems), ["TML101", "TML105", "TML201", "TML301"]);
    const leak = problems.find(({ code }) => code === "TML101");
    assert.equal(leak?.source, "torchmemlint");
    assert.equal(leak.severity, 1);
    assert.equal(leak.range.start.line, LEAK);
    assert.match(leak.codeDescription?.href ?? "", /^https:.*TML101/);
    assert.ok((leak.relatedInformation ?? []).length > 0);
  });

  void test("the quick fix is resolved when it is chosen, and mends the program", async () => {
    const leak = (await client.problems(uri)).filter(({ code }) => code === "TML101");
    const actions = await client.actions(uri, leak, ["quickfix"]);
    assert.deepEqual(
      actions.map(({ title }) => title),
      [
        "Fix TML101: Detach `loss` from its graph",
        "Ignore TML101 on this line",
        "Ignore TML101 in this file",
        "Explain TML101",
      ],
    );
    const [fix] = actions;
    assert.ok(fix);
    assert.equal(fix.isPreferred, true);
    assert.equal(fix.edit, undefined);
    const resolved = await client.connection.sendRequest(CodeActionResolveRequest.type, fix);
    assert.match(edited(PROGRAM, editsOf(resolved.edit, uri)), /running_loss \+= loss\.detach\(\)/);
  });

  void test("fix all applies the safe fixes, as an action and as a command", async () => {
    const [action] = await client.actions(uri, [], ["source.fixAll.torchmemlint"]);
    assert.equal(action?.kind, "source.fixAll.torchmemlint");
    const resolved = await client.connection.sendRequest(CodeActionResolveRequest.type, action);
    const fixed = edited(PROGRAM, editsOf(resolved.edit, uri));
    assert.match(fixed, /loss\.detach\(\)/);
    assert.match(fixed, /@torch\.no_grad\(\)\ndef accuracy/);
    assert.match(fixed, /retain_graph=True/, "an unsafe fix was applied");

    const done: unknown = await client.connection.sendRequest(ExecuteCommandRequest.type, {
      command: "torchmemlint.server.fixAll",
      arguments: [uri],
    });
    assert.equal(done, true);
    assert.equal(edited(PROGRAM, editsOf(client.applied.at(-1), uri)), fixed);
  });

  void test("hovering says what happens and why, with a link", async () => {
    const position = { line: LEAK, character: 14 };
    const hover = await client.connection.sendRequest(HoverRequest.type, { textDocument: { uri }, position });
    assert.ok(hover !== null && typeof hover.contents === "object" && "value" in hover.contents);
    assert.match(hover.contents.value, /^\*\*TML101\*\* graph-accumulation \(error\)\n\n`running_loss/);
    assert.match(hover.contents.value, /\n- why: .*\n- fix \(safe\): .*\n\n\[Learn more\]\(https:.*TML101\/\)$/s);
  });

  void test("a rule is explained with a page, and the server tells about itself", async () => {
    const run = (command: string, args: unknown[]): Promise<unknown> =>
      client.connection.sendRequest(ExecuteCommandRequest.type, { command, arguments: args as string[] });
    const page = await run("torchmemlint.server.explain", ["TML105"]);
    assert.ok(isPage(page));
    assert.match(page.markdown, /needless-retain-graph/);
    assert.match(String(await run("torchmemlint.server.debug", [])), /torchmemlint/);
  });

  void test("edits are followed, half-typed ones too", async () => {
    const change = (version: number, text: string) =>
      client.connection.sendNotification(DidChangeTextDocumentNotification.type, {
        textDocument: { uri, version },
        contentChanges: [{ text }],
      });
    await change(2, PROGRAM.replace("running_loss += loss", "running_loss += loss.item()"));
    assert.deepEqual(codes(await client.problems(uri)), ["TML105", "TML201", "TML301"]);
    await change(3, PROGRAM.replace("running_loss += loss", "running_loss += loss.item("));
    await client.problems(uri);
    await change(4, PROGRAM);
    assert.deepEqual(codes(await client.problems(uri)), ["TML101", "TML105", "TML201", "TML301"]);
  });

  void test("settings are changed while it runs", async () => {
    const tell = async (values: Record<string, unknown>) => {
      client.answers = serverSettings(settings(values));
      await client.connection.sendNotification(DidChangeConfigurationNotification.type, {
        settings: { torchmemlint: client.answers },
      });
    };
    const until = async (wanted: string[]) => {
      let last: string[] = [];
      for (let tries = 0; tries < 100; tries += 1) {
        last = codes(await client.problems(uri));
        if (last.join() === wanted.join()) {
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      assert.deepEqual(last, wanted);
    };
    await tell({ ignore: ["TML105", "TML301"] });
    await until(["TML101", "TML201"]);
    await tell({ select: ["TML2"] });
    await until(["TML201"]);
    await tell({ enable: false });
    await until([]);
    await tell({});
    await until(["TML101", "TML105", "TML201", "TML301"]);
    assert.ok(client.refreshed > 0, "the client was never asked to look again");
  });

  void test("the cells of a notebook are one program", async () => {
    const notebook = pathToFileURL(path.join(folder, "train.ipynb")).toString();
    const texts = [
      "import torch\nfrom torch import nn\nmodel = nn.Linear(2, 2)\ntotal = 0.0\n",
      "for x, y in loader:\n    loss = nn.functional.mse_loss(model(x), y)\n    loss.backward()\n    total += loss\nprint(total)\n",
    ];
    const cells = texts.map((text, index) => ({
      uri: `vscode-notebook-cell:/train.ipynb#${index}`,
      languageId: "python",
      version: 1,
      text,
    }));
    await client.connection.sendNotification(DidOpenNotebookDocumentNotification.type, {
      notebookDocument: {
        uri: notebook,
        notebookType: "jupyter-notebook",
        version: 1,
        cells: cells.map((cell) => ({ kind: NotebookCellKind.Code, document: cell.uri })),
      },
      cellTextDocuments: cells,
    });
    assert.deepEqual(codes(await client.problems(cells[0]?.uri ?? "")), []);
    assert.deepEqual(codes(await client.problems(cells[1]?.uri ?? "")), ["TML101"]);
  });

  void test("the rules are listed by the command line, as the extension lists them", async () => {
    assert.ok(found);
    const args = [...found.args.slice(0, -1), "rule", "--all", "--output-format", "json"];
    const outcome = await thisMachine().run(found.command, args);
    assert.equal(outcome.status, 0, outcome.stderr);
    const rules = parseRules(outcome.stdout);
    assert.ok(rules.length > 20 && rules.some(({ code }) => code === "TML101"));
  });
});

/** The interpreter that the executable stands beside, or the one that `TORCHMEMLINT_PYTHON` names. */
const interpreter = process.env.TORCHMEMLINT_PYTHON ?? path.join(path.dirname(found?.command ?? ""), "python");
const probed = await findServer(wishes({ path: [], interpreters: [{ path: interpreter, from: "TORCHMEMLINT_PYTHON" }] }), {
  ...thisMachine(),
  env: { ...process.env, PATH: "" },
});

void suite("an interpreter with torchmemlint", { skip: probed.server === null ? summary(probed.attempts) : false }, () => {
  void test("runs it, and takes nothing from the folder that it is started in", async () => {
    assert.ok(probed.server);
    assert.equal(probed.server.source, "environment");
    const folder = mkdtempSync(path.join(tmpdir(), "torchmemlint-shadow-"));
    writeFileSync(path.join(folder, "click.py"), "raise SystemExit('the project was imported')\n");
    const before = process.cwd();
    process.chdir(folder);
    try {
      const args = [...probed.server.args.slice(0, -1), "--version"];
      const outcome = await thisMachine().run(probed.server.command, args);
      assert.equal(outcome.stdout.trim(), `torchmemlint ${probed.server.version}`, outcome.stderr);
    } finally {
      process.chdir(before);
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

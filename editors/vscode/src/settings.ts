/** The settings: read and checked here, handed to the server in its own form. Nothing in this file needs VS Code. */

export const SECTION = "torchmemlint";

const CONFIDENCES = ["certain", "likely", "possible"] as const;

export interface Settings {
  enable: boolean;
  run: "onType" | "onSave";
  fixAll: boolean;
  configuration: string | null;
  select: string[];
  extendSelect: string[];
  ignore: string[];
  confidence: (typeof CONFIDENCES)[number] | null;
  showSyntaxErrors: boolean;
  codeLens: boolean;
  workspaceDiagnostics: "open" | "all";
  importStrategy: "fromEnvironment" | "useBundled";
  path: string[];
  interpreter: string[];
  logLevel: "error" | "warning" | "info" | "debug";
}

/** What the server is told; the rest of the settings is about finding it. */
export type ServerSettings = Omit<Settings, "path" | "interpreter" | "importStrategy">;

export interface InitializationOptions {
  settings: ServerSettings;
  workspaces: ({ workspace: string } & ServerSettings)[];
}

/** What `${...}` stands for in paths. */
export interface Variables {
  workspaceFolder: string | null;
  workspaceFolders: Readonly<Record<string, string>>;
  userHome: string;
  env: Readonly<Record<string, string | undefined>>;
}

/** The value of a key, without the section's name in front, as the user has set it. */
export type Reader = (key: string) => unknown;

/** Those that decide which program runs, and how: a change of them starts it anew. All others are told to it. */
const RESTARTING = ["path", "interpreter", "importStrategy", "logLevel"] as const;

const TOLD = [
  "enable",
  "run",
  "fixAll",
  "configuration",
  "select",
  "extendSelect",
  "ignore",
  "confidence",
  "showSyntaxErrors",
  "codeLens",
  "workspaceDiagnostics",
] as const;

export function readSettings(read: Reader, variables: Variables): Settings {
  const path = (text: string) => substitute(text, variables);
  const configuration = read("configuration");
  return {
    enable: flag(read("enable"), true),
    run: oneOf(read("run"), ["onType", "onSave"]),
    fixAll: flag(read("fixAll"), true),
    configuration: typeof configuration === "string" && configuration.trim() !== "" ? path(configuration) : null,
    select: texts(read("select")),
    extendSelect: texts(read("extendSelect")),
    ignore: texts(read("ignore")),
    confidence: CONFIDENCES.find((one) => one === read("confidence")) ?? null,
    showSyntaxErrors: flag(read("showSyntaxErrors"), true),
    codeLens: flag(read("codeLens"), true),
    workspaceDiagnostics: oneOf(read("workspaceDiagnostics"), ["open", "all"]),
    importStrategy: oneOf(read("importStrategy"), ["fromEnvironment", "useBundled"]),
    path: texts(read("path")).map(path),
    interpreter: texts(read("interpreter")).map(path),
    logLevel: oneOf(read("logLevel"), ["info", "error", "warning", "debug"]),
  };
}

export function serverSettings(settings: Settings): ServerSettings {
  const { path: _path, interpreter: _interpreter, importStrategy: _importStrategy, ...told } = settings;
  return told;
}

export function initializationOptions(
  common: Settings,
  folders: readonly { uri: string; settings: Settings }[],
): InitializationOptions {
  return {
    settings: serverSettings(common),
    workspaces: folders.map(({ uri, settings }) => ({ workspace: uri, ...serverSettings(settings) })),
  };
}

/** Whether any folder wants to be checked. Without folders the common settings decide. */
export function wanted(common: Settings, folders: readonly { settings: Settings }[]): boolean {
  return folders.length === 0 ? common.enable : folders.some(({ settings }) => settings.enable);
}

/** What has to happen after a change, where `affects` tells whether a setting is part of it. */
export function reaction(affects: (setting: string) => boolean): "restart" | "tell" | "nothing" {
  if (RESTARTING.some((key) => affects(`${SECTION}.${key}`))) {
    return "restart";
  }
  // The client itself follows `trace.server`; a change of it alone is of no concern to the server.
  return TOLD.some((key) => affects(`${SECTION}.${key}`)) ? "tell" : "nothing";
}

/** Replace `~` and `${...}`. What is not known stays as it is, so that the message about it can be understood. */
export function substitute(text: string, variables: Variables): string {
  const home = text === "~" || text.startsWith("~/") || text.startsWith("~\\");
  const expanded = home ? variables.userHome + text.slice(1) : text;
  return expanded.replace(/\$\{([^}]+)\}/g, (whole, name: string) => valueOf(name, variables) ?? whole);
}

function valueOf(name: string, variables: Variables): string | undefined {
  if (name.startsWith("env:")) {
    return variables.env[name.slice("env:".length)] ?? "";
  }
  if (name.startsWith("workspaceFolder:")) {
    return variables.workspaceFolders[name.slice("workspaceFolder:".length)];
  }
  if (name === "workspaceFolder") {
    return variables.workspaceFolder ?? undefined;
  }
  return name === "userHome" ? variables.userHome : undefined;
}

function flag(value: unknown, otherwise: boolean): boolean {
  return typeof value === "boolean" ? value : otherwise;
}

/** The value where it is one of those allowed, or else the first of them. */
function oneOf<T extends string>(value: unknown, allowed: readonly [T, ...T[]]): T {
  return allowed.find((one) => one === value) ?? allowed[0];
}

/** A list of texts; a single text is one of one, and what is not text is left out. */
function texts(value: unknown): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  return list.filter((one): one is string => typeof one === "string" && one.trim() !== "").map((one) => one.trim());
}

/**
 * Where torchmemlint is taken from. The order is that of ruff's extension: the setting `path`, the chosen Python
 * environment, the PATH, and the copy that came with the extension. Nothing in this file needs VS Code; what it asks
 * of the machine goes through `Machine`, so that the tests can build machines.
 */

export interface Machine {
  platform: NodeJS.Platform;
  arch: string;
  /** Whether the C library is musl, as on Alpine. */
  musl: boolean;
  env: Readonly<Record<string, string | undefined>>;
  isFile(path: string): Promise<boolean>;
  run(command: string, args: readonly string[]): Promise<Outcome>;
}

export interface Outcome {
  /** The exit status, or null where the program could not be started or did not end in time. */
  status: number | null;
  stdout: string;
  stderr: string;
}

export interface Wishes {
  path: readonly string[];
  importStrategy: "fromEnvironment" | "useBundled";
  /** Interpreters in the order of preference, each with what named it: "torchmemlint.interpreter", "the Python extension". */
  interpreters: readonly { path: string; from: string }[];
  /** The extension's folder `bundled`. */
  bundled: string;
  /** What `bundled/libs/bundle.json` says, or null where the extension came without a copy. */
  bundle: Bundle | null;
}

export interface Bundle {
  /** torchmemlint's version. */
  version: string;
  /** VS Code's name of the platform: `linux-x64`, `alpine-arm64`, `darwin-arm64`, `win32-x64`. */
  target: string;
  /** The versions of CPython that it has compiled modules for: `3.10`. */
  pythons: readonly string[];
}

export type Source = "setting" | "environment" | "PATH" | "bundled";

export interface Server {
  source: Source;
  /** What is run for the server; for another command of torchmemlint its last argument is replaced. */
  command: string;
  args: string[];
  version: string;
  /** The file that says where it is, for people. */
  location: string;
}

export interface Attempt {
  source: Source;
  location: string;
  /** Why it was not taken, or "taken". */
  outcome: string;
}

export interface Search {
  server: Server | null;
  attempts: Attempt[];
}

/** What `probe.py` prints. */
export interface Interpreter {
  version: [number, number, number];
  implementation: string;
  freeThreaded: boolean;
  executable: string;
  torchmemlint: string | null;
  server: boolean;
  pygls: string | null;
}

export const OLDEST_PYTHON: readonly [number, number] = [3, 10];
export const TAKEN = "taken";

export async function findServer(wishes: Wishes, machine: Machine): Promise<Search> {
  const attempts: Attempt[] = [];
  const searches = [
    () => ofSetting(wishes, machine, attempts),
    ...(wishes.importStrategy === "fromEnvironment"
      ? [() => ofEnvironment(wishes, machine, attempts), () => ofPath(machine, attempts)]
      : []),
    () => ofBundle(wishes, machine, attempts),
  ];
  for (const search of searches) {
    const server = await search();
    if (server !== null) {
      attempts.push({ source: server.source, location: server.location, outcome: TAKEN });
      return { server, attempts };
    }
  }
  return { server: null, attempts };
}

async function ofSetting(wishes: Wishes, machine: Machine, attempts: Attempt[]): Promise<Server | null> {
  for (const path of wishes.path) {
    const server = await executable(path, "setting", machine, attempts);
    if (server !== null) {
      return server;
    }
  }
  return null;
}

async function ofPath(machine: Machine, attempts: Attempt[]): Promise<Server | null> {
  const path = await which("torchmemlint", machine);
  if (path === null) {
    attempts.push({ source: "PATH", location: "torchmemlint", outcome: "is not on the PATH" });
    return null;
  }
  return executable(path, "PATH", machine, attempts);
}

/** An executable named `torchmemlint`, if it is one that has a server. */
async function executable(path: string, source: Source, machine: Machine, attempts: Attempt[]): Promise<Server | null> {
  const refuse = (outcome: string) => {
    attempts.push({ source, location: path, outcome });
    return null;
  };
  if (!(await machine.isFile(path))) {
    return refuse("does not exist");
  }
  const answer = await machine.run(path, ["server", "--version"]);
  const version = answer.status === 0 ? /^torchmemlint (\S+) \(pygls \S+\)/m.exec(answer.stdout)?.[1] : undefined;
  if (version === undefined) {
    const about = await machine.run(path, ["--version"]);
    const without = /^torchmemlint (\S+)/m.exec(about.stdout)?.[1];
    if (about.status !== 0 || without === undefined) {
      return refuse(`is not torchmemlint: \`--version\` ${told(about)}`);
    }
    return refuse(
      answer.stderr.includes("pygls")
        ? `is torchmemlint ${without} without its language server: ${told(answer)}`
        : `is torchmemlint ${without}, which is too old to have a language server`,
    );
  }
  return { source, command: path, args: ["server"], version, location: path };
}

async function ofEnvironment(wishes: Wishes, machine: Machine, attempts: Attempt[]): Promise<Server | null> {
  for (const { path, from } of wishes.interpreters) {
    const location = `${path} (${from})`;
    const probed = await probe(path, wishes, machine);
    const outcome = typeof probed === "string" ? probed : withoutServer(probed);
    if (typeof probed !== "string" && outcome === null) {
      const version = probed.torchmemlint ?? "";
      return { source: "environment", command: path, args: [script(wishes, "run.py", machine), "server"], version, location: path };
    }
    attempts.push({ source: "environment", location, outcome: outcome ?? "" });
  }
  return null;
}

/** Why an interpreter cannot run its own torchmemlint as a server, or null if it can. */
function withoutServer(interpreter: Interpreter): string | null {
  if (tooOld(interpreter)) {
    return `is Python ${interpreter.version.join(".")}; torchmemlint needs ${OLDEST_PYTHON.join(".")} or newer`;
  }
  if (interpreter.torchmemlint === null) {
    return "has no torchmemlint installed";
  }
  if (!interpreter.server) {
    return `has torchmemlint ${interpreter.torchmemlint}, which is too old to have a language server`;
  }
  if (interpreter.pygls === null) {
    return `has torchmemlint ${interpreter.torchmemlint} without its language server: pip install 'torchmemlint[lsp]'`;
  }
  return null;
}

/** The bundled copy, with the first interpreter that it fits: those wished for, then what the PATH has. */
async function ofBundle(wishes: Wishes, machine: Machine, attempts: Attempt[]): Promise<Server | null> {
  const location = script(wishes, "libs", machine);
  const refuse = (outcome: string) => {
    attempts.push({ source: "bundled", location, outcome });
    return null;
  };
  const { bundle } = wishes;
  if (bundle === null) {
    return refuse("this build of the extension came without a copy of torchmemlint");
  }
  const here = target(machine);
  if (bundle.target !== here) {
    return refuse(`the copy was made for ${bundle.target}, and this machine is ${here}`);
  }
  const found = await Promise.all(["python3", "python"].map((name) => which(name, machine)));
  const interpreters = [...wishes.interpreters.map(({ path }) => path), ...found.filter((path) => path !== null)];
  for (const path of new Set(interpreters)) {
    const probed = await probe(path, wishes, machine);
    const outcome = typeof probed === "string" ? probed : unfit(probed, bundle);
    if (outcome === null) {
      const args = [script(wishes, "run.py", machine), "--libs", "server"];
      return { source: "bundled", command: path, args, version: bundle.version, location };
    }
    attempts.push({ source: "bundled", location: path, outcome });
  }
  return interpreters.length > 0 ? null : refuse(`there is no Python to run it with; it fits ${fits(bundle)}`);
}

/** Why an interpreter cannot run the bundled copy, or null if it can. */
function unfit(interpreter: Interpreter, bundle: Bundle): string | null {
  const version = interpreter.version.slice(0, 2).join(".");
  if (interpreter.implementation !== "cpython") {
    return `is ${interpreter.implementation}; the bundled copy fits ${fits(bundle)}`;
  }
  if (interpreter.freeThreaded) {
    return `is a free-threaded CPython ${version}; the bundled copy fits ${fits(bundle)}`;
  }
  return bundle.pythons.includes(version) ? null : `is CPython ${version}; the bundled copy fits ${fits(bundle)}`;
}

export function fits(bundle: Bundle): string {
  const [last, ...others] = [...bundle.pythons].reverse();
  return `CPython ${others.length > 0 ? `${others.reverse().join(", ")} and ${last}` : last} on ${bundle.target}`;
}

/** VS Code's name of the platform that the extension runs on. */
export function target(machine: Machine): string {
  return `${machine.platform === "linux" && machine.musl ? "alpine" : machine.platform}-${machine.arch}`;
}

/** Ask an interpreter what it is. A text says why it cannot be told. */
async function probe(path: string, wishes: Wishes, machine: Machine): Promise<Interpreter | string> {
  if (!(await machine.isFile(path))) {
    return "does not exist";
  }
  const outcome = await machine.run(path, [script(wishes, "probe.py", machine)]);
  const line = outcome.stdout.trim().split("\n").at(-1) ?? "";
  try {
    const answer: unknown = JSON.parse(line);
    if (outcome.status === 0 && isInterpreter(answer)) {
      return answer;
    }
  } catch {
    // Said below.
  }
  return `is not a Python that works: it ${told(outcome)}`;
}

function isInterpreter(value: unknown): value is Interpreter {
  return typeof value === "object" && value !== null && "version" in value && Array.isArray(value.version);
}

function tooOld({ version: [major, minor] }: Interpreter): boolean {
  return major < OLDEST_PYTHON[0] || (major === OLDEST_PYTHON[0] && minor < OLDEST_PYTHON[1]);
}

/** What a program that failed has said, in one line. */
function told({ status, stdout, stderr }: Outcome): string {
  const said = (stderr.trim() || stdout.trim()).split("\n").at(-1)?.trim() ?? "";
  const ended = status === null ? "could not be run" : `ended with ${status}`;
  return said === "" ? ended : `${ended}: ${said.slice(0, 300)}`;
}

/** An executable on the PATH. Relative entries are passed over: they would be looked up in the user's project. */
export async function which(name: string, machine: Machine): Promise<string | null> {
  const windows = machine.platform === "win32";
  const variable = Object.keys(machine.env).find((key) => (windows ? key.toUpperCase() : key) === "PATH") ?? "PATH";
  const folders = (machine.env[variable] ?? "").split(windows ? ";" : ":");
  for (const folder of folders.filter((one) => (windows ? /^([A-Za-z]:)?[\\/]/ : /^\//).test(one))) {
    // Microsoft's stand-ins only open the store.
    if (windows && /\\WindowsApps\\?$/i.test(folder)) {
      continue;
    }
    const path = windows ? `${folder.replace(/[\\/]$/, "")}\\${name}.exe` : `${folder.replace(/\/$/, "")}/${name}`;
    if (await machine.isFile(path)) {
      return path;
    }
  }
  return null;
}

function script(wishes: Wishes, name: string, machine: Machine): string {
  return `${wishes.bundled}${machine.platform === "win32" ? "\\" : "/"}${name}`;
}

/** The line under an error message: what was tried, and why nothing came of it. */
export function summary(attempts: readonly Attempt[]): string {
  return attempts.map(({ source, location, outcome }) => `${source}: ${location} ${outcome}`).join("\n");
}

/** What to say when nothing was found: the reason that helps most, rather than all of them. */
export function complaint(search: Search): string {
  const { attempts } = search;
  const extra = attempts.find(({ outcome }) => outcome.includes("without its language server"));
  if (extra !== undefined) {
    return `${extra.location} ${extra.outcome.replace(/: .*/s, "")}. Install it with: pip install 'torchmemlint[lsp]'`;
  }
  const old = attempts.find(({ outcome }) => outcome.includes("too old to have"));
  if (old !== undefined) {
    return `${old.location} ${old.outcome}. Bring it up to date with: pip install --upgrade 'torchmemlint[lsp]'`;
  }
  const unfitting = attempts.find(({ outcome }) => /the bundled copy fits|the copy was made for|it fits/.test(outcome));
  const why = unfitting === undefined ? "" : ` (${unfitting.source === "bundled" ? "bundled copy: " : ""}${unfitting.location} ${unfitting.outcome})`;
  return `No torchmemlint was found${why}. Install it into your environment with: pip install 'torchmemlint[lsp]'`;
}

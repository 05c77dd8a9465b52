/** How many problems there are, and how that is said. Nothing in this file needs VS Code. */

/** As much of a diagnostic as is counted. */
export interface Problem {
  source?: string | undefined;
  /** VS Code's own number: 0 error, 1 warning, 2 information, 3 hint. */
  severity: number;
  code?: unknown;
}

export interface Counts {
  errors: number;
  warnings: number;
  infos: number;
  files: number;
  rules: ReadonlyMap<string, number>;
}

export const SOURCE = "torchmemlint";

/** Count what comes from torchmemlint among the problems of all files. */
export function count(files: Iterable<readonly Problem[]>): Counts {
  const totals = { errors: 0, warnings: 0, infos: 0, files: 0 };
  const rules = new Map<string, number>();
  for (const problems of files) {
    const ours = problems.filter((problem) => problem.source === SOURCE);
    totals.files += ours.length > 0 ? 1 : 0;
    for (const { severity, code } of ours) {
      totals[severity === 0 ? "errors" : severity === 1 ? "warnings" : "infos"] += 1;
      const name = codeOf(code);
      rules.set(name, (rules.get(name) ?? 0) + 1);
    }
  }
  return { ...totals, rules: new Map([...rules].sort(([a, m], [b, n]) => n - m || a.localeCompare(b))) };
}

/** The code of a diagnostic, which VS Code keeps together with its link. */
export function codeOf(code: unknown): string {
  if (typeof code === "object" && code !== null && "value" in code) {
    return String(code.value);
  }
  return typeof code === "string" || typeof code === "number" ? String(code) : "?";
}

export function total(counts: Counts): number {
  return counts.errors + counts.warnings + counts.infos;
}

/** What the status bar shows beside the name: an icon and a number for every severity that occurs. */
export function brief(counts: Counts): string {
  const parts = [
    counts.errors > 0 ? `$(error) ${counts.errors}` : "",
    counts.warnings > 0 ? `$(warning) ${counts.warnings}` : "",
    counts.infos > 0 ? `$(info) ${counts.infos}` : "",
  ].filter((part) => part !== "");
  return parts.length > 0 ? parts.join(" ") : "$(check)";
}

/** The same in words: "2 errors, 1 warning in 3 files". */
export function words(counts: Counts): string {
  if (total(counts) === 0) {
    return "no problems";
  }
  const parts = [
    plural(counts.errors, "error"),
    plural(counts.warnings, "warning"),
    plural(counts.infos, "piece of advice", "pieces of advice"),
  ].filter((part) => part !== "");
  return `${parts.join(", ")} in ${plural(counts.files, "file")}`;
}

function plural(number: number, one: string, many = `${one}s`): string {
  return number === 0 ? "" : `${number} ${number === 1 ? one : many}`;
}

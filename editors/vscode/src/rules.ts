/** The rules, as `torchmemlint rule --all --output-format json` tells them. Nothing in this file needs VS Code. */

export interface Rule {
  code: string;
  name: string;
  severity: string;
  default: boolean;
  fix: string | null;
  why: string;
  /** Its page, in Markdown. */
  explanation: string;
}

export interface Page {
  code: string;
  markdown: string;
}

export function parseRules(output: string): Rule[] {
  const answer: unknown = JSON.parse(output);
  if (!Array.isArray(answer) || !answer.every(isRule)) {
    throw new Error("torchmemlint's list of rules has an unknown form");
  }
  return answer;
}

function isRule(value: unknown): value is Rule {
  const keys = ["code", "name", "severity", "why", "explanation"] as const;
  return typeof value === "object" && value !== null && keys.every((key) => typeof (value as Partial<Rule>)[key] === "string");
}

/** Whether the server's answer to `torchmemlint.server.explain` is a page. */
export function isPage(value: unknown): value is Page {
  const keys = ["code", "markdown"] as const;
  return typeof value === "object" && value !== null && keys.every((key) => typeof (value as Partial<Page>)[key] === "string");
}

export interface Choice {
  label: string;
  description: string;
  detail: string;
  rule: Rule;
}

/** The rules to choose from; those named in `first`, which are under the cursor, come first. */
export function choices(rules: readonly Rule[], first: readonly string[]): Choice[] {
  const rank = ({ code }: Rule) => {
    const index = first.indexOf(code);
    return index < 0 ? first.length : index;
  };
  const sorted = [...rules].sort((a, b) => rank(a) - rank(b) || a.code.localeCompare(b.code));
  return sorted.map((rule) => ({
    label: rule.code,
    description: [rule.name, rule.severity, rule.default ? "" : "off by default"].filter((part) => part !== "").join(" · "),
    detail: rule.why,
    rule,
  }));
}

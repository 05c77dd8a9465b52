import assert from "node:assert/strict";
import { test } from "node:test";
import { brief, codeOf, count, total, words } from "../../src/counts";

const ours = (severity: number, code: unknown) => ({ source: "torchmemlint", severity, code });

void test("only what comes from torchmemlint is counted", () => {
  const counts = count([
    [ours(0, "TML101"), { source: "ruff", severity: 0, code: "F401" }, { severity: 1 }],
    [{ source: "Pylance", severity: 1, code: "reportMissingImports" }],
    [ours(1, "TML105"), ours(2, "TML403"), ours(3, "TML403")],
  ]);
  assert.deepEqual({ ...counts, rules: [...counts.rules] }, {
    errors: 1,
    warnings: 1,
    infos: 2,
    files: 2,
    rules: [
      ["TML403", 2],
      ["TML101", 1],
      ["TML105", 1],
    ],
  });
  assert.equal(total(counts), 4);
});

void test("a code comes with its link, or alone", () => {
  assert.equal(codeOf({ value: "TML101", target: "https://example.org" }), "TML101");
  assert.equal(codeOf("TML101"), "TML101");
  assert.equal(codeOf(7), "7");
  assert.equal(codeOf(undefined), "?");
});

void test("the numbers in the status bar name the severities that occur", () => {
  assert.equal(brief(count([])), "$(check)");
  assert.equal(brief(count([[ours(0, "a"), ours(0, "b"), ours(2, "c")]])), "$(error) 2 $(info) 1");
  assert.equal(brief(count([[ours(1, "a")]])), "$(warning) 1");
});

void test("the numbers in words", () => {
  assert.equal(words(count([[]])), "no problems");
  assert.equal(words(count([[ours(0, "a")]])), "1 error in 1 file");
  assert.equal(
    words(count([[ours(0, "a"), ours(0, "a"), ours(1, "b")], [ours(2, "c")]])),
    "2 errors, 1 warning, 1 piece of advice in 2 files",
  );
});

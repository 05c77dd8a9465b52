import assert from "node:assert/strict";
import { test } from "node:test";
import { type Rule, choices, isPage, parseRules } from "../../src/rules";

const rule = (code: string, on = true): Rule => ({
  code,
  name: `name-of-${code}`,
  severity: "error",
  default: on,
  fix: null,
  why: "because",
  explanation: "# page",
});

void test("the list of the command line is read, and anything else refused", () => {
  assert.deepEqual(parseRules(JSON.stringify([rule("TML101")])), [rule("TML101")]);
  assert.throws(() => parseRules("[{}]"), /unknown form/);
  assert.throws(() => parseRules('{"rules": []}'), /unknown form/);
  assert.throws(() => parseRules("Traceback"), SyntaxError);
});

void test("rules under the cursor come first, the others by code", () => {
  const list = choices([rule("TML201"), rule("TML101"), rule("TML301", false), rule("TML105")], ["TML301", "TML201"]);
  assert.deepEqual(
    list.map(({ label }) => label),
    ["TML301", "TML201", "TML101", "TML105"],
  );
  assert.equal(list[0]?.description, "name-of-TML301 · error · off by default");
});

void test("only a whole page is shown", () => {
  assert.equal(isPage({ code: "TML101", markdown: "# x" }), true);
  assert.equal(isPage({ code: "TML101" }), false);
  assert.equal(isPage(null), false);
});

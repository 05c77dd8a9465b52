"""README.md and docs/ say what is so."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.tools import tool
from torchmemlint.config.layers import read_layer
from torchmemlint.config.options import OPTIONS
from torchmemlint.rules import docs
from torchmemlint.rules.base import Rule
from torchmemlint.rules.registry import all_rules
from torchmemlint.runtime.experiments.catalogue import WITHOUT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
TOOL = tool("documents")
NAMES = [document.relative_to(ROOT).as_posix() for document in TOOL.DOCUMENTS]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_what_the_program_says_is_up_to_date(name: str) -> None:
    text = text_of(name)
    assert TOOL.filled(text, {}) == text, "run python tools/documents.py"
    begun = re.findall(r"<!-- (.*?): written by", text)
    assert begun == re.findall(r"<!-- end of (.*?) -->", text)
    assert set(begun) <= set(TOOL.MAKERS)


def test_a_stale_place_is_noticed() -> None:
    text = text_of("README.md")
    stale = text.replace("Found 1 problem", "Found 2 problems")
    assert stale != text
    assert TOOL.filled(stale, {}) == text


def test_a_run_of_the_benchmark_is_kept_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = {
        "date": "a day",
        "cpu": "a chip",
        "cpus": 2,
        "memory_bytes": 8e9,
        "system": "OS",
        "python": "3",
        "load": 0,
    }
    runs = [{"seconds": seconds, "process_peak": 5e6, "total_peak": 9e6} for seconds in (4, 2, 3)]
    tools = [
        {"name": "torchmemlint", "version": "1", "runs": runs},
        {"name": "other", "version": "2", "runs": runs[:1]},
    ]
    monkeypatch.setattr(TOOL.BENCHMARK, "KEPT", tmp_path / "benchmark.json")
    TOOL.BENCHMARK.keep({"machine": machine, "trees": [{"name": "x-1", "files": 7, "bytes": 2e6, "tools": tools}]})
    text = "a\n<!-- benchmark: written by tools/documents.py -->\nold\n<!-- end of benchmark -->\nb\n"
    shown = TOOL.filled(text, {})
    assert "a day · a chip, 2 CPUs, 8 GB" in shown
    assert "### x-1: 7 files, 2.0 MB" in shown
    assert "| torchmemlint 1 | 3 | 3.00 | 2.00 to 4.00 | 1.00 | - | 5 | 9 |" in shown
    assert "| other 2 | 1 | 4.00 | 4.00 to 4.00 | 1.33 | - | 5 | 9 |" in shown
    assert TOOL.filled(shown, {}) == shown


def test_every_rule_and_every_option_is_there() -> None:
    for rule in all_rules():
        assert f"| [{rule.code}]({rule.code}.md) | **{rule.name}**: " in text_of("docs/rules/README.md")
    for option in OPTIONS:
        assert f"### `{option.key}`" in text_of("docs/configuration.md")


OTHER_TOML = ("docs/editors.md", "docs/diff.md")  # the settings of editors, and budgets


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OTHER_TOML])
def test_configuration_examples_are_valid(name: str) -> None:
    for block in re.findall(r"^```toml\n(.*?)^```", text_of(name), re.MULTILINE | re.DOTALL):
        table = tomllib.loads(block)["tool"]["torchmemlint"]
        read_layer(table, name)


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text_of(name)):
        assert (ROOT / name).parent.joinpath(target).exists(), target


def test_every_page_is_linked_from_one_of_the_front_pages() -> None:
    for name in NAMES:
        if name.startswith("docs/") and name != "docs/README.md":
            assert f"({name})" in text_of("README.md") or f"({name[5:]})" in text_of("docs/README.md")


def test_the_pages_of_the_rules_are_up_to_date() -> None:
    for name, make in TOOL.PAGES.items():
        assert make() == text_of(name), "run python tools/documents.py"
    assert TOOL.left_over() == []


FIRST_SCREEN = 35  # lines of a terminal of 100 columns
ANSWERS = ("Cost: ", "Fix: ", "Leave it ")


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_page_answers_on_its_first_screen(rule: Rule) -> None:
    """What it costs, how to fix it and when not to care, in a terminal and on the site."""
    shown = docs.shown(docs.to_markdown(docs.page(rule)), color=True)
    first = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()[:FIRST_SCREEN]
    assert [answer for answer in ANSWERS if not any(answer in line for line in first)] == []
    site = text_of(f"docs/rules/{rule.code}.md").partition("## What it does")[0]
    assert [answer for answer in ANSWERS if f"**{answer.strip(': ')}**" not in site] == []


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_page_says_what_was_measured_or_why_not(rule: Rule) -> None:
    """Costs come from experiments; a page words its own only where there is none."""
    text = docs.page(rule).in_short
    costs = re.findall(r"^- \*\*Cost\*\*: (.*)$", text, re.MULTILINE)
    measured = docs.costs(rule.code)
    assert costs[: len(measured)] == measured
    assert len(costs) == (len(measured) or 1)
    assert all(re.search(r"\d", cost) for cost in measured)
    assert all("measured on an NVIDIA" in cost or "on the simulated card" in cost for cost in measured)
    assert bool(measured) == (rule.code not in WITHOUT or rule.code in TOOL.RULE_PAGES.LIKE)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_rule_lists_when_it_stays_silent(rule: Rule) -> None:
    text = docs.page(rule).when_it_stays_silent
    assert rule.code.startswith("TML0") or "\n- " in f"\n{text}"


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_cost_is_that_of_the_experiment(rule: Rule) -> None:
    code = TOOL.RULE_PAGES.LIKE.get(rule.code, rule.code)
    kept = json.loads(text_of("docs/impact.json"))
    found = [one for run in ("cuda", "simulated") for one in kept[run]["outcomes"] if one["code"] == code]
    costs = docs.costs(rule.code)
    assert bool(costs) == bool(found)
    for cost in costs:
        assert any(f"({one['title']}" in cost for one in found)


@pytest.mark.parametrize("path", TOOL.FILES, ids=lambda path: path.name)
def test_files_that_are_written_as_a_whole_are_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == TOOL.FILES[path](), "run python tools/documents.py"


PRECISION = json.loads(text_of("docs/precision.json"))


@pytest.mark.parametrize("name", PRECISION)
def test_what_was_read_adds_up(name: str) -> None:
    place = f"<!-- precision-{name}: written by"
    assert sum(place in text_of(f"docs/{page}.md") for page in ("precision", "precision-history")) == 1
    columns = set(PRECISION[name]["columns"])
    for row in PRECISION[name]["rows"]:
        assert set(row) <= columns | {"note", "as-met"}, row
        for findings, parts in PARTS.items():
            told = [row[part] for part in parts if part in row]
            assert sum(told) <= row.get(findings, 0), row
            if told and columns & set(parts[1:]):
                assert sum(told) == row[findings], row


PARTS = {
    "findings": ("true", "false", "unclear", "trifling"),
    "met": ("met-true", "met-false", "met-trifling"),
    "after": ("after-true",),
}


_LATER = (
    "set-l-rules",
    "set-m-rules",
    "set-n-rules",
    "sets-o-p-q-rules",
    "sets-r-s-t-rules",
    "sets-u-v-rules",
    "sets-w-x-rules",
    "latest-sets-rules",
)


def test_precision_of_a_rule_is_the_sum_of_what_it_was_met_with() -> None:
    counts = {}
    for name in ("set-b", "set-c-rules", "research-rules", "vision-speech-rules", "texts-science-rules", *_LATER):
        counts[name] = next(row for row in PRECISION[name]["rows"] if row["rule"] == "TML201")
    met, true = (sum(row[key] for row in counts.values()) for key in ("met", "met-true"))
    assert f"| TML201 eval-without-no-grad | {met} | {true} | {true / met:.0%} |" in text_of(
        "docs/precision-history.md"
    )

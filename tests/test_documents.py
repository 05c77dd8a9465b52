"""README.md and docs/ say what is so."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from torchmemlint.config.layers import read_layer
from torchmemlint.config.options import OPTIONS
from torchmemlint.rules.registry import all_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent


def documents() -> ModuleType:
    specification = importlib.util.spec_from_file_location("documents", ROOT / "tools" / "documents.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


TOOL = documents()
NAMES = [document.relative_to(ROOT).as_posix() for document in TOOL.DOCUMENTS]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_what_the_program_says_is_up_to_date(name: str) -> None:
    text = text_of(name)
    assert TOOL.filled(text, {}) == text, "run python tools/documents.py"
    begun = re.findall(r"<!-- (.*?): written by", text)
    assert begun == re.findall(r"<!-- end of (.*?) -->", text)
    assert set(begun) <= {*TOOL.MAKERS, "benchmark"}


def test_a_stale_place_is_noticed() -> None:
    text = text_of("README.md")
    stale = text.replace("| TML101 |", "| TML999 |")
    assert stale != text
    assert TOOL.filled(stale, {}) == text


def test_a_benchmark_goes_into_its_place_and_stays() -> None:
    text = "a\n<!-- benchmark: written by benchmarks/speed.py -->\nold\n<!-- end of benchmark -->\nb\n"
    assert TOOL.filled(text, {"benchmark": "new\n"}) == text.replace("old", "new")
    assert TOOL.filled(text, {}) == text


def test_every_rule_and_every_option_is_there() -> None:
    for rule in all_rules():
        assert f"| {rule.code} | {rule.name} |" in text_of("README.md")
    for option in OPTIONS:
        assert f"### `{option.key}`" in text_of("docs/configuration.md")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "docs/editors.md"])  # which configures editors
def test_configuration_examples_are_valid(name: str) -> None:
    for block in re.findall(r"^```toml\n(.*?)^```", text_of(name), re.MULTILINE | re.DOTALL):
        table = tomllib.loads(block)["tool"]["torchmemlint"]
        read_layer(table, name)


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text_of(name)):
        assert (ROOT / name).parent.joinpath(target).exists(), target


def test_every_page_is_linked_from_the_readme() -> None:
    for name in NAMES:
        assert name == "README.md" or f"({name})" in text_of("README.md")


PRECISION = json.loads(text_of("docs/precision.json"))


@pytest.mark.parametrize("name", PRECISION)
def test_what_was_read_adds_up(name: str) -> None:
    assert f"<!-- precision-{name}: written by" in text_of("docs/precision.md")
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
    "met": ("met-true", "met-false"),
    "after": ("after-true",),
}


def test_precision_of_a_rule_is_the_sum_of_what_it_was_met_with() -> None:
    counts = {}
    for name in ("set-b", "set-c-rules"):
        counts[name] = next(row for row in PRECISION[name]["rows"] if row["rule"] == "TML201")
    met, true = (sum(row[key] for row in counts.values()) for key in ("met", "met-true"))
    assert f"| TML201 eval-without-no-grad | {met} | {true} | {true / met:.0%} |" in text_of("docs/precision.md")

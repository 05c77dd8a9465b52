"""The stages of rules: what their pages say, by what was read of their findings, and what `preview` does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchmemlint.config.layers import read_layer
from torchmemlint.config.resolver import Resolver
from torchmemlint.config.selection import ALWAYS, Preview, Selection, enabled
from torchmemlint.rules import docs, registry
from torchmemlint.rules.base import Stage

TOOLS = str(Path(__file__).resolve().parents[2] / "tools")
sys.path.insert(0, TOOLS)
import precision_tables  # noqa: E402
import rule_stages  # noqa: E402

EARLY = {rule.code for rule in registry.all_rules() if rule.stage is Stage.PREVIEW}


def test_pages_say_what_the_figures_say() -> None:
    found = [f"{rule.code} should be {stage.value}" for rule, stage in rule_stages.wrong()]
    assert not found, "python tools/rule_stages.py --write"


@pytest.mark.parametrize(
    ("rows", "stage"),
    [
        ([], Stage.PREVIEW),
        ([{"rule": "TML101", "met": 4, "met-true": 4, "met-false": 0}], Stage.PREVIEW),
        ([{"rule": "TML101", "met": 5, "met-true": 1, "met-false": 1}], Stage.STABLE),  # the facts count, not the worth
        ([{"rule": "TML101", "met": 10, "met-true": 7, "met-false": 3}], Stage.PREVIEW),
    ],
)
def test_the_criterion(monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, object]], stage: Stage) -> None:
    monkeypatch.setattr(rule_stages, "tables", lambda: {precision_tables.LATEST: {"rows": rows}})
    assert rule_stages.stage_of("TML101") is stage
    earlier = {"rows": [{"rule": "TML101", "met": 100, "met-true": 100}]}
    monkeypatch.setattr(rule_stages, "tables", lambda: {precision_tables.LATEST: {"rows": rows}, "earlier": earlier})
    few = sum(int(str(row["met"])) for row in rows) < rule_stages.READ
    assert rule_stages.stage_of("TML101") is (Stage.STABLE if few else stage)
    assert rule_stages.stage_of("TML000") is Stage.STABLE


def test_every_rule_says_since_when() -> None:
    assert all(rule.version.count(".") == 1 for rule in registry.all_rules())
    page = docs.to_markdown(docs.page(registry.by_code()["TML101"]))
    assert "Status: stable since 0.1\n" in page
    assert "This rule is in preview" not in page
    early = docs.to_markdown(docs.page(registry.by_code()[min(EARLY)]))
    assert "Status: preview since 0.1\n\nThis rule is in preview" in early


def test_they_are_on_unless_they_are_turned_off() -> None:
    rules = registry.own()
    assert enabled([], rules) == {rule.code for rule in rules.rules if rule.on}
    off = Preview(on=False)
    assert enabled([], rules, off) == enabled([], rules) - EARLY
    assert enabled([Selection(("ALL",))], rules, off) == set(rules.by_code) - EARLY
    assert enabled([Selection((min(EARLY),))], rules, off) == set(ALWAYS)  # whatever selects them


def test_explicit_preview_rules() -> None:
    rules, explicit = registry.own(), Preview(explicit=True)
    first, second = sorted(EARLY)[:2]
    assert enabled([], rules, explicit) & EARLY == set()
    assert enabled([Selection(("TML1", first))], rules, explicit) & EARLY == {first}
    assert enabled([Selection(None, (rules.by_code[second].name,))], rules, explicit) & EARLY == {second}
    assert enabled([Selection(("ALL",), (first,), (first,))], rules, explicit) & EARLY == set()


def test_as_settings(tmp_path: Path) -> None:
    (tmp_path / "torchmemlint.toml").write_text("preview = false\n")
    assert not Resolver(tmp_path).settings_for(tmp_path).rules & EARLY
    layer = read_layer({"preview": True}, "here")
    assert Resolver(tmp_path, layer=layer).settings_for(tmp_path).rules & EARLY
    (tmp_path / "torchmemlint.toml").write_text(f"explicit-preview-rules = true\nextend-select = ['{min(EARLY)}']\n")
    assert Resolver(tmp_path).settings_for(tmp_path).rules & EARLY == {min(EARLY)}

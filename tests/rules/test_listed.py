"""The rules as the list tells them are the rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.rules import docs, listed, registry
from torchmemlint.rules.base import Rule
from torchmemlint.rules.listed import Listed

METADATA = ("code", "name", "severity", "on", "fix", "tag", "why")


@pytest.fixture
def other_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "rules.json"
    monkeypatch.setattr(listed, "LIST", path)
    return path


def told(rule: Rule) -> list[object]:
    return [getattr(rule, name) for name in METADATA]


def test_the_list_says_what_the_modules_say() -> None:
    rules = listed.read()
    assert rules is not None, "run python tools/documents.py"
    assert [told(rule) for rule in rules] == [told(rule) for rule in registry.imported()]
    assert all(isinstance(rule, Listed) for rule in rules)


def test_a_listed_rule_checks_and_has_its_page() -> None:
    (rule,) = (rule for rule in listed.read() or () if rule.code == "TML202")
    assert docs.page(rule) == docs.page(type(listed.whole(rule)))
    found = check_text("import torch\nwith torch.no_grad:\n    pass\n", Path("a.py"), frozenset({"TML202"}))
    assert [finding.code for finding in found] == ["TML202"]


def test_what_is_listed_is_listed_again_as_it_was() -> None:
    assert listed.text(listed.read() or ()) == listed.text(registry.imported())


def test_a_list_of_other_modules_is_not_believed(other_list: Path) -> None:
    text = listed.text(registry.imported())
    other_list.write_text(text)
    assert listed.read() is not None
    other_list.write_text(json.dumps({**json.loads(text), "modules": "0" * 32}))
    assert listed.read() is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"modules": 1}'])
def test_a_broken_list_is_not_believed(other_list: Path, text: str) -> None:
    other_list.write_text(text)
    assert listed.read() is None


def test_without_a_list_the_modules_are_asked(other_list: Path) -> None:
    assert not other_list.exists()
    found = registry.all_rules.__wrapped__()
    assert found
    assert not any(isinstance(rule, Listed) for rule in found)

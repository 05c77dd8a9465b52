"""Every rule of the registry, emptied by program: its fixtures have to notice.

What is asserted is that the fixtures' own test fails, not that a finding is gone: a fixture that expects nothing of its
rule would let the rule die unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import test_fixtures as fixtures
from torchmemlint.engine import audit, one_file
from torchmemlint.engine.one_file import ABOUT_THE_RUN, FileResult, Profile, check_bytes
from torchmemlint.findings import Finding
from torchmemlint.rules import cases
from torchmemlint.rules.base import Rule
from torchmemlint.rules.registry import all_rules, by_code

ANALYSED = [rule for rule in all_rules() if rule.code not in ABOUT_THE_RUN]
BAD = {
    rule.code: [
        path
        for path in fixtures.PROGRAMS
        if path.parent.name == f"{rule.code}-{rule.name}" and path.name.startswith("bad_")
    ]
    for rule in ANALYSED
}
# What the engine itself answers, not the analysis: a text in which it has something to say.
TEXTS = {
    "TML000": b"import torch\ndef broken(:\n",
    "TML001": b"import torch\nx = 1  # torchmemlint: ignore[TML101]\n",
    "TML002": b"import torch\nx = 1  # torchmemlint: ignore[TML999]\n",
}


def said(code: str) -> list[str]:
    profile = Profile(frozenset(by_code()))
    result: FileResult = check_bytes(TEXTS[code], Path("a.py"), profile)
    return [finding.code for finding in result.findings]


def empty(rule: Rule) -> Callable[..., Iterator[Finding]]:
    return lambda self, facts: iter(())


@pytest.mark.parametrize(
    ("rule", "path"),
    [(rule, path) for rule in ANALYSED for path in BAD[rule.code]],
    ids=lambda part: part.code if isinstance(part, Rule) else part.stem,
)
def test_an_emptied_rule_fails_its_fixtures(rule: Rule, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(rule), "check", empty(rule))
    monkeypatch.setattr(cases, "CODES", cases.CODES - {rule.code})
    monkeypatch.setattr(fixtures, "known", fixtures.known.__wrapped__)
    with pytest.raises(AssertionError, match=rule.code):
        fixtures.test_exactly_the_announced_findings_are_reported(path)


def test_no_rule_is_left_out() -> None:
    assert {rule.code for rule in all_rules()} == {code for code, paths in BAD.items() if paths} | TEXTS.keys()
    assert TEXTS.keys() == ABOUT_THE_RUN


@pytest.mark.parametrize("code", sorted(TEXTS))
def test_what_the_engine_answers(code: str) -> None:
    assert said(code) == [code]


@pytest.mark.parametrize(
    ("code", "where", "name", "value"),
    [
        ("TML000", one_file, "_unreadable", lambda *given: []),
        ("TML001", audit, "_unused", lambda *given: []),
        ("TML002", audit, "_unknown", lambda *given: []),
    ],
)
def test_an_emptied_answer_is_noticed(
    code: str, where: object, name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, value)
    with pytest.raises(AssertionError, match=code):
        test_what_the_engine_answers(code)

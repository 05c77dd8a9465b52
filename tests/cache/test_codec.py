"""Findings to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from torchmemlint.doubts import Doubt
from torchmemlint.engine.cache.codec import dump, load
from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Applicability, Finding, Position, Severity, Span
from torchmemlint.rules.registry import by_code

FIXTURES = Path(__file__).parents[2] / "fixtures"
CODES = frozenset(code for code in by_code() if not code.startswith("TML0"))


@pytest.mark.parametrize("folder", sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))
def test_findings_come_back_as_they_were(folder: str) -> None:
    for path in sorted((FIXTURES / folder).glob("bad_*.py"))[:3]:
        for finding in check_text(path.read_text(encoding="utf-8"), path, CODES):
            back = load(Finding, json.loads(json.dumps(dump(finding))))
            assert back == finding
            assert repr(back) == repr(finding)


def test_doubts_come_back() -> None:
    span = Span(Position(1, 1), Position(1, 2))
    finding = Finding("TML101", "graph-accumulation", Severity.ERROR, "a leak", Path("a.py"), span, span)
    for doubts in ((), (Doubt.MODE, Doubt.CUT)):
        back = load(Finding, json.loads(json.dumps(dump(replace(finding, doubts=doubts)))))
        assert back.doubts == doubts


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Position, [1]),
        (Position, [1, "2"]),
        (Position, {"row": 1, "column": 2}),
        (Span, [[1, 2], None]),
        (Severity, "fatal"),
        (Applicability, 3),
        (tuple[Position, ...], "12"),
        (Finding, []),
    ],
)
def test_other_shapes_are_refused(kind: type, data: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        load(kind, data)


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="set cannot be kept"):
        dump({1})

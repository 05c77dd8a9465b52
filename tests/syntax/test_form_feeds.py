"""A form feed in front of a row, as old editors put it between pages, changes nothing but columns."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.fixes.apply import fix_text
from torchmemlint.rules.registry import by_code
from torchmemlint.syntax.text import form_feeds, without_form_feeds

PATH = Path("pages.py")
TEXT = """\
import torch
class Trainer:
    \'\'\'It trains.\'\'\'

    def __init__(self):
        self.total = 0

    def train(self, net, data, opt):
        total = 0
        for x in data:
            if x is not None:
                loss = net(x).mean()
            loss.backward()
            opt.step()
            total += loss
        return total
def test(net, data):
    total = 0
    for x in data:
        loss = net(x).mean()
        loss.backward()
        total += loss
    return total
"""
ROWS = range(1, TEXT.count("\n") + 1)


def check(text: str):  # type: ignore[no-untyped-def]
    return check_text(text, PATH, frozenset(by_code()))


def fed(row: int, before: str = "") -> str:
    lines = TEXT.split("\n")
    lines[row - 1] = f"{before}\f{lines[row - 1]}"
    return "\n".join(lines)


@pytest.mark.parametrize("before", ["", "  "])
@pytest.mark.parametrize("row", ROWS)
def test_findings_and_fixes_are_the_same(row: int, before: str) -> None:
    text = fed(row, before)
    ast.parse(text)
    further = {row: len(before) + 1}
    told = [(one.code, one.message, one.span.start) for one in check(TEXT)]
    assert len(told) >= 2
    found = [(one.code, one.message, one.span.start) for one in check(text)]
    assert [one[:2] for one in found] == [one[:2] for one in told]
    for (_, _, place), (_, _, plain) in zip(found, told, strict=True):
        assert (place.row, place.column) == (plain.row, plain.column + further.get(plain.row, 0))
    fixed = fix_text(text, check(text), check, unsafe=True).text
    assert fixed.count(".detach()") == 2
    assert fixed.replace(f"{before}\f", "") == fix_text(TEXT, check(TEXT), check, unsafe=True).text


def test_blanks_before_a_form_feed_indent_nothing() -> None:
    text = "if x:\n \f\t\f  y\n\f\nz = '\f'\n"
    assert without_form_feeds(text) == "if x:\n  y\n\nz = '\f'\n"
    assert form_feeds(text) == {2: 4, 3: 1}

"""From one text to the next as the edits that a client is asked to make."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Sequence

from lsprotocol import types as lsp

from torchmemlint.findings import Edit
from torchmemlint.fixes.edits import apply_edits
from torchmemlint.server.positions import Places
from torchmemlint.server.session import Unit
from torchmemlint.source.sequences import common_ends

_ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def unit_edits(unit: Unit, after: str, encoding: str) -> dict[str, list[lsp.TextEdit]] | None:
    """The edits that bring a unit's text to `after`, by document; None where a notebook's cells cannot show them."""
    if unit.cells is None:
        (text,) = unit.texts
        if text.startswith("\ufeff"):
            after = "\ufeff" + after
        return {unit.uri: text_edits(text, after, encoding)}
    cells = unit.cells.changed(after)
    if cells is None:
        return None
    pairs = zip(unit.uris, unit.texts, cells, strict=True)
    return {uri: text_edits(old, new, encoding) for uri, old, new in pairs if old != new}


def edits_of(unit: Unit, edits: Sequence[Edit], encoding: str) -> dict[str, list[lsp.TextEdit]] | None:
    """The same for edits of ours to the unit's text."""
    return unit_edits(unit, apply_edits(unit.text, edits), encoding)


def text_edits(before: str, after: str, encoding: str) -> list[lsp.TextEdit]:
    """The edits from one text to another, as small as rows and their common beginnings and ends allow."""
    places = Places(before, encoding)
    old, new = _ROW.findall(before), _ROW.findall(after)
    starts = [0, *itertools.accumulate(map(len, old))]
    found = []
    for first, last, rows in _blocks(old, new):
        replaced, content = before[starts[first] : starts[last]], "".join(rows)
        head, tail = _common(replaced, content)
        start, end = starts[first] + head, starts[last] - tail
        where = lsp.Range(places.position(start), places.position(end))
        found.append(lsp.TextEdit(where, content[head : len(content) - tail]))
    return found


def _blocks(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, list[str]]]:
    """Rows of the old text, from and up to, and what takes their place."""
    head, tail = common_ends(old, new)
    matcher = difflib.SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    return [
        (head + a, head + b, list(new[head + c : head + d]))
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]


def _common(one: str, other: str) -> tuple[int, int]:
    """How many characters two texts share at their beginning, and at their end. Never half a line end."""
    head, tail = common_ends(one, other)
    if head and one[head - 1] == "\r":
        head -= 1
    if tail and one[-tail] == "\n" and (one[:-tail].endswith("\r") or other[:-tail].endswith("\r")):
        tail -= 1
    return head, tail

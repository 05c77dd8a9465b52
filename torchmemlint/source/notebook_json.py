"""The places of a notebook's cells in its text, so that a change of a cell leaves everything else as it was.

What is asked here of a text was read by `json` before: it is JSON.
"""

from __future__ import annotations

import bisect
import difflib
import itertools
import json
import re
from collections.abc import Iterator, Sequence

from torchmemlint.findings import Position
from torchmemlint.immutable import immutable
from torchmemlint.source.sequences import common_ends

_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^,\]} \t\r\n]+")
_TO_BRACKET = re.compile(r'[^"\[\]{}]*')
_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)
_ESCAPED_LETTER = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")
_FEEDS = ("\\n", "\\u000a", "\\u000A")
_RETURNS = ("\\r", "\\u000d", "\\u000D")
_NEWLINE = re.compile(r"\r\n|\r|\n")


@immutable()
class Literal:
    """A string as it stands in the text, with its quotation marks."""

    start: int
    end: int


@immutable()
class Source:
    """The source of a cell as it stands in the text: a string, or a list of strings."""

    start: int
    end: int
    strings: tuple[Literal, ...]
    is_list: bool


class Layout:
    """Where the sources of all cells stand in the text of a notebook; None for a cell that has none."""

    def __init__(self, text: str) -> None:
        self.text = text
        cells = _member(text, _start(text, 0), "cells")
        self.sources = [_source(text, cell) for cell in _items(text, cells)] if cells is not None else []
        self._rows = [0, *(match.end() for match in _NEWLINE.finditer(text))]

    def rows(self, source: Source) -> list[tuple[Position, str]]:
        """For each row of a cell: where it begins in the text, and what stands there where escapes do."""
        found: list[tuple[Position, str]] = []
        fresh = True
        for literal in source.strings:
            at = literal.start + 1
            pending = ""
            for character in _CHARACTER.findall(self.text, at, literal.end - 1):
                if fresh:
                    found.append((self.position(at), ""))
                    fresh = False
                at += len(character)
                pending += character
                if _ends_row(character, self.text, at):
                    found[-1] = (found[-1][0], found[-1][1] + pending)
                    pending, fresh = "", True
            if pending:
                found[-1] = (found[-1][0], found[-1][1] + pending)
        if fresh:
            found.append((self.position(source.strings[-1].end - 1 if source.strings else source.start + 1), ""))
        return [(place, raw if "\\" in raw else "") for place, raw in found]

    def replaced(self, source: Source, after: str) -> str:
        """What stands for a source once the cell reads `after`: the same as before wherever the cell is the same."""
        before = [_value(self.text, one.start) for one in source.strings]
        ascii_only = self._escapes(source)
        if not source.is_list:
            return self._string(source.strings[0], before[0], after, ascii_only)
        wanted = _strings(before, after)
        opening, between, closing = self._blanks(source)
        pieces: list[str] = []
        matcher = difflib.SequenceMatcher(None, before, wanted, autojunk=False)
        for kind, first, last, start, end in matcher.get_opcodes():
            if kind == "equal":
                pieces += [self.text[one.start : one.end] for one in source.strings[first:last]]
                continue
            for number, string in enumerate(wanted[start:end], first):
                old = number if number < last else None
                pieces.append(
                    _quoted(string, ascii_only)
                    if old is None
                    else self._string(source.strings[old], before[old], string, ascii_only)
                )
        return f"[{opening}{between.join(pieces)}{closing}]" if pieces else "[]"

    def _string(self, literal: Literal, before: str, after: str, ascii_only: bool) -> str:
        characters = _CHARACTER.findall(self.text, literal.start + 1, literal.end - 1)
        head, tail = common_ends(before, after)
        middle = _quoted(after[head : len(after) - tail], ascii_only)[1:-1]
        return "".join(['"', *characters[:head], middle, *characters[len(characters) - tail :], '"'])

    def _blanks(self, source: Source) -> tuple[str, str, str]:
        """What stands in a list before its strings, between two of them, and behind them."""
        strings = source.strings
        if not strings:
            return "", ", ", ""
        opening = self.text[source.start + 1 : strings[0].start]
        closing = self.text[strings[-1].end : source.end - 1]
        if len(strings) > 1:
            return opening, self.text[strings[0].end : strings[1].start], closing
        return opening, f",{opening}" if opening else ", ", closing

    def _escapes(self, source: Source) -> bool:
        """Are letters beyond ASCII written as escapes here?"""
        own = self.text[source.start : source.end]
        if not own.isascii():
            return False
        return bool(_ESCAPED_LETTER.search(own)) or (self.text.isascii() and bool(_ESCAPED_LETTER.search(self.text)))

    def position(self, offset: int) -> Position:
        """Row and column of an offset."""
        row = bisect.bisect_right(self._rows, offset)
        return Position(row, offset - self._rows[row - 1] + 1)


def column_within(raw: str, column: int) -> int:
    """How many characters of text stand before a column of a row that is written as `raw`."""
    characters = _CHARACTER.findall(raw)
    return sum(map(len, characters[: column - 1])) + max(column - 1 - len(characters), 0)


def _ends_row(character: str, text: str, after: int) -> bool:
    if character in _RETURNS:
        return not text.startswith(_FEEDS, after)
    return character in _FEEDS


def _strings(before: Sequence[str], after: str) -> list[str]:
    """The strings of a list that make `after`, divided as those before it are: a row each, as Jupyter does."""
    if list(before) == "".join(before).splitlines(keepends=True):
        return after.splitlines(keepends=True)
    head = tail = 0
    start, end = 0, len(after)
    while head < len(before) and after.startswith(before[head], start):
        start += len(before[head])
        head += 1
    while (
        tail < len(before) - head
        and end - start >= len(before[-1 - tail])
        and after.endswith(before[-1 - tail], 0, end)
    ):
        end -= len(before[-1 - tail])
        tail += 1
    if head and head + tail == len(before) and start < end:  # put in between two of them: it joins the first
        head -= 1
        start -= len(before[head])
    middle = [after[start:end]] if start < end else []
    return [*before[:head], *middle, *before[len(before) - tail :]]


def _quoted(string: str, ascii_only: bool) -> str:
    return json.dumps(string, ensure_ascii=ascii_only)


def _source(text: str, cell: int) -> Source | None:
    at = _member(text, cell, "source") if text[cell] == "{" else None
    if at is None:
        return None
    if text[at] == '"':
        end = _end(text, at)
        return Source(at, end, (Literal(at, end),), is_list=False)
    if text[at] == "[":
        strings = tuple(Literal(item, _end(text, item)) for item in _items(text, at))
        return Source(at, _end(text, at), strings, is_list=True)
    return None


def _member(text: str, at: int, name: str) -> int | None:
    """Where the value of a member of the object at `at` begins; of equal ones the last counts, as for `json`."""
    found = None
    at = _start(text, at + 1)
    while text[at] != "}":
        end = _end(text, at)
        value = _start(text, _start(text, end) + 1)  # behind the colon
        if _value(text, at) == name:
            found = value
        at = _start(text, _end(text, value))
        if text[at] == ",":
            at = _start(text, at + 1)
    return found


def _items(text: str, at: int) -> Iterator[int]:
    """Where the items of the array at `at` begin; nothing where there is no array."""
    if text[at] != "[":
        return
    at = _start(text, at + 1)
    while text[at] != "]":
        yield at
        at = _start(text, _end(text, at))
        if text[at] == ",":
            at = _start(text, at + 1)


def _start(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _end(text: str, at: int) -> int:
    """Where the value that begins at `at` ends."""
    if text[at] == '"':
        return _string_end(text, at)
    if text[at] not in "[{":
        return _matched(_SCALAR, text, at)
    depth = 0
    for _ in itertools.count():
        at = _matched(_TO_BRACKET, text, at)
        if text[at] == '"':
            at = _string_end(text, at)
            continue
        depth += 1 if text[at] in "[{" else -1
        at += 1
        if depth == 0:
            break
    return at


def _value(text: str, at: int) -> str:
    """The string that begins at `at`."""
    value: str = _DECODER.raw_decode(text, at)[0]
    return value


def _string_end(text: str, at: int) -> int:
    return _DECODER.raw_decode(text, at)[1]


def _matched(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    assert match is not None
    return match.end()

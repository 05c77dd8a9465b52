"""Suppression comments: the edits that write them, and the words in them."""

from __future__ import annotations

import re

from torchmemlint.findings import Edit, Finding, Position, Span
from torchmemlint.immutable import immutable
from torchmemlint.source.decoding import lines_of
from torchmemlint.source.directives import Scope, find_directives
from torchmemlint.source.ignoring import ignoring

_INTO = re.compile(r"#[ \t]*torchmemlint[ \t]*:[ \t]*ignore(?:-file)?[ \t]*\[(?P<codes>[^\]#]*)$")
_NOQA_INTO = re.compile(r"#[ \t]*noqa[ \t]*:[ \t]*(?P<codes>[A-Za-z0-9, \t]*)$", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9_-]*$")
_CODE = re.compile(r"\b[A-Z]+[0-9]{3}\b")


@immutable()
class Unfinished:
    """A code that is being written in a suppression comment."""

    word: str  # what there is of it
    others: frozenset[str]  # the codes that stand there already


def ignore_line(finding: Finding, text: str) -> Edit | None:
    """The edit that silences a finding where it stands; None where no comment can."""
    return next(iter(ignoring((finding,), text).edits), None)


def ignore_file(code: str, text: str) -> Edit:
    """The edit that silences a rule in a whole file: a comment above everything but the shebang and the encoding."""
    for directive in find_directives(text, range(1, text.count("\n") + 2)):
        if directive.scope is Scope.FILE and directive.codes:
            last = directive.codes[-1].span.end
            return Edit(Span(last, last), f", {code}")
    rows = lines_of(text)
    row = 1
    while row <= min(len(rows), 2) and re.match(r"#!|#.*coding[:=]", rows[row - 1]):
        row += 1
    place = Position(row, 1)
    return Edit(Span(place, place), f"# torchmemlint: ignore-file[{code}]\n")


def unfinished(line: str) -> Unfinished | None:
    """The code that is being written at the end of `line` (the text of a row up to the cursor), if any is."""
    match = _INTO.search(line) or _NOQA_INTO.search(line)
    if match is None:
        return None
    word = _WORD.search(match["codes"])
    assert word is not None
    before = match["codes"][: len(match["codes"]) - len(word.group())]
    return Unfinished(word.group(), frozenset(re.findall(r"[\w-]+", before)))


def code_at(line: str, column: int) -> tuple[str, int, int] | None:
    """The rule code that stands in a comment of a line at a column from 0, and where it begins and ends."""
    comment = line.find("#")
    for match in _CODE.finditer(line):
        if 0 <= comment < match.start() and match.start() <= column <= match.end():
            return match.group(), match.start(), match.end()
    return None

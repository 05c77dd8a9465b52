"""Who a finding is: an identity that outlives moves, renames and formatters, told from the syntax around it.

A fingerprint is `SSSSSSSSTTTTTTTT:n`, three things in one text:

- `S` for the rule and the expression that the finding points at,
- `T` for the rule and the statement that this stands in (of a compound statement, its header),
- `n` counts those of a file that are equal in both, from 1, as in the line hashes of code scanning.

What a formatter changes (line breaks, quotes, brackets, trailing commas, comments) is not in the syntax tree, and
neither rows nor the names of the file, the function and the class are in the fingerprint. Nothing in it depends on the
release of Python: trees are written out here, not by `ast.dump`.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import itertools
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from torchmemlint.findings import Finding, Position, Span
from torchmemlint.source.decoding import lines_of

_HALF = 8  # hexadecimal digits
_BODIES = frozenset(("body", "orelse", "handlers", "finalbody", "cases", "decorator_list"))  # of statements
_IGNORED = frozenset(("ctx", "kind", "type_comment", "type_ignores"))


def core(fingerprint: str) -> str:
    """The part that is equal for findings that look the same."""
    return fingerprint.partition(":")[0]


def subject(fingerprint: str) -> str:
    """The part that an edit of the statement around the expression leaves alone."""
    return fingerprint[:_HALF]


def with_fingerprints(findings: Sequence[Finding], text: str) -> list[Finding]:
    """The findings of a text, which are in order, with their fingerprints."""
    source = _Source(text)
    seen: Counter[object] = Counter()
    marked = []
    for finding in findings:
        expression, statement = source.told(finding)
        mark = _digest(finding.code, expression) + source.digest(finding.code, "in", statement)
        # What the first files of measurements went by: the rule, the file's name and the line's text.
        line = finding.code, finding.filename.name, source.squeezed(finding.span.start.row)
        seen.update((mark, line))
        former = source.digest(*line, last=str(seen[line] - 1), length=16)
        marked.append(replace(finding, fingerprint=f"{mark}:{seen[mark]}", former_fingerprint=former))
    return marked


class _Source:
    """A text, in which thousands of findings may stand on one row or in one statement: each is looked at once."""

    def __init__(self, text: str) -> None:
        self._lines = lines_of(text)
        self._rows: dict[int, str] = {}
        self._statements: dict[Span, _Statement] = {}
        self._begun: dict[tuple[str, ...], hashlib._Hash] = {}

    def squeezed(self, row: int) -> str:
        """A row, with its blanks made one."""
        if row not in self._rows:
            self._rows[row] = " ".join(_row(self._lines, row).split())
        return self._rows[row]

    def digest(self, *parts: str, last: str | None = None, length: int = _HALF) -> str:
        """The digest of some parts, of which all but the last may be long and come again."""
        if parts not in self._begun:
            self._begun[parts] = _hash(*parts)
        if last is None:
            return self._begun[parts].hexdigest()[:length]
        whole = self._begun[parts].copy()
        whole.update(b"\0" + last.encode())
        return whole.hexdigest()[:length]

    def told(self, finding: Finding) -> tuple[str, str]:
        """The expression and the statement, written in a way that does not change with their layout."""
        span, around = finding.span, finding.statement
        if around.start == around.end:  # what cannot be parsed
            line = _squeezed(_row(self._lines, around.start.row))
            return line, line
        if around not in self._statements:
            self._statements[around] = _Statement(_text(self._lines, around))
        statement = self._statements[around]
        if statement.written is None:  # a comment, or half a statement
            return _squeezed(_text(self._lines, span)), statement.squeezed
        return statement.part(span, around.start) or statement.written, statement.written


def _digest(*parts: str, length: int = _HALF) -> str:
    return _hash(*parts).hexdigest()[:length]


def _hash(*parts: str) -> hashlib._Hash:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))


# -- the text ---------------------------------------------------------------------------------------------------------


def _row(lines: Sequence[str], row: int) -> str:
    return lines[row - 1] if 1 <= row <= len(lines) else ""


def _text(lines: Sequence[str], span: Span) -> str:
    start, end = span.start, span.end
    if start.row == end.row:
        return _row(lines, start.row)[start.column - 1 : end.column - 1]
    between = (_row(lines, row) for row in range(start.row + 1, end.row))
    return "\n".join((_row(lines, start.row)[start.column - 1 :], *between, _row(lines, end.row)[: end.column - 1]))


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _parse(text: str) -> tuple[list[ast.stmt], list[str], int] | None:
    """The statements of a text, its rows, and how many characters were cut from its first; None where it is none."""
    cut = 2 if text.startswith("elif") else 0
    text = text[cut:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's strings
        for candidate in (text, f"{text}\n pass"):  # a header lacks its body
            try:
                return ast.parse(candidate).body, candidate.split("\n"), cut
            except (SyntaxError, ValueError, RecursionError, MemoryError):  # noqa: PERF203
                continue
    return None


# -- the tree ---------------------------------------------------------------------------------------------------------


class _Statement:
    """A statement: as it is written, and its nodes by where they begin."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.written: str | None = None  # in a way that does not change with its layout
        self._ends: list[int] = []  # of nodes in the order of the tree: the number behind the last one below each
        parsed = _parse(text)
        if parsed is not None and parsed[0]:
            nodes, self._rows, self._cut = parsed
            with contextlib.suppress(RecursionError):
                self.written = " ".join(map(_written, nodes))
                self._nodes = [*_all_nodes(nodes, self._ends)]
                places = ((_place(node), number) for number, node in enumerate(self._nodes))
                self._placed = sorted((place, number) for place, number in places if place is not None)

    @cached_property
    def squeezed(self) -> str:
        """Its text without blanks."""
        return _squeezed(self._text)

    def part(self, span: Span, origin: Position) -> str:
        """What stands in a stretch of the file, in which it begins at `origin`, written likewise.

        Brackets around an expression are no part of its node, so it does not matter whether the stretch has them.
        """
        start, end = self._byte_place(span.start, origin), self._byte_place(span.end, origin)
        first = bisect_left(self._placed, start, key=lambda one: one[0][0])
        beginning = itertools.takewhile(lambda one: one[0][0] <= end, itertools.islice(self._placed, first, None))
        parts: list[str] = []
        behind = 0
        for number in sorted(number for (_, last), number in beginning if last <= end):
            if number >= behind:  # it lies in no other node of the stretch
                parts.append(_written(self._nodes[number]))
                behind = self._ends[number]
        return " ".join(parts)

    def _byte_place(self, place: Position, origin: Position) -> tuple[int, int]:
        """A place of the file as row and column of the parsed text: the parser counts bytes."""
        row = place.row - origin.row + 1
        column = place.column - origin.column - self._cut if row == 1 else place.column - 1
        if not 1 <= row <= len(self._rows):
            return row, 0
        text = self._rows[row - 1]
        if text.isascii():
            return row, min(max(column, 0), len(text))
        return row, len(text[: max(column, 0)].encode("utf-8", "surrogatepass"))


def _all_nodes(nodes: Iterable[ast.AST], ends: list[int]) -> Iterator[ast.AST]:
    """Yield nodes and all below them, and fill `ends` with the number behind the last one below each."""
    for node in nodes:
        number = len(ends)
        ends.append(0)
        yield node
        yield from _all_nodes(ast.iter_child_nodes(node), ends)
        ends[number] = len(ends)


def _place(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Where a node stands, by rows and bytes."""
    row, column = getattr(node, "lineno", None), getattr(node, "col_offset", None)
    last, end = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
    return None if row is None or column is None or last is None or end is None else ((row, column), (last, end))


def _written(value: object) -> str:
    """A tree as text: the kinds of its nodes, and what they hold; of a statement its header."""
    match value:
        case ast.Delete(targets=[ast.Tuple(elts=targets)]):  # formatters take the brackets away
            return f"Delete({_list(targets)})"
        case ast.JoinedStr(values=values):
            return f"JoinedStr({_list(_joined(values))})"
        case ast.AST():
            ignored = _IGNORED | _BODIES if isinstance(value, ast.stmt) else _IGNORED
            parts = (
                f"{name}={_written(part)}"
                for name, part in ast.iter_fields(value)
                if part is not None and part != [] and name not in ignored
            )
            return f"{type(value).__name__}({','.join(parts)})"
        case list():
            return f"[{_list(value)}]"
        case str():
            return f"{len(value)}:{value}"
        case int() if not isinstance(value, bool):
            return f"{value:x}"  # any number of digits
    return f"{type(value).__name__}:{value!r}"


def _list(values: Iterable[object]) -> str:
    return ",".join(map(_written, values))


def _joined(values: Iterable[ast.expr]) -> Iterator[object]:
    """The parts of an f-string; releases of Python differ in how they cut the text between two replacements."""
    text = ""
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            text += value.value
            continue
        if text:
            yield text
        text = ""
        yield value
    if text:
        yield text

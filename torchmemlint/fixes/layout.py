"""Statements laid out over lines as black and ruff do: on one line, or broken at the outermost brackets.

What stands on a line keeps the blanks that it has: only where lines end is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from torchmemlint.fixes.leaves import COMMA, DOT, Leaf, Statement, width
from torchmemlint.immutable import immutable

_ASSIGNING = re.compile(r"(?:[-+*/%@&|^]|//|\*\*|<<|>>)?=")
_KEYWORDS = frozenset({"return", "if", "elif", "while", "for", "async"})
_UNKNOWN = frozenset(
    {"with", "def", "class", "import", "from", "assert", "del", "raise", "lambda", "match", "case", "except", "@"}
)
_PRAGMA = re.compile(r"\s*#\s*(?:noqa|type:|pyright|pylint|flake8|ruff)", re.IGNORECASE)


class _CannotSplitError(Exception):
    """A line is not to be broken in some way."""


@immutable()
class _Line:
    leaves: tuple[Leaf, ...]
    indent: str
    inside: bool = False  # brackets of another line
    must_split: bool = False

    @property
    def text(self) -> str:
        first, *others = self.leaves or (Leaf(""),)
        return first.text + "".join(_glued(one) for one in others)

    @property
    def depth(self) -> int:
        return min((leaf.depth for leaf in self.leaves), default=0)

    def breaks(self) -> dict[int, int]:
        """How early the line is broken behind each of its leaves: by their numbers."""
        found: dict[int, int] = {}
        depth = self.depth
        for number, leaf in enumerate(self.leaves):
            if leaf.depth != depth:
                continue
            if leaf.before and number:
                found[number - 1] = leaf.before
            elif leaf.after:
                found[number] = leaf.after
        return found


@immutable()
class _Parts:
    head: _Line
    body: _Line
    tail: _Line

    @property
    def opening(self) -> Leaf:
        return self.head.leaves[-1]

    @property
    def closing(self) -> Leaf:
        return self.tail.leaves[0]


def _glued(leaf: Leaf) -> str:
    return leaf.glue + leaf.text


class Layout:
    """How a formatter breaks statements: black, or else ruff.

    They differ in whether comments such as `# noqa` make a line too long, and in tuples without brackets.
    """

    def __init__(self, limit: int, *, black: bool, step: str = "    ") -> None:
        self.limit = limit
        self.black = black
        self.step = step

    def lay_out(self, statement: Statement, indent: str | None = None) -> list[tuple[str, list[Leaf]]] | None:
        """The lines of a statement, each with its indentation and leaves; None of one that is not known how to break.

        Leaves without a place in the text are those that are put in.
        """
        if not statement.is_plain:
            return None
        leaves = _with_optional_brackets(statement.leaves)
        comment = statement.comment if self.black or not _PRAGMA.match(statement.comment) else ""
        line = _Line(tuple(leaves), statement.indent if indent is None else indent)
        self._tail = (leaves[-1], width(comment.rstrip()))
        lines = self._lines(line)
        if len(lines) > 1 and statement.leaves[0].text in _UNKNOWN:
            return None
        return [(one.indent, list(one.leaves)) for one in lines]

    def _is_short(self, line: _Line, spare: int = 0) -> bool:
        return self._width(line) <= self.limit - spare

    def _width(self, line: _Line) -> int:
        behind = self._tail[1] if line.leaves and line.leaves[-1] is self._tail[0] else 0
        return _columns(line.indent) + width(line.text) + behind

    def _lines(self, line: _Line, *, forced: bool = False) -> list[_Line]:
        if not line.must_split and not _is_magic(line) and self._is_short(line):
            return [line]
        whole = line.text
        for split in (self._at_delimiters, self._at_brackets) if line.inside else (self._at_brackets,):
            try:
                parts = split(line, forced)
                if any(part.text == whole for part in parts):
                    continue
                found = [one for part in parts for one in self._lines(part, forced=forced)]
            except _CannotSplitError:
                continue
            brackets = [leaf for leaf in line.leaves if not leaf.text and leaf.closes]
            used = any(leaf.text for one in parts for leaf in one.leaves if leaf.start < 0 and leaf.closes)
            if split == self._at_brackets and not forced and brackets and not used and not self._is_short(found[0]):
                try:
                    other = self._lines(line, forced=True)
                except _CannotSplitError:
                    return found
                if all(map(self._is_short, other)):
                    return other
            return found
        return [line]

    def _at_delimiters(self, line: _Line, _: bool) -> list[_Line]:
        breaks = line.breaks()
        first = {number: priority for number, priority in breaks.items() if number != len(line.leaves) - 1}
        if not first:
            raise _CannotSplitError
        highest = max(first.values())
        places = [number for number, priority in breaks.items() if priority == highest]
        if highest == DOT and len(places) == 1:
            raise _CannotSplitError
        found: list[_Line] = []
        start = 0
        for place in [*places, len(line.leaves) - 1]:
            if start <= place:
                found.append(replace(line, leaves=line.leaves[start : place + 1], must_split=False))
            start = place + 1
        last = found[-1].leaves
        if highest == COMMA and last[-1].text != ",":
            found[-1] = replace(found[-1], leaves=(*last, Leaf(",")))
        return found

    def _at_brackets(self, line: _Line, forced: bool) -> list[_Line]:
        for omitted in self._trailers(line):
            try:
                lines = self._split(line, forced, omitted)
            except _CannotSplitError:
                if not omitted:
                    raise
                continue
            if self._is_short(lines[0]):
                return lines
        return self._split(line, forced, frozenset())

    def _split(self, line: _Line, forced: bool, omitted: Collection[Leaf]) -> list[_Line]:
        parts = _last_brackets(line, omitted, self.step)
        if not forced and not parts.opening.text and not parts.closing.text and self._may_omit(parts):
            try:
                inner = _last_brackets(line, {parts.closing, *omitted}, self.step)
                if self._is_better(inner, parts):
                    return self._split(line, forced, {parts.closing, *omitted})
            except _CannotSplitError:
                if not _may_be_split(parts.body) and not self._is_short(parts.body):
                    raise
        head, tail = parts.head, parts.tail
        if not parts.opening.text:
            opening = replace(parts.opening, text="(")
            closing = replace(parts.closing, text=")", partner=opening)
            if parts.closing is self._tail[0]:
                self._tail = (closing, self._tail[1])
            head = replace(head, leaves=(*head.leaves[:-1], opening))
            tail = replace(tail, leaves=(closing, *tail.leaves[1:]))
        return [one for one in (head, parts.body, tail) if one.leaves]

    def _is_better(self, inner: _Parts, parts: _Parts) -> bool:
        """Is it better to break the line within what could be put in brackets, than to put it in brackets?"""
        head = parts.head.leaves
        if len(head) < 2 or head[-2].text != "=":
            return True
        if not any(leaf.opens or leaf.closes for leaf in head[:-1]) or not self._is_short(parts.head, 1):
            return True
        if _is_magic(parts.head):
            return True
        for leaf in reversed(inner.head.leaves):
            if leaf.text == "=":
                break
            if leaf.closes and leaf.text:
                return True
        return any(leaf.text == "=" for leaf in inner.head.leaves) and self._is_short(inner.head)

    def _may_omit(self, parts: _Parts) -> bool:
        """May what could be put in brackets be written without?"""
        line = parts.body
        breaks = line.breaks()
        if not breaks:
            return True
        highest = max(breaks.values())
        if list(breaks.values()).count(highest) > 1 or (highest == COMMA and not self.black):
            return False
        if highest == DOT:
            return True
        first, second, before, last = line.leaves[0], line.leaves[1], line.leaves[-2], line.leaves[-1]
        if first.opens and not second.closes and self._begins_well(line, first):
            return True
        is_subscript = last.text == "]" and last.partner is not None and not last.partner.is_display
        if last.closes and not is_subscript and not before.opens:
            return self._ends_well(line, last)
        return False

    def _begins_well(self, line: _Line, first: Leaf) -> bool:
        length = _columns(line.indent)
        counts = False
        for number, leaf in enumerate(line.leaves):
            counts = counts or leaf.partner is first
            if counts:
                length += width(_glued(leaf) if number else leaf.text)
                if length > self.limit:
                    return False
                counts = not leaf.opens
        return True

    def _ends_well(self, line: _Line, last: Leaf) -> bool:
        length = _columns(line.indent)
        others = False
        for number, leaf in enumerate(line.leaves):
            length += width(_glued(leaf) if number else leaf.text)
            if leaf is last.partner:
                return others or length <= self.limit
            others = others or leaf.opens
        return False

    def _trailers(self, line: _Line) -> Iterator[frozenset[Leaf]]:
        """Closing brackets not to break a line at: none, then more and more of the last ones, as far as they fit."""
        omitted: set[Leaf] = set()
        if not _is_magic(line):
            yield frozenset()
        length = _columns(line.indent)
        opening: Leaf | None = None
        closing: Leaf | None = None
        inner: set[Leaf] = set()
        for number in range(len(line.leaves) - 1, -1, -1):
            leaf = line.leaves[number]
            length += width(_glued(leaf) if number else leaf.text)
            if length > self.limit:
                return
            if opening is not None:
                if leaf is opening:
                    opening = None
                elif leaf.closes:
                    if leaf.is_magic:
                        return
                    inner.add(leaf)
            elif leaf.closes:
                if number and line.leaves[number - 1].opens:
                    inner.add(leaf)
                    continue
                if closing is not None:
                    omitted |= {closing, *inner}
                    inner.clear()
                    yield frozenset(omitted)
                if leaf.is_magic:
                    return
                if leaf.text:
                    opening, closing = leaf.partner, leaf


def first_of_value(leaves: Sequence[Leaf]) -> int:
    """The number of the first leaf behind a statement's keyword or its last `=`; 0 without any."""
    if leaves[0].text not in _KEYWORDS:
        signs = [n for n, leaf in enumerate(leaves) if not leaf.depth and _ASSIGNING.fullmatch(leaf.text)]
        return 1 + max(signs, default=-1)
    if any(leaf.text == "for" for leaf in leaves[:2]):
        return next((n + 1 for n, leaf in enumerate(leaves) if leaf.text == "in" and not leaf.depth), len(leaves))
    return 1


def _with_optional_brackets(leaves: Sequence[Leaf]) -> list[Leaf]:
    """The leaves, with brackets that may be written around the value of a statement."""
    first, last = first_of_value(leaves), len(leaves)
    if leaves[0].text in _KEYWORDS and leaves[-1].text == ":":
        last -= 1
    if not first:
        return list(leaves)
    if first >= last:
        return list(leaves)
    value = list(leaves[first:last])
    depth, glue = value[0].depth, value[0].glue
    is_bracketed = value[0].text == "(" and value[-1].partner is value[0]
    if is_bracketed:
        if not _is_needless(value[1:-1]):
            return list(leaves)
        value = value[1:-1]
    value = [replace(leaf, depth=leaf.depth + (not is_bracketed)) for leaf in value]
    value[0].glue = ""
    _pair(value)
    opening = Leaf("", glue=glue, opens=True, depth=depth, is_display=True)
    closing = Leaf("", closes=True, depth=depth, partner=opening)
    return [*leaves[:first], opening, *value, closing, *leaves[last:]]


def _pair(leaves: Sequence[Leaf]) -> None:
    """Pair copies of leaves as those that they are copies of."""
    opened: list[Leaf] = []
    for leaf in leaves:
        if leaf.opens:
            opened.append(leaf)
        elif leaf.closes and opened:
            leaf.partner = opened.pop()


def _is_needless(inner: Sequence[Leaf]) -> bool:
    """May the brackets around this be left out?"""
    if not inner or inner[0].text in ("yield", "await"):
        return False
    depth = inner[0].depth
    own = [leaf for leaf in inner if leaf.depth == depth]
    return not any(leaf.text in (",", ":=") or (leaf.text in ("for", "async")) for leaf in own)


def _last_brackets(line: _Line, omitted: Collection[Leaf], step: str) -> _Parts:
    leaves = line.leaves
    for number in range(len(leaves) - 1, -1, -1):
        leaf = leaves[number]
        if not leaf.closes or leaf in omitted:
            continue
        start = next((n for n in range(number - 1, -1, -1) if leaves[n] is leaf.partner), None)
        if start is None:
            raise _CannotSplitError
        if start == number - 1:  # nothing in them
            continue
        body = leaves[start + 1 : number]
        head = replace(line, leaves=leaves[: start + 1], must_split=False)
        tail = replace(line, leaves=leaves[number:], must_split=False)
        inner = _Line(body, line.indent + ("\t" if "\t" in line.indent else step), inside=True)
        return _Parts(head, replace(inner, must_split=_one_each(inner, leaves[start])), tail)
    raise _CannotSplitError


def _one_each(body: _Line, opening: Leaf) -> bool:
    """Has each thing in these brackets a line of its own, once they are broken?"""
    breaks = {number: priority for number, priority in body.breaks().items() if number != len(body.leaves) - 1}
    if not breaks or max(breaks.values()) != COMMA:
        return False
    return opening.is_display or body.leaves[-1].text == ","


def _may_be_split(line: _Line) -> bool:
    return len(line.leaves) > 1


def _is_magic(line: _Line) -> bool:
    magic = [leaf for leaf in line.leaves if leaf.closes and leaf.is_magic]
    return any(any(one is leaf.partner for one in line.leaves) for leaf in magic)


def _columns(indent: str) -> int:
    return len(indent.expandtabs(4))

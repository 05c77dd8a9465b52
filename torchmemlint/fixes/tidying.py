"""What a maintainer would do to a changed text besides: lines laid out as before, one `with` in the place of two.

Statements that a change touches are laid out anew if they were laid out as black or ruff would do it before, so that a
file that was formatted stays formatted. In others, a line is broken only if the change makes it too long.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace as replace_fields

from torchmemlint.config.formatting import USUAL, Formatting
from torchmemlint.fixes.aligning import broken_at_commas, columns, comment_in_its_column
from torchmemlint.fixes.edits import BOM, Replacement, composed, newline_of, replace
from torchmemlint.fixes.identity import Change
from torchmemlint.fixes.layout import Layout
from torchmemlint.fixes.leaves import Leaf, Statement, statements, width
from torchmemlint.immutable import immutable

_LONG, _LONGEST = 100, 120  # what is usual besides, in a file with lines about that long
_CLOSED = re.compile(r"\n\s*[)\]}]")
_QUOTED = re.compile(r"""(?<!["\w])"([^"'\\{}\n]*)"(?!")""")  # a string that needs no other quotes, and is no f-string
_STRING = re.compile(r"""(?<!['"\w])(['"])[^'"\\\n]*\1(?!['"])""")
_HEADER = re.compile(r"(?:^|(?<=\s))(with [^\r\n#]+:)\r?\n")


def tidied(text: str, replacements: tuple[Replacement, ...], formatting: Formatting) -> tuple[Replacement, ...]:
    """Replacements that make the same change, and leave what they touch as a maintainer would."""
    if not replacements or "\r" in text.replace("\r\n", ""):
        return replacements
    replacements = _quoted_alike(text, replacements)
    joined = composed(text, replacements, tuple(_second_headers(text, replacements)))
    after = replace(text, joined)
    return composed(text, joined, tuple(_laid_out(Change(text, after, joined), formatting)))


def _quoted_alike(text: str, replacements: tuple[Replacement, ...]) -> tuple[Replacement, ...]:
    """The replacements with the quotes that most strings of their rows have, or else of the file."""
    if not any(_QUOTED.search(one.content) for one in replacements):
        return replacements
    usual = _is_single(text, otherwise=False)
    rows: dict[int, bool] = {}  # by where they begin
    found = []
    for one in replacements:
        start = text.rfind("\n", 0, one.start) + 1
        if start not in rows:
            end = text.find("\n", start)
            rows[start] = _is_single(text[start : end if end >= 0 else None], otherwise=usual)
        content = _singly_quoted(one.content, text[one.start : one.end]) if rows[start] else one.content
        found.append(replace_fields(one, content=content))
    return tuple(found)


def _is_single(text: str, *, otherwise: bool) -> bool:
    """Are most strings of a text in single quotes?"""
    quotes = Counter(found[1] for found in _STRING.finditer(text))
    return otherwise if quotes["'"] == quotes['"'] else quotes["'"] > quotes['"']


def _singly_quoted(text: str, before: str) -> str:
    """A text with other quotes around its strings, but for those that stood there before."""
    return _QUOTED.sub(lambda found: found[0] if found[0] in before else f"'{found[1]}'", text)


def _second_headers(text: str, replacements: tuple[Replacement, ...]) -> Iterator[Replacement]:
    """Yield what takes away each `with` that the change puts behind or before a block of the same `with`.

    Comments that stand between the two move into the block.
    """
    if not any("with " in one.content for one in replacements):
        return
    after = replace(text, replacements)
    change = Change(text, after, replacements)
    for one in replacements:
        found = _HEADER.search(one.content)
        if found is None:
            continue
        at = change.image(one.start)[0] + found.start(1)
        start, end = after.rfind("\n", 0, at) + 1, after.find("\n", at) + 1
        indent = after[start:at]
        inner = after[end : len(after) - len(after[end:].lstrip(" \t"))]
        comments = _comments_behind_block(after, start, indent, found[1]) if not indent.strip() else None
        if comments is not None:
            yield Replacement(start, end, "")
            yield from (Replacement(place, place, inner.removeprefix(indent)) for place in comments)
        following = _header_behind_block(after, end, indent, found[1]) if not indent.strip() else None
        if following is not None:
            yield Replacement(*following, "")


def _header_behind_block(text: str, start: int, indent: str, header: str) -> tuple[int, int] | None:
    """Where the row with this header is that follows the block which begins at a place; None without one."""
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        line = text[start:end].rstrip()
        own = line[: len(line) - len(line.lstrip())]
        if line and (not own.startswith(indent) or own == indent):
            return (start, end) if line == indent + header else None
        start = end
    return None


def _comments_behind_block(text: str, end: int, indent: str, header: str) -> list[int] | None:
    """Where the rows of comments begin that stand between a place and a block with this header; None without one."""
    comments: list[int] = []
    is_behind = True
    while end > 0:
        start = text.rfind("\n", 0, end - 1) + 1
        line = text[start:end].rstrip()
        own = line[: len(line) - len(line.lstrip())]
        if is_behind and own == indent and line.startswith("#", len(own)):
            comments.append(start)
        elif line and own.startswith(indent) and own != indent:
            is_behind = False
        elif not line:
            pass
        else:
            return comments if line == indent + header and not is_behind else None
        end = start
    return None


def _laid_out(change: Change, formatting: Formatting) -> Iterator[Replacement]:
    """Yield what lays out the statements that a change touches."""
    old_text, new_text = (_with_line_feeds(text) for text in (change.before, change.after))
    newline = newline_of(change.after)
    old, new = statements(old_text), statements(new_text)
    usual = formatting.length
    if not formatting.is_said:
        step = _step(old) or formatting.step
        formatting = replace_fields(formatting, length=_own_length(old, old_text, formatting), step=step)
    elif _is_laid_out_as_usual(old, old_text, formatting):
        formatting = replace_fields(formatting, length=USUAL.length)
    habits = _Habits.of(old, old_text, formatting, usual)
    starts = [one.start for one in old]
    for statement in _touched(change, new):
        before = _former(change, statement, old, starts)
        for gap in _gaps(statement, before, old_text, new_text, formatting, habits):
            yield Replacement(gap.start, gap.end, gap.content.replace("\n", newline))


@immutable()
class _Habits:
    """How people have written a file: the columns of its longest line, and where broken statements have brackets."""

    usual: int  # columns at most, where nothing else shows
    longest: int
    is_formatted: bool  # most of what is broken is as a formatter breaks it; or nothing is, as no line is long
    closes_alone: bool  # brackets close on lines of their own, in most of what is broken

    @classmethod
    def of(cls, found: Sequence[Statement], text: str, formatting: Formatting, usual: int) -> _Habits:
        """Read off the statements of a file; a length that the project says stands."""
        rows = [row for row in text.split("\n") if not row.lstrip().startswith("#")]
        longest = 0 if formatting.is_said else max(map(columns, rows), default=0)
        longest = max(longest, _LONGEST) if longest >= _LONG else longest
        broken = [one for one in found if one.leaves and "\n" in one.text(text)]
        formatted = sum(_layout_of(one, text, formatting) is not None for one in broken)
        closing = [one.text(text) for one in broken if any(leaf.closes for leaf in one.leaves[-2:])]
        alone = sum(_CLOSED.search(one) is not None for one in closing)
        is_formatted = 2 * formatted >= len(broken) if broken else longest <= usual
        return cls(usual, longest, is_formatted, 2 * alone >= len(closing))


def _layout_of(statement: Statement, text: str, formatting: Formatting) -> Layout | None:
    """The layout that a statement has: of black, or of ruff; None of another one."""
    was = statement.text(text).replace(" \n", "\n")
    usual = formatting.is_black
    layouts = [Layout(formatting.length, black=black, step=formatting.step) for black in (usual, not usual)]
    return next((one for one in layouts if written(one.lay_out(statement)) == was), None)


def _step(found: Sequence[Statement]) -> str:
    """The least indentation of a file, of tabs or blanks, as most of its lines have; "" without any."""
    indents = [one.indent for one in found if one.indent]
    tabs = [one for one in indents if one.startswith("\t")]
    blanks = [one for one in indents if one.startswith(" ")]
    most = tabs if len(tabs) > len(blanks) else blanks
    return min(most, key=len, default="")


def _own_length(found: Sequence[Statement], text: str, formatting: Formatting) -> int:
    """How long lines are in a file of which nothing says so: as those that a formatter would have broken."""
    layout, longest = Layout(formatting.length, black=formatting.is_black), formatting.length
    for one in found:
        own = one.text(text)
        if one.is_plain and "\n" not in own and longest < (length := _widest(one, text)):
            lines = layout.lay_out(one)
            longest = length if lines is not None and len(lines) > 1 else longest
    return next((one for one in (formatting.length, _LONG, _LONGEST) if longest <= one), longest)


def _is_laid_out_as_usual(found: Sequence[Statement], text: str, said: Formatting) -> bool:
    """Do the lines of a file follow a formatter's usual length, and never what the project's settings say?

    What they say may be a linter's limit, or newer than the file.
    """
    shows = False
    shorter, longer = sorted((said.length, USUAL.length))
    if shorter == longer:
        return False
    layouts = [Layout(length, black=said.is_black, step=said.step) for length in (USUAL.length, said.length)]
    for one in found:
        own = one.text(text)
        is_telling = "\n" in own or shorter < _widest(one, text) <= longer
        if one.is_plain and is_telling:
            as_usual, as_said = (written(layout.lay_out(one)) == own.replace(" \n", "\n") for layout in layouts)
            if as_said and not as_usual:
                return False
            shows = shows or as_usual != as_said
    return shows


def _with_line_feeds(text: str) -> str:
    r"""The text with `\n` where lines end, and each character where it was."""
    text = text.replace("\r\n", " \n") if "\r" in text else text
    return "\f" + text[1:] if text.startswith(BOM) else text


def _touched(change: Change, new: Sequence[Statement]) -> Iterator[Statement]:
    starts = [one.start - len(one.indent) for one in new]
    seen: set[int] = set()
    shift = 0
    for one in change.replacements:
        first, last = one.start + shift, one.start + shift + len(one.content)
        shift += len(one.content) - (one.end - one.start)
        number = max(bisect_right(starts, first) - 1, 0)
        while number < len(new) and starts[number] <= last:
            statement = new[number]
            if number not in seen and statement.end + len(statement.comment) >= first:
                seen.add(number)
                yield statement
            number += 1


def _former(change: Change, statement: Statement, old: Sequence[Statement], starts: list[int]) -> Statement | None:
    """The statement that this one was before the change; None of one that the change brings."""
    for leaf in statement.leaves:
        offset = change.kept(leaf.start)
        if offset is not None:
            number = bisect_right(starts, offset) - 1
            return old[number] if number >= 0 and offset < old[number].end else None
    return None


def _gaps(
    statement: Statement, before: Statement | None, old_text: str, text: str, formatting: Formatting, habits: _Habits
) -> Iterator[Replacement]:
    """Yield what lays out a statement; by the file's `habits`, if no formatter has done so before."""
    limit = formatting.length
    if before is not None and before.is_plain:
        layout = _layout_of(before, old_text, formatting)
        if layout is not None and ("\n" in before.text(old_text) or habits.is_formatted):
            yield from _between(layout.lay_out(statement), text, statement)
            return
    if before is not None and (gaps := tuple(comment_in_its_column(before, old_text, statement, text))):
        yield from gaps
        return
    widest, grown = 0 if before is None else _widest(before, old_text), _widest(statement, text)
    longest = max(limit, habits.longest)
    if "\n" in statement.text(text):
        yield from broken_at_commas(statement, text, max(longest, widest))
    elif longest < grown and (widest <= habits.usual or widest <= _LONGEST < grown):
        if not habits.closes_alone:
            yield from broken_at_commas(statement, text, longest)
            return
        lines = Layout(limit, black=formatting.is_black, step=formatting.step).lay_out(statement)
        if all(width(row) <= limit for row in (statement.indent + (written(lines) or "")).split("\n")):
            yield from _between(lines, text, statement)


def _widest(statement: Statement, text: str) -> int:
    whole = statement.indent + text[statement.start : statement.end + len(statement.comment)]
    return max(map(columns, whole.split("\n")))


def written(lines: Sequence[tuple[str, Sequence[Leaf]]] | None) -> str | None:
    """The text of a statement that is laid out, from its first token on."""
    if lines is None:
        return None
    return "\n".join((indent if number else "") + _line(leaves) for number, (indent, leaves) in enumerate(lines))


def _line(leaves: Sequence[Leaf]) -> str:
    return "".join((leaf.glue if number else "") + leaf.text for number, leaf in enumerate(leaves))


def _between(
    lines: Sequence[tuple[str, Sequence[Leaf]]] | None, text: str, statement: Statement
) -> Iterator[Replacement]:
    """Yield what changes between the tokens of a statement as they stand in a text, so that they lie in these lines."""
    if lines is None:
        return
    at = statement.start
    pending = ""
    for number, (indent, leaves) in enumerate(lines):
        pending += f"\n{indent}" if number else ""
        for place, leaf in enumerate(leaves):
            pending += leaf.glue if place else ""
            if leaf.start < 0:
                pending += leaf.text
                continue
            if text[at : leaf.start] != pending:
                yield Replacement(at, leaf.start, pending)
            at, pending = leaf.end, ""
    if pending or at != statement.end:
        yield Replacement(at, statement.end, pending)

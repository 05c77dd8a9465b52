"""Lines broken as people do it by hand: behind a comma, what follows in line with what stands behind the bracket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from torchmemlint.fixes.edits import Replacement
from torchmemlint.fixes.layout import first_of_value
from torchmemlint.fixes.leaves import OPENING, Leaf, Statement, width

_APART = 2  # blanks before a comment


def columns(row: str) -> int:
    """How many columns a row takes, with tabs of four."""
    return width(row.rstrip().expandtabs(4))


def broken_at_commas(statement: Statement, text: str, limit: int) -> Iterator[Replacement]:
    """Yield what breaks lines of a statement that are too long; a tuple without brackets gets some."""
    brackets = _brackets(statement.leaves)
    bare = _bare_tuple(statement.leaves)
    aligned: dict[Leaf, str] = {}
    for start, row in groupby(statement.leaves, key=lambda leaf: text.rfind("\n", 0, leaf.start) + 1):
        leaves = list(row)
        end = text.find("\n", start)
        end = end if end >= 0 else len(text)
        before = text[start : leaves[0].start]
        while columns(before + text[leaves[0].start : end]) > limit:
            first, fitting = leaves[0], []
            for number, leaf in enumerate(leaves[:-1]):
                is_tuple = bare is not None and not leaf.depth and leaf.start > bare.start
                if leaf.text == "," and columns(before + text[first.start : leaf.end]) + is_tuple <= limit:
                    fitting += [number] if is_tuple or leaf in brackets else []
            if not fitting:
                break
            depth = min(leaves[number].depth for number in fitting)
            at = max(number for number in fitting if leaves[number].depth == depth)
            opening = brackets.get(leaves[at]) or bare
            assert opening is not None
            if opening is bare and bare not in aligned:
                yield Replacement(opening.start, opening.start, "(")
                yield Replacement(statement.end, statement.end, ")")
                aligned[opening] = _blank(before + text[first.start : opening.start]) + " "
            elif opening not in aligned:
                is_continued = _ends_row(opening, text) or brackets.get(first) is opening
                aligned[opening] = before if is_continued else _behind(opening, first, before, text)
            before = aligned[opening]
            yield Replacement(leaves[at].end, leaves[at + 1].start, f"\n{before}")
            leaves = leaves[at + 1 :]


def comment_in_its_column(before: Statement, old_text: str, statement: Statement, text: str) -> Iterator[Replacement]:
    """Yield what leaves a comment where it was if it stands apart, in line with those of other rows."""
    was, now = (len(one.comment) - len(one.comment.lstrip(" ")) for one in (before, statement))
    if was == now > _APART and "\n" not in before.text(old_text) + statement.text(text):
        grown = width(statement.text(text)) - width(before.text(old_text))
        yield Replacement(statement.end, statement.end + now, " " * max(was - grown, _APART))


def _brackets(leaves: Sequence[Leaf]) -> dict[Leaf, Leaf]:
    """The opening bracket around each leaf that is in some."""
    found: dict[Leaf, Leaf] = {}
    opened: list[Leaf] = []
    for leaf in leaves:
        if leaf.closes and opened:
            opened.pop()
        if opened:
            found[leaf] = opened[-1]
        if leaf.opens:
            opened.append(leaf)
    return found


def _bare_tuple(leaves: Sequence[Leaf]) -> Leaf | None:
    """The first leaf of a tuple without brackets that is assigned or returned."""
    first = first_of_value(leaves) if leaves else 0
    value = leaves[first:] if first and leaves[-1].text != ":" else ()
    return value[0] if any(leaf.text == "," and not leaf.depth for leaf in value) else None


def _behind(bracket: Leaf, first: Leaf, before: str, text: str) -> str:
    """What stands in line with what follows a bracket: `before` comes before the `first` leaf of the row at hand."""
    if bracket.start >= first.start:
        return _blank(before + text[first.start : bracket.end])
    return _blank(text[text.rfind("\n", 0, bracket.start) + 1 : bracket.end])


def _ends_row(bracket: Leaf, text: str) -> bool:
    end = text.find("\n", bracket.start)
    return text[bracket.start : end if end >= 0 else len(text)].rstrip().endswith(tuple(OPENING))


def _blank(text: str) -> str:
    return "".join(one if one in "\t " else " " for one in text)

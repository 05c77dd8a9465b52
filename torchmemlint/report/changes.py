"""A fix as a small diff: the lines it takes away and those it puts there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.fixes.edits import EditError, apply_edits
from torchmemlint.immutable import immutable
from torchmemlint.report.columns import show
from torchmemlint.report.paint import Paint
from torchmemlint.source.sequences import common_ends

LONGEST = 8  # lines of each sign in one hunk; the rest is counted
MOST = 16  # lines of all hunks, after which the rest is counted: a loop moved into a block shows how that begins


@immutable()
class Hunk:
    """Lines of the file, from `row` on, and what takes their place."""

    row: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def hunks(lines: Sequence[str], edits: Sequence[Edit]) -> list[Hunk]:
    """What the edits change, in the order of the file; empty where they do not fit it."""
    found: list[Hunk] = []
    for first, last, group in _by_rows(edits):
        if first > len(lines) + 1:
            return []
        block = list(lines[first - 1 : last])
        if last == len(lines) + 1:
            block.append("")  # an insertion after the last newline
        moved = [Edit(Span(_up(edit.span.start, first), _up(edit.span.end, first)), edit.content) for edit in group]
        try:
            new = apply_edits("\n".join(block), moved).split("\n")
        except EditError:
            return []
        head, tail = common_ends(block, new)
        old, new = block[head : len(block) - tail], new[head : len(new) - tail]
        if old or new:
            found.append(Hunk(first + head, tuple(old), tuple(new)))
    return found


def diff_lines(found: Sequence[Hunk], gutter: int, paint: Paint, source: Sequence[str] = ()) -> Iterator[str]:
    """The hunks as lines with numbers and signs: those of the old file for `-`, those of the new one for `+`.

    What only inserts is followed by the line of `source` that it stands before, with its new number.
    """
    bar = paint.gutter("|")
    shift = 0  # lines that the hunks above have added
    shown = 0
    for place, hunk in enumerate(found):
        if shown >= MOST:
            rest = sum(max(len(one.old), len(one.new)) for one in found[place:])
            note = f"… and {rest} more line{'s' if rest > 1 else ''} below"
            yield f"{' ' * gutter} {bar} {paint.faint(note)}"
            return
        for sign, lines, first in (("-", hunk.old, hunk.row), ("+", hunk.new, hunk.row + shift)):
            colour = paint.removed if sign == "-" else paint.added
            shown += min(len(lines), LONGEST)
            for number, line in enumerate(lines[:LONGEST], first):
                yield f"{paint.gutter(f'{number:>{gutter}}')} {bar} {colour(f'{sign} {show(line).text}'.rstrip())}"
            if len(lines) > LONGEST:
                left_out = len(lines) - LONGEST
                note = f"{sign} … {left_out} more line{'s' if left_out > 1 else ''}"
                yield f"{' ' * gutter} {bar} {paint.faint(note)}"
        shift += len(hunk.new) - len(hunk.old)
        if not hunk.old and hunk.row <= len(source):
            line = f"  {show(source[hunk.row - 1]).text}".rstrip()
            yield f"{paint.gutter(f'{hunk.row + shift:>{gutter}}')} {bar} {line}".rstrip()


def _by_rows(edits: Sequence[Edit]) -> list[tuple[int, int, list[Edit]]]:
    """Edits in groups that touch the same or neighbouring rows: first row, last row, edits."""
    groups: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(set(edits)):
        first, last = edit.span.start.row, edit.span.end.row
        if groups and first <= groups[-1][1] + 1:
            start, end, group = groups[-1]
            groups[-1] = (start, max(end, last), [*group, edit])
        else:
            groups.append((first, last, [edit]))
    return groups


def _up(position: Position, first: int) -> Position:
    """A position in a block that begins at row `first` of the file."""
    return Position(position.row - first + 1, position.column)

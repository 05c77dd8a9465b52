"""What an edit changed in a file: the top-level statements that are no longer what they were."""

from __future__ import annotations

import re

from torchmemlint.findings import Position
from torchmemlint.immutable import immutable
from torchmemlint.source.decoding import UnreadableFile
from torchmemlint.source.sequences import common_ends
from torchmemlint.syntax.source_module import Piece, SourceModule

_LINE = re.compile(r"(\bline )(\d+)\b")  # in what Python says: "(detected at line 20)"


@immutable()
class Revision:
    """A text after an edit, held against the one before."""

    text: str
    pieces: list[Piece]  # in order; those that are as they were are the same objects
    moved: list[tuple[Piece, int]]  # those that are as they were but stand elsewhere, and by how many rows
    gone: list[Piece]
    come: list[Piece]


def compare(source: SourceModule, text: str) -> Revision | None:
    """What became of a file's pieces; None where the standard parser did not read one of the texts.

    Only the statements that the edit touches are parsed. Raises UnreadableFile where these cannot be read.
    """
    old = source.pieces
    if any(piece.outline is None for piece in old):
        return None
    rows = SourceModule.rows_of(text)
    head, tail = common_ends(source.rows, rows)
    grown = len(rows) - len(source.rows)
    # What is read anew goes from the first piece that the edit touches to the one after the last.
    first = max((n for n, piece in enumerate(old) if piece.first_row <= head + 1), default=0)
    last = max((n for n, piece in enumerate(old) if piece.first_row <= len(source.rows) - tail), default=-1)
    last = max(first, last)
    start = old[first].first_row - 1 if old and old[first].first_row <= head + 1 else 0
    end = old[last + 1].first_row - 1 + grown if last + 1 < len(old) else len(rows)
    try:
        anew = SourceModule("\n".join(rows[start:end]) + "\n", source.path).pieces
    except UnreadableFile as problem:
        place = problem.position
        message = _LINE.sub(lambda match: f"{match[1]}{int(match[2]) + start}", problem.message)
        raise UnreadableFile(message, place and Position(place.row + start, place.column)) from problem
    if any(piece.outline is None for piece in anew):
        return None
    touched = old[first : last + 1]
    same, same_after = common_ends([piece.text for piece in touched], [piece.text for piece in anew])
    gone, come = touched[same : len(touched) - same_after], anew[same : len(anew) - same_after]
    for piece in anew:
        piece.move(start)
    after = len(touched) - same_after
    moved = [(piece, new.first_row - piece.first_row) for piece, new in zip(touched[:same], anew, strict=False)]
    moved += [
        (piece, new.first_row - piece.first_row)
        for piece, new in zip(touched[after:], anew[len(anew) - same_after :], strict=True)
    ]
    moved += [(piece, grown) for piece in old[last + 1 :]]
    pieces = [*old[:first], *touched[:same], *come, *touched[after:], *old[last + 1 :]]
    return Revision(text, pieces, [(piece, rows) for piece, rows in moved if rows], gone, come)

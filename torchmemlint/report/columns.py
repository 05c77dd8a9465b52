"""How source text looks on a terminal: how wide it is, and that it cannot play tricks there."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from torchmemlint.immutable import immutable

TAB = 4  # columns to the next tab stop
_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@immutable()
class Shown:
    """A source line as it is printed."""

    text: str
    columns: Sequence[int]  # of each character of the source, then of the end: how many columns come before it

    def column(self, position: int) -> int:
        """Terminal columns before the character in 1-based source column `position`; the end for those beyond it."""
        return self.columns[min(max(position - 1, 0), len(self.columns) - 1)]


def width(character: str) -> int:
    """Terminal columns that one printable character takes: 0, 1 or 2."""
    if character.isascii():
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def text_width(text: str) -> int:
    """Terminal columns that a text takes (as `show` leaves it)."""
    return len(text) if text.isascii() else sum(map(width, text))


def show(line: str) -> Shown:
    """A source line with tabs expanded and control characters made visible.

    An escape sequence or a direction mark in somebody's source must not reach the reader's terminal.
    """
    if line.isascii() and line.isprintable():  # most lines: a column a character
        return Shown(line, range(len(line) + 1))
    pieces: list[str] = []
    columns = [0]
    at = 0
    for character in line:
        piece = _visible(character, at)
        pieces.append(piece)
        at += text_width(piece)
        columns.append(at)
    return Shown("".join(pieces), tuple(columns))


def _visible(character: str, at: int) -> str:
    if character == "\t":
        return " " * (TAB - at % TAB)
    if character < " ":
        return chr(0x2400 + ord(character))
    if character == "\x7f":
        return "\u2421"
    if "\x80" <= character < "\xa0" or "\ud800" <= character <= "\udfff" or character in _BIDIRECTIONAL:
        return "\ufffd"
    return "\ufffd" if character in "\u2028\u2029" else character


def pad(text: str, columns: int) -> str:
    """The text with blanks up to `columns` terminal columns."""
    return text + " " * (columns - text_width(text))


def shorten(text: str, columns: int) -> str:
    """The text in at most `columns` terminal columns, an ellipsis for what is cut off its end."""
    if text_width(text) <= columns:
        return text
    kept: list[str] = []
    used = 0
    for character in text:
        used += width(character)
        if used > columns - 1:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"

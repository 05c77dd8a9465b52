"""Places in a text: the protocol's, which count units of an agreed encoding, and our own, which count characters."""

from __future__ import annotations

from lsprotocol import types as lsp

from torchmemlint.findings import Position, Span
from torchmemlint.fixes.edits import EditError, TextIndex


class Places:
    """Turns places in one text from one kind into the other.

    Rows end where the protocol (and Python) ends them: at `\\n`, `\\r\\n` and `\\r`, nowhere else. Places outside of
    the text become the nearest one inside, as the protocol demands of columns.
    """

    def __init__(self, text: str, encoding: lsp.PositionEncodingKind | str) -> None:
        self._text = text
        self._encoding = encoding
        self._index = TextIndex.of(text)
        self._starts = (0, *self._index.starts[1:])  # a byte-order mark counts in the protocol
        self._plain = text.isascii()

    def offset(self, position: lsp.Position) -> int:
        """The offset in characters of a place of the protocol."""
        if position.line >= len(self._starts):
            return len(self._text)
        line = self._line(position.line)
        start = self._starts[position.line]
        if self._plain or self._encoding == lsp.PositionEncodingKind.Utf32:
            return start + min(position.character, len(line))
        units = 0
        for number, character in enumerate(line):
            if units >= position.character:
                return start + number
            units += self._width(character)
        return start + len(line)

    def position(self, offset: int) -> lsp.Position:
        """The place of an offset in characters."""
        row = self._index.position(offset).row
        start = self._starts[row - 1]
        return lsp.Position(row - 1, self._units(self._text[start:offset]))

    def range(self, span: Span) -> lsp.Range:
        """A span of ours as a range of the protocol."""
        return lsp.Range(self.position(self._offset(span.start)), self.position(self._offset(span.end)))

    def span(self, found: lsp.Range) -> Span:
        """A range of the protocol as a span of ours."""
        start, end = self.offset(found.start), self.offset(found.end)
        return Span(self._index.position(min(start, end)), self._index.position(max(start, end)))

    def _offset(self, position: Position) -> int:
        try:
            return self._index.offset(position)
        except EditError:  # past the end of its row, or of the text
            if position.row > len(self._starts):
                return len(self._text)
            return self._starts[max(position.row, 1) - 1] + len(self._line(max(position.row, 1) - 1))

    def _line(self, number: int) -> str:
        """A row without its line end."""
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._text)
        return self._text[self._starts[number] : end].rstrip("\r\n")

    def _units(self, text: str) -> int:
        if self._plain or self._encoding == lsp.PositionEncodingKind.Utf32:
            return len(text)
        return sum(map(self._width, text))

    def _width(self, character: str) -> int:
        code = ord(character)
        if self._encoding == lsp.PositionEncodingKind.Utf8:
            return 1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)
        return 1 + (code > 0xFFFF)

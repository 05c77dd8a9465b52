"""Bytes to text and back, exactly."""

from __future__ import annotations

from torchmemlint.findings import Position


class UnreadableFile(Exception):
    """A file that cannot be analysed: not decodable, not readable, or not valid Python."""

    def __init__(self, message: str, position: Position | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position

    def __reduce__(self) -> tuple[type[UnreadableFile], tuple[str, Position | None]]:
        return UnreadableFile, (self.message, self.position)

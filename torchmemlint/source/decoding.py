"""Bytes to text and back, exactly: byte order mark, PEP 263 cookie and newlines are kept."""

from __future__ import annotations

import io
import os
import re
import tokenize
from pathlib import Path

from torchmemlint.findings import Position
from torchmemlint.immutable import immutable
from torchmemlint.regular import NotRegularError, read_regular

_BOM = b"\xef\xbb\xbf"
_NEWLINE = re.compile(r"\r\n|\n|\r")
_NEWLINE_BYTES = re.compile(rb"\r\n|\n|\r")


class UnreadableFile(Exception):  # noqa: N818 (it names what the file is)
    """A file that cannot be analysed: not decodable, not readable, or not valid Python."""

    def __init__(self, message: str, position: Position | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position

    def __reduce__(self) -> tuple[type[UnreadableFile], tuple[str, Position | None]]:
        return UnreadableFile, (self.message, self.position)


class LimitReached(UnreadableFile):
    """A file that is passed over because it would take more than a limit of that name allows."""

    def __init__(self, limit: str, reason: str, position: Position | None = None) -> None:
        super().__init__(f"Passed over: {reason} (limit `{limit}`)", position)
        self.limit, self.reason = limit, reason

    def __reduce__(self) -> tuple[type[LimitReached], tuple[str, str, Position | None]]:  # type: ignore[override]
        return LimitReached, (self.limit, self.reason, self.position)


@immutable()
class SourceText:
    """A decoded file. `text` keeps the newlines of the file and never starts with a byte order mark."""

    text: str
    encoding: str = "utf-8"  # a codec name; the byte order mark is not part of it
    bom: bool = False

    @property
    def shown(self) -> str:
        """The text as people see it."""
        return self.text

    @property
    def newline(self) -> str:
        """The commonest newline of the file; a line feed where it has none."""
        crlf = self.text.count("\r\n")
        counts = {"\n": self.text.count("\n") - crlf, "\r\n": crlf, "\r": self.text.count("\r") - crlf}
        return max(counts, key=lambda newline: counts[newline])

    def encode(self, text: str | None = None) -> bytes:
        """The bytes of `text` (of this text, if not given) in this file's encoding.

        Raises `UnreadableFile` for a character that the encoding does not have.
        """
        try:
            data = (self.text if text is None else text).encode(self.encoding)
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            raise UnreadableFile(f"the file's encoding {self.encoding} has no character {character!r}") from error
        except UnicodeError as error:  # `idna` reads more than it writes
            raise UnreadableFile(f"the file's encoding {self.encoding} cannot write it: {error}") from error
        return _BOM + data if self.bom else data


# Codecs of the packages of these names: UTF-8, with which older versions of Python read newer syntax.
_BACKPORTS = frozenset({"future-fstrings", "future-annotations", "future-typing"})


def lines_of(text: str) -> list[str]:
    """The lines of `text` without their newlines, split where Python splits them (not at form feeds)."""
    lines = _NEWLINE.split(text)
    if lines[-1] == "":
        lines.pop()
    return lines


def decode(data: bytes) -> SourceText:
    """Decode a source file as Python does; raises `UnreadableFile` where Python would refuse."""
    head = b"\n".join(_NEWLINE_BYTES.split(data[:4096], 2)[:2]) + b"\n"
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(head).readline)
    except SyntaxError as error:
        declared = str(error).rpartition("unknown encoding: ")[2].replace("_", "-").lower()
        if "invalid or missing encoding" not in str(error) and declared not in _BACKPORTS:
            raise UnreadableFile(f"Cannot be decoded: {error.msg}", Position(1, 1)) from error
        encoding = "utf-8"  # where the two first lines are not, decoding below says so
    bom = data.startswith(_BOM)
    if bom:
        data, encoding = data[len(_BOM) :], "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UnreadableFile(_undecodable(error, encoding), _position(data, error.start)) from error
    except (LookupError, ValueError, OverflowError) as error:
        # A codec that does not make text, such as `hex`, or not of this: `idna`, `punycode`, `undefined`.
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnreadableFile(f"Cannot be decoded: {reason}", Position(1, 1)) from error
    null = text.find("\0")
    if null >= 0:
        raise UnreadableFile("Contains a null byte: not Python source", position_of(text, null))
    return SourceText(text, encoding, bom)


def read(path: Path, most: int | None = None) -> bytes:
    """The bytes of a regular file, `most` of them at most; raises `UnreadableFile` with the system's reason."""
    try:
        return read_regular(path, most)
    except NotRegularError as error:
        raise UnreadableFile(f"Cannot be read: {error.strerror}") from error
    except OSError as error:
        raise UnreadableFile(f"Cannot be read: {os.strerror(error.errno) if error.errno else error}") from error


def position_of(text: str, index: int) -> Position:
    """Row and column of the character at `index`."""
    before = _NEWLINE.split(text[:index])
    return Position(len(before), len(before[-1]) + 1)


def _position(data: bytes, index: int) -> Position:
    before = _NEWLINE_BYTES.split(data[:index])
    return Position(len(before), len(before[-1].decode("utf-8", "replace")) + 1)


def _undecodable(error: UnicodeDecodeError, encoding: str) -> str:
    byte = f"byte 0x{error.object[error.start]:02x}"
    if encoding == "utf-8":
        return f"Cannot be decoded: {byte} is not valid UTF-8; declare the encoding (`# coding: latin-1`) or convert it"
    return f"Cannot be decoded: {byte} is not valid {encoding}, the encoding that it declares"

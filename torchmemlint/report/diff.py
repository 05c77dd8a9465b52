"""What the fixes changed, or would change, as a unified diff that `patch` and `git apply` read."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import shown_path

_NO_NEWLINE = "\\ No newline at end of file"


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The diffs of all files that the fixes touch, without line endings of their own added."""
    for one in report.fixed:
        name = _quoted(Path(shown_path(one.filename, root)).as_posix())
        if one.cells is None:
            yield from _file(name, one.before, one.after, paint)
        for cell in one.cells or ():  # as ruff shows them: the cells' own rows, which no tool could patch
            yield from _file(f"{name}:cell {cell.number}", cell.before, cell.after, paint)


def _file(name: str, before: str, after: str, paint: Paint) -> Iterator[str]:
    found = difflib.unified_diff(_rows(before), _rows(after), name, name)
    for line in found:
        # difflib ends its own three kinds of header with a newline, and every row as the file does.
        text, ended = (line[:-1], True) if line.endswith("\n") else (line, False)
        match text[:1]:
            case "+":
                yield paint.strong(text) if text.startswith("+++ ") else paint.added(text)
            case "-":
                yield paint.strong(text) if text.startswith("--- ") else paint.removed(text)
            case "@":
                yield paint.gutter(text)
            case _:
                yield text
        if not ended:
            yield _NO_NEWLINE


def _quoted(name: str) -> str:
    """A name as git writes it: in quotes where it has a letter that is none, or could end the line."""
    if name.isprintable() and '"' not in name and "\\" not in name:
        return name
    letters = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in os.fsencode(name))
    return f'"{"".join(letters)}"'


def _rows(text: str) -> list[str]:
    r"""The text in rows that end at `\n`, as `patch` counts them."""
    rows = text.split("\n")
    return [*(row + "\n" for row in rows[:-1]), *([rows[-1]] if rows[-1] else [])]

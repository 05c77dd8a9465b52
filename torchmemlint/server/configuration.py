"""What is wrong with a configuration file, shown in that file."""

from __future__ import annotations

import re
from pathlib import Path

from lsprotocol import types as lsp

from torchmemlint.config.errors import ConfigError
from torchmemlint.server.diagnostics import SOURCE
from torchmemlint.source.decoding import lines_of

_PLACE = re.compile(r"\(at line (?P<line>\d+), column (?P<column>\d+)\)|\(at end of document\)")
_KEY = re.compile(r"`(?P<key>[\w.-]+)`")


def problem_in(error: ConfigError, file: Path, text: str) -> lsp.Diagnostic:
    """The diagnostic for a configuration file with this text."""
    message = str(error).removeprefix(f"{file}: ")
    message = message[:1].upper() + message[1:]
    rows = lines_of(text) or [""]
    row, first, last = _place(message, rows)
    where = lsp.Range(lsp.Position(row, first), lsp.Position(row, last))
    return lsp.Diagnostic(where, message, lsp.DiagnosticSeverity.Error, "configuration", source=SOURCE)


def _place(message: str, rows: list[str]) -> tuple[int, int, int]:
    """Row, first and last column, all from 0."""
    place = _PLACE.search(message)
    if place is not None:
        row = min(int(place["line"] or len(rows)), len(rows)) - 1
        return row, min(int(place["column"] or 1) - 1, len(rows[row])), len(rows[row])
    for named in _KEY.finditer(message):
        key = re.escape(named["key"])
        definition = re.compile(rf"\s*(?:\[[\w.\s-]*\b{key}\]|[\"']?{key}[\"']?\s*=)")
        for row, line in enumerate(rows):
            if definition.match(line):
                return row, len(line) - len(line.lstrip()), len(line.rstrip())
    return 0, 0, len(rows[0])

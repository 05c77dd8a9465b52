"""Notebooks: from the bytes of an `.ipynb` file to the program that its cells make, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from torchmemlint.findings import CellIndex, Position, RawRow
from torchmemlint.immutable import immutable
from torchmemlint.source.cells import CellProgram, program_of
from torchmemlint.source.decoding import UnreadableFile, position_of
from torchmemlint.source.notebook_json import Layout

SUFFIX = ".ipynb"
_BOM = "\ufeff"
_LARGE = frozenset(("outputs", "attachments", "widgets"))  # what is never looked at
_FOREIGN_KERNEL = re.compile(
    r"ir\d*|julia.*|javascript|nodejs|bash|scala.*|rust|sql|java|gophernotes|.*\.net-(?!python).*|octave|matlab|ruby"
)


@immutable()
class NotebookText:
    """A notebook as one program: to the rest of the linter the same as a `SourceText`."""

    program: CellProgram
    numbers: tuple[int, ...]  # of the cells that make the program, among all cells of the notebook, from 1
    _json: str

    @property
    def text(self) -> str:
        """The program."""
        return self.program.text

    @property
    def shown(self) -> str:
        """The same rows as they stand in the cells."""
        return self.program.shown

    @property
    def newline(self) -> str:
        """The newline of the program."""
        return "\n"

    def encode(self, text: str | None = None) -> bytes:
        """The bytes of the notebook once its program reads `text`: all else is as it was, byte for byte.

        Raises `UnreadableFile` where the change goes over the border of a cell, or into what is no Python.
        """
        if text is None or text == self.text:
            return self._json.encode()
        changed = self.program.changed(text)
        if changed is None:
            raise UnreadableFile("the change goes over the border of a cell, or into what is no Python")
        found = self._replaced(changed)
        again = read_notebook(found.encode("utf-8", "surrogatepass"))
        if again.text != text:
            raise UnreadableFile("the changed cells would be read in another way")
        return found.encode()

    def cells(self) -> CellIndex:
        """Where the rows of the program stand."""
        layout = Layout(self._json.removeprefix(_BOM))
        raw: list[RawRow] = []
        end = Position(1, 1)
        for number, cell in zip(self.numbers, self.program.cells, strict=True):
            if raw:
                raw.append(RawRow(end))  # the row between two cells
            source = layout.sources[number - 1]
            rows = layout.rows(source) if source is not None else []
            if len(rows) != len(cell.rows):
                start = layout.position(source.start) if source is not None else Position(1, 1)
                rows = [(start, "")] * len(cell.rows)
            raw += [RawRow(place, escaped) for place, escaped in rows]
            end = layout.position(source.end) if source is not None else Position(1, 1)
        raw.append(RawRow(end))
        return CellIndex(self.program.first_rows, self.numbers, tuple(raw))

    def _replaced(self, cells: Sequence[str]) -> str:
        bom, text = (_BOM, self._json[1:]) if self._json.startswith(_BOM) else ("", self._json)
        layout = Layout(text)
        pieces: list[str] = []
        at = 0
        for number, before, after in zip(self.numbers, self.program.texts, cells, strict=True):
            source = layout.sources[number - 1]
            if before != after and source is not None:
                pieces += [text[at : source.start], layout.replaced(source, after)]
                at = source.end
        return bom + "".join(pieces) + text[at:]


def read_notebook(data: bytes) -> NotebookText:
    """The program of a notebook. Raises `UnreadableFile` for what Jupyter does not open either."""
    text = _decoded(data)
    notebook = _parsed(text.removeprefix(_BOM))
    version = notebook.get("nbformat")
    if "cells" not in notebook and isinstance(notebook.get("worksheets"), list):
        raise UnreadableFile(
            f"A notebook of format {version}, which Jupyter has not written since 2015: "
            "`jupyter nbconvert --to notebook` brings it to format 4"
        )
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise UnreadableFile("Not a notebook: it has no list `cells`", Position(1, 1))
    if type(version) is int and version > 4:
        raise UnreadableFile(f"A notebook of format {version}; this version of torchmemlint knows format 4")
    python = _is_python(notebook.get("metadata"))
    found: list[tuple[int, str]] = []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, Mapping):
            raise UnreadableFile(f"Not a notebook: cell {number} is no object", Position(1, 1))
        if cell.get("cell_type") == "code" and _is_python_cell(cell, python):
            found.append((number, _text_of(cell, number)))
    return NotebookText(program_of([cell for _, cell in found]), tuple(number for number, _ in found), text)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        byte = f"byte 0x{data[error.start]:02x}"
        raise UnreadableFile(
            f"Cannot be decoded: {byte} is not valid UTF-8, as notebooks must be", position_of(before, len(before))
        ) from error


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        notebook = json.loads(text, object_pairs_hook=_lean)
    except json.JSONDecodeError as error:
        message = f"Not a notebook: invalid JSON ({error.msg})"
        raise UnreadableFile(message, Position(error.lineno, error.colno)) from error
    except RecursionError as error:
        raise UnreadableFile("Not a notebook: its JSON is nested too deeply", Position(1, 1)) from error
    except ValueError as error:  # a number of more digits than Python reads
        raise UnreadableFile(f"Not a notebook: {error}", Position(1, 1)) from error
    if not isinstance(notebook, Mapping):
        raise UnreadableFile("Not a notebook: its JSON is no object", Position(1, 1))
    return notebook


def _lean(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without what is never looked at: the images of a notebook may be a hundred times its code."""
    return {key: value for key, value in pairs if key not in _LARGE}


def _is_python(metadata: object) -> bool:
    """Does the notebook say of itself that it is Python, or nothing?"""
    if not isinstance(metadata, Mapping):
        return True
    language, kernel = metadata.get("language_info"), metadata.get("kernelspec")
    if isinstance(language, Mapping) and isinstance(language.get("name"), str):
        return _names_python(language["name"])
    if isinstance(kernel, Mapping):
        if isinstance(kernel.get("language"), str):
            return _names_python(kernel["language"])
        return _FOREIGN_KERNEL.fullmatch(str(kernel.get("name", "")).lower()) is None
    return True


def _is_python_cell(cell: Mapping[str, Any], python: bool) -> bool:
    """An editor may note the language of a cell beside it."""
    metadata = cell.get("metadata")
    editor = metadata.get("vscode") if isinstance(metadata, Mapping) else None
    language = editor.get("languageId") if isinstance(editor, Mapping) else None
    return _names_python(language) if isinstance(language, str) else python


def _names_python(language: str) -> bool:
    return language.lower() in ("python", "python2", "python3", "ipython", "ipython2", "ipython3", "")


def _text_of(cell: Mapping[str, Any], number: int) -> str:
    source = cell.get("source", "")
    if isinstance(source, str):
        return source
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        return "".join(source)
    raise UnreadableFile(f"Not a notebook: the source of cell {number} is no text", Position(1, 1))

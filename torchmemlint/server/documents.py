"""The documents that are open in the editor, as they stand there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lsprotocol import types as lsp
from pygls import uris

from torchmemlint.immutable import immutable
from torchmemlint.server.positions import Places

PYTHON = "python"


@immutable()
class Document:
    """A text that is open: a file, or a cell of a notebook. A change makes a new one."""

    uri: str  # as the client writes it
    text: str
    version: int
    language: str = PYTHON


@immutable()
class Notebook:
    """A notebook that is open, with its cells of code in their order."""

    uri: str
    cells: tuple[str, ...]  # their URIs
    version: int


def path_of(uri: str) -> Path | None:
    """The file that a URI names; None where it names none (a text that was never saved)."""
    if not uri.startswith("file:"):
        return None
    path = uris.to_fs_path(uri)
    return Path(path) if path else None


def uri_of(path: Path) -> str:
    """The URI of a file."""
    return str(uris.from_fs_path(str(path)))


def changed(document: Document, changes: Sequence[lsp.TextDocumentContentChangeEvent], encoding: str) -> Document:
    """The document after changes, which are made one after the other."""
    text = document.text
    for change in changes:
        if isinstance(change, lsp.TextDocumentContentChangePartial):
            places = Places(text, encoding)
            start, end = sorted((places.offset(change.range.start), places.offset(change.range.end)))
            text = text[:start] + change.text + text[end:]
        else:
            text = change.text
    return replace(document, text=text)


class Documents:
    """All that is open. Read from several threads, changed from one."""

    def __init__(self) -> None:
        self._texts: dict[str, Document] = {}
        self._notebooks: dict[str, Notebook] = {}
        self._notebook_of: dict[str, str] = {}  # by cell

    def get(self, uri: str) -> Document | None:
        """The text that is open under a URI."""
        return self._texts.get(uri)

    def notebook(self, uri: str) -> Notebook | None:
        """The notebook that is open under a URI."""
        return self._notebooks.get(uri)

    def owner(self, uri: str) -> str:
        """What is checked where a text is asked about: its notebook, or the text itself."""
        return self._notebook_of.get(uri, uri)

    def owners(self) -> list[str]:
        """All that can be checked: files and notebooks."""
        texts = [uri for uri in list(self._texts) if uri not in self._notebook_of]
        return [*texts, *list(self._notebooks)]

    def files(self) -> Iterator[tuple[Path, str]]:
        """The files that are open, with their texts (without a byte-order mark)."""
        for document in list(self._texts.values()):
            path = path_of(document.uri) if document.uri not in self._notebook_of else None
            if path is not None:
                yield path, document.text.removeprefix("\ufeff")

    def put(self, document: Document) -> None:
        """Open a text, or set it to a new state."""
        self._texts[document.uri] = document

    def drop(self, uri: str) -> None:
        """Close a text."""
        self._texts.pop(uri, None)

    def put_notebook(self, notebook: Notebook) -> None:
        """Open a notebook whose cells are open, or set it to a new state."""
        for cell in [cell for cell, owner in self._notebook_of.items() if owner == notebook.uri]:
            del self._notebook_of[cell]
        self._notebook_of.update(dict.fromkeys(notebook.cells, notebook.uri))
        self._notebooks[notebook.uri] = notebook

    def drop_notebook(self, uri: str) -> None:
        """Close a notebook and its cells."""
        for cell in [cell for cell, owner in self._notebook_of.items() if owner == uri]:
            del self._notebook_of[cell]
            self._texts.pop(cell, None)
        self._notebooks.pop(uri, None)

"""The text of a file that is checked, whatever kind it is: the one door to the bytes of Python files and notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torchmemlint.source.decoding import SourceText, decode

if TYPE_CHECKING:
    from torchmemlint.source.notebook import NotebookText

NOTEBOOK = ".ipynb"


def is_notebook(path: Path) -> bool:
    """Is this the name of a notebook?"""
    return path.suffix == NOTEBOOK


def load(data: bytes, path: Path) -> SourceText | NotebookText:
    """The text of the file that `path` names: its `text` is the Python to check (of a notebook, that of all its cells),
    `shown` the same rows as people see them, and `encode` makes bytes of a changed `text`.

    Raises `UnreadableFile`.
    """
    if not is_notebook(path):
        return decode(data)
    from torchmemlint.source.notebook import read_notebook

    return read_notebook(data)

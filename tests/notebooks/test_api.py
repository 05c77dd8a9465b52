"""Notebooks by way of the Python API."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from tests.notebooks.test_checking import TRAINING, demonstration
from torchmemlint import check_paths, check_source, fix_source


@pytest.mark.parametrize("as_bytes", [False, True])
def test_check_and_fix(tmp_path: Path, as_bytes: bool) -> None:
    text = nbformat.writes(demonstration())
    source = text.encode() if as_bytes else text
    (finding,) = check_source(source, path=tmp_path / "n.ipynb", select=["TML101"])
    assert finding.cells is not None
    assert finding.cells.cell(finding.span.start.row) == 5
    assert finding.cells.within(finding.span.start).row == 9
    fixed = fix_source(source, path=tmp_path / "n.ipynb", select=["TML101"])
    assert fixed.text == text.replace("total += loss  #", "total += loss.detach()  #")
    assert nbformat.reads(fixed.text, as_version=4).cells[4].source == TRAINING.replace("+= loss", "+= loss.detach()")
    again = fix_source(fixed.text, path=tmp_path / "n.ipynb", select=["TML101"])
    assert (again.text, again.applied, again.remaining) == (fixed.text, (), ())
    assert list(tmp_path.iterdir()) == []


def test_paths(tmp_path: Path) -> None:
    nbformat.write(demonstration(), tmp_path / "n.ipynb")
    (finding,) = check_paths(tmp_path, select=["TML101"], isolated=True)
    assert finding.filename == tmp_path / "n.ipynb"


def test_what_is_no_notebook(tmp_path: Path) -> None:
    (finding,) = check_source("import torch", path=tmp_path / "n.ipynb")
    assert finding.code == "TML000"
    assert fix_source("import torch", path=tmp_path / "n.ipynb").text == "import torch"

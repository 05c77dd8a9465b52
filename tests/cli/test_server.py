"""What `torchmemlint server` says before it serves: editors ask whether there is a server at all."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from torchmemlint import __version__


def test_the_version_names_what_the_server_stands_on(run: Any, project: Path) -> None:
    pytest.importorskip("pygls")
    outcome = run("server", "--version")
    assert (outcome.code, outcome.err) == (0, "")
    assert re.fullmatch(rf"torchmemlint {re.escape(__version__)} \(pygls \d+\.\S+\)\n", outcome.out)


def test_without_pygls_the_version_is_an_error(run: Any, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    outcome = run("server", "--version")
    assert (outcome.code, outcome.out) == (2, "")
    assert "pip install 'torchmemlint[lsp]'" in outcome.err

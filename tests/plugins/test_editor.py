"""Rules of plugins in the language server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types as lsp

from torchmemlint.rules import registry
from torchmemlint.server import pages
from torchmemlint.server.comments import code_at
from torchmemlint.server.diagnostics import Presenter
from torchmemlint.server.documents import Document
from torchmemlint.server.session import Checked, Session
from torchmemlint.server.settings import ClientSettings, read_settings

from .conftest import PROGRAM, rule


def checked(folder: Path) -> Checked:
    """What the server finds in the open file."""
    session = Session()
    session.folders.add(folder)
    path = folder / "a.py"
    session.documents.put(Document(path.as_uri(), PROGRAM, 1))
    try:
        return asyncio.run(asyncio.wait_for(session.check(path.as_uri()), 30))
    finally:
        session.worker.end()


def test_findings_are_diagnostics(site: Path, project: Path) -> None:
    (site / "acme_lints.py").write_text(
        rule().replace("    why = ", "    url = 'https://acme.example/101'\n    why = ")
    )
    (project / "torchmemlint.toml").write_text('plugins = ["acme_lints"]\n')
    found = checked(project)
    assert [finding.code for finding in found.all] == ["ACM101"]
    presenter = Presenter("utf-16", lambda path: PROGRAM, lsp.ClientCapabilities())
    ((_, diagnostic),) = presenter.of_unit(found)[(project / "a.py").as_uri()]
    assert (diagnostic.code, diagnostic.source) == ("ACM101", "torchmemlint")
    assert diagnostic.code_description == lsp.CodeDescription("https://acme.example/101")


def test_a_plugin_that_fails_is_said(site: Path, project: Path) -> None:
    broken = rule()
    (site / "acme_lints.py").write_text(
        broken[: broken.index("        for call in")] + "        raise ValueError('no')\n"
    )
    (project / "torchmemlint.toml").write_text('plugins = ["acme_lints"]\n')
    assert checked(project).failed


def test_pages_and_completions(site: Path) -> None:
    (site / "acme_lints.py").write_text(rule())
    registry.known(("acme_lints",))
    page = pages.page("ACM101")
    assert page is not None
    assert page.startswith("# unbounded-history (ACM101)")
    line = "x = 1  # torchmemlint: ignore["
    offered = pages.completions(line, lsp.Position(0, len(line)))
    assert {"TML101", "ACM101"} <= {item.label for item in offered}
    assert code_at("x = 1  # noqa: ACM101", 17) == ("ACM101", 15, 21)
    assert pages.page("ACM999") is None


def test_settings_of_the_editor_may_name_them() -> None:
    for word, problems in (("ACM1", 0), ("TML1", 0), ("TML9", 1), ("graph-acumulation", 1)):
        _, said = read_settings({"select": [word]}, ClientSettings(), None)
        assert len(said) == problems, word

"""A plugin's rule that has doubts, wherever its findings go."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from torchmemlint import Confidence, Doubt, Finding, check_paths, check_source, fix_source
from torchmemlint.flake8_plugin import Plugin

from .conftest import PROGRAM, Run, install, rule

MODULE = rule().replace("import Applicability,", "import Applicability, Doubt,")
CALL = 'evidence=[(call, "here")], fix=fix'
EACH = [
    ((), [Confidence.CERTAIN, Confidence.LIKELY, Confidence.POSSIBLE]),
    ((Doubt.GIVEN,), [Confidence.LIKELY, Confidence.POSSIBLE]),
    ((Doubt.MODE, Doubt.GIVEN), [Confidence.POSSIBLE]),
]


def plug_in(site: Path, *doubts: Doubt) -> None:
    words = ", ".join(f"Doubt.{doubt.name}" for doubt in doubts)
    install(site, "acme-lint", "one = acme_lints", acme_lints=MODULE.replace(CALL, f"{CALL}, doubts=[{words}]"))


@pytest.mark.parametrize(("doubts", "shown"), EACH)
@pytest.mark.parametrize("least", Confidence)
def test_a_finding_is_reported_by_what_is_asked_for(
    site: Path, project: Path, run: Run, doubts: tuple[Doubt, ...], shown: list[Confidence], least: Confidence
) -> None:
    plug_in(site, *doubts)
    found = json.loads(run("a.py", "--output-format=json", "--confidence", least.value).out)
    assert len(found) == (least in shown)
    settings = {"confidence": least.value}
    (project / "torchmemlint.toml").write_text(f'confidence = "{least.value}"\n')
    assert len(check_source(PROGRAM, settings=settings)) == len(found)
    assert len(check_paths([project / "a.py"])) == len(found)
    assert len(list(Plugin(None, str(project / "a.py"), PROGRAM.splitlines(keepends=True)).run())) == len(found)


def test_a_finding_tells_its_doubts(site: Path) -> None:
    plug_in(site, Doubt.MODE, Doubt.NETWORK_BY_USE)
    assert check_source(PROGRAM) == []
    (finding,) = check_source(PROGRAM, settings={"confidence": "possible"})
    assert isinstance(finding, Finding)
    assert finding.doubts == (Doubt.NETWORK_BY_USE, Doubt.MODE)
    assert finding.confidence is Confidence.POSSIBLE


def test_its_fix_is_unsafe(site: Path) -> None:
    plug_in(site, Doubt.GIVEN)
    assert fix_source(PROGRAM).text == PROGRAM
    assert "max_entries" in fix_source(PROGRAM, unsafe=True).text
    assert fix_source(PROGRAM, unsafe=True, settings={"confidence": "certain"}).text == PROGRAM


def test_in_a_notebook(site: Path, project: Path, run: Run) -> None:
    plug_in(site, Doubt.GIVEN)
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": PROGRAM}
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (project / "b.ipynb").write_text(json.dumps(book))
    (found,) = json.loads(run("b.ipynb", "--output-format=json").out)
    assert (found["cell"], found["code"]) == (1, "ACM101")
    assert json.loads(run("b.ipynb", "--output-format=json", "--confidence=certain").out) == []


def test_what_an_earlier_run_found_is_told_the_same(site: Path, project: Path, run: Run) -> None:
    plug_in(site, Doubt.GIVEN)
    reports = [run("a.py", "--output-format=json", "--cache-dir=kept").out for _ in range(2)]
    assert reports[0] == reports[1]
    for _ in range(2):
        assert "1 less certain finding is not shown" in run("a.py", "--confidence=certain", "--cache-dir=kept").out


def test_in_an_editor(site: Path, project: Path) -> None:
    pytest.importorskip("pygls")
    from torchmemlint.server.documents import Document
    from torchmemlint.server.session import Session
    from torchmemlint.server.settings import ClientSettings, read_settings

    plug_in(site, Doubt.GIVEN)

    def found(given: dict[str, object]) -> list[str]:
        session, path = Session(), project / "a.py"
        session.folders.add(project, read_settings(given, ClientSettings(), project)[0])
        session.documents.put(Document(path.as_uri(), PROGRAM, 1))
        try:
            checked = asyncio.run(asyncio.wait_for(session.check(path.as_uri()), 30))
        finally:
            session.worker.end()
        return [finding.code for finding in checked.all]

    assert found({}) == found({"confidence": None}) == ["ACM101"]
    assert found({"confidence": "certain"}) == []
    (project / "torchmemlint.toml").write_text('confidence = "certain"\n')
    assert found({}) == []
    assert found({"confidence": "likely"}) == ["ACM101"]

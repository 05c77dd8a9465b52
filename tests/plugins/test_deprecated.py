"""A deprecated rule is off unless it is named, and naming it says what takes its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run, install, rule

OLD = rule("ACM101", "old-history", "OldHistory").replace("import Applicability,", "import Applicability, Stage,")
NEW = rule("ACM102", "unbounded-history")
STAGE = '    stage = Stage.DEPRECATED\n    instead = "ACM102"\n'
WARNING = (
    "warning: rule ACM101 (old-history) is deprecated and will be removed in a later release; "
    "select ACM102 (unbounded-history) instead"
)


@pytest.fixture(autouse=True)
def both(site: Path) -> None:
    old = OLD.replace('    code = "ACM101"\n', f'    code = "ACM101"\n{STAGE}')
    assert STAGE in old
    install(site, "acme-lint", "old = acme_old\nnew = acme_new", acme_old=old, acme_new=NEW)


@pytest.mark.parametrize("options", [(), ("--select", "ALL"), ("--select", "ACM"), ("--extend-select", "ACM1")])
def test_it_is_off_unless_it_is_named(project: Path, run: Run, options: tuple[str, ...]) -> None:
    found = run("a.py", "--output-format=concise", *options)
    assert "ACM102" in found.out
    assert "ACM101" not in found.out
    assert "deprecated" not in found.err


@pytest.mark.parametrize("options", [("--select", "ACM101"), ("--extend-select", "old-history")])
def test_naming_it_warns(project: Path, run: Run, options: tuple[str, ...]) -> None:
    found = run("a.py", "--output-format=concise", *options)
    assert "ACM101" in found.out
    assert found.err.splitlines().count(WARNING) == 1
    assert "deprecated" not in run("a.py", "--silent", *options).err
    assert run("-", "--stdin-filename", "a.py", *options).err.splitlines().count(WARNING) == 1


def test_a_configuration_that_names_it_warns(project: Path, run: Run) -> None:
    (project / "torchmemlint.toml").write_text('extend-select = ["ACM101"]\n')
    found = run("a.py", "--output-format=concise")
    assert "ACM101" in found.out
    assert found.err.splitlines().count(WARNING) == 1
    assert "deprecated" not in run("a.py", "--isolated").err
    assert "deprecated" not in run("a.py", "--ignore", "ACM101").err


def test_its_page_says_so(run: Run) -> None:
    text = run("rule", "ACM101").out
    assert "This rule is deprecated: a later release will not have it." in text
    assert "Select **ACM102** instead." in text
    assert "Status: deprecated" in text

"""Plugins that are there for one test: modules, and packages as pip would have installed them."""

from __future__ import annotations

import importlib
import io
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from torchmemlint.cli.main import main
from torchmemlint.engine import context, one_file
from torchmemlint.rules import extensions

RULE = '''
"""A rule."""

from torchmemlint.plugins import Applicability, Edit, Fix, Position, Rule, Severity, Span, calls, report


class {kind}(Rule):
    """Memory history is recorded without a bound.

    ## What it does
    Reports recordings without `max_entries`.

    ## Why it costs memory
    Every allocation is kept on the host.
    """

    code = "{code}"
    name = "{name}"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    why = "every allocation is kept on the host"

    def check(self, facts):
        for call in calls(facts, "torch.cuda.memory._record_memory_history"):
            if call.argument("max_entries") is None:
                end = Position(call.span.end.row, call.span.end.column - 1)
                edit = Edit(Span(end, end), "max_entries=100_000")
                fix = Fix("Bound it", Applicability.SAFE, (edit,))
                yield report(self, facts, call, "No bound", evidence=[(call, "here")], fix=fix)
'''
PROGRAM = """\
import torch


def start(recording):
    if recording:
        torch.cuda.memory._record_memory_history()
"""


def rule(code: str = "ACM101", name: str = "unbounded-history", kind: str = "UnboundedHistory", **changes: str) -> str:
    text = RULE.format(code=code, name=name, kind=kind)
    for before, after in changes.items():
        text = text.replace(f"    {before} = ", f"    {before} = {after} if True else ")
    return text


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What one test brings is not there in the next."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.split(".")[0].lstrip("_").startswith(("acme", "zeta", "torchmemlint_rules", "torchmemlint_local")):
            del sys.modules[name]
    forget()


def forget() -> None:
    extensions.installed.cache_clear()
    extensions._EXTENSIONS.clear()
    one_file._catalogue.cache_clear()
    context.forget()
    importlib.invalidate_caches()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which modules are installed."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    forget()
    return folder


def install(site: Path, distribution: str, points: str, **modules: str) -> None:
    """What pip leaves of a package."""
    information = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[torchmemlint.rules]\n{textwrap.dedent(points).strip()}\n")
    for name, text in modules.items():
        (site / f"{name}.py").write_text(text)
    forget()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text(PROGRAM)
    (folder / "torchmemlint.toml").write_text("")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def call(*arguments: str, stdin: bytes | None = None) -> Outcome:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        code = main(arguments)
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    return call

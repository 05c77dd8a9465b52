from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchmemlint.config.resolver import Resolver
from torchmemlint.engine import runner
from torchmemlint.engine.cache import snapshot
from torchmemlint.engine.one_file import FileResult, Fixing, Profile
from torchmemlint.engine.pool import Task
from torchmemlint.engine.run import RunReport
from torchmemlint.engine.runner import Request, run
from torchmemlint.source.discovery import discover


class Project:
    """A project that is checked again and again; `checked` are the files that the last run had to look at."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.folder = folder
        self.checked: list[str] = []

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def check(self, *names: str, use_cache: bool = True, fixing: Fixing = Fixing.NONE) -> RunReport:
        resolver = Resolver(self.root, bounded=True)
        paths = [self.root / name for name in names] or [self.root]
        files = discover(paths, resolver.settings_for).files
        self.checked = []
        return run(Request(files, resolver, fixing, jobs=1, use_cache=use_cache, cache_dir=self.folder))

    def found(self, report: RunReport) -> list[tuple[str, int, str]]:
        return [(f.filename.relative_to(self.root).as_posix(), f.span.start.row, f.code) for f in report.findings]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(snapshot, "SETTLED", 0.0)
    made = Project(tmp_path / "project", tmp_path / "kept")
    made.write("torchmemlint.toml", "")
    check_all = runner.check_all

    def listening(
        tasks: list[Task], profiles: list[Profile], workers: int, progress: Callable[[int], None], **more: Any
    ) -> list[FileResult]:
        made.checked = sorted(task.path.relative_to(made.root).as_posix() for task in tasks)
        return check_all(tasks, profiles, workers, progress, **more)

    monkeypatch.setattr(runner, "check_all", listening)
    return made

"""The projects around the files of a run, kept from file to file within a process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchmemlint.config.contracts import Framework
    from torchmemlint.engine.one_file import Profile
    from torchmemlint.flow.project import Files, Project

_FILES: dict[Path, Files] = {}  # of projects that lie on another machine


@lru_cache(maxsize=8)
def project(root: Path, additions: tuple[Framework, ...] = ()) -> Project:
    """The project below `root`, with these contracts besides the linter's own: one for this process, until `forget`."""
    from torchmemlint.flow.project import Project
    from torchmemlint.knowledge.contracts import contracts

    return Project(root, contracts(additions), _FILES.get(root))


@lru_cache(maxsize=1)
def gradient_tests(root: Path) -> Mapping[str, str]:
    """What tests of the project below `root` take the gradient of, each with such a test; until `forget`."""
    from torchmemlint.fixes import tested

    return tested.gradient_tests(root)


def prepare(files: Iterable[tuple[Path, Profile]], processes: int) -> None:
    """Run what the cases of some files rest on, once for all processes that are forked from this one."""
    from torchmemlint.engine.team import spread
    from torchmemlint.flow.fact.outcomes import Outcome
    from torchmemlint.rules.cases import CODES

    by_project: dict[Project, list[Path]] = {}
    for path, profile in files:
        if profile.root is not None and profile.codes & CODES:
            by_project.setdefault(project(profile.root, profile.contracts), []).append(path)
    for around, paths in by_project.items():
        cases = around.files.cases(around.contracts)
        for group, outcome in spread(cases.needed(paths), cases.run, Outcome.for_others, processes):
            cases.put(group, outcome)


def forget() -> None:
    """Read the files of projects anew: a run begins."""
    project.cache_clear()
    gradient_tests.cache_clear()


def put(root: Path, files: Files) -> None:
    """Let these be the files of the project below `root`, and forget all others that were put."""
    forget()
    _FILES.clear()
    _FILES[root] = files

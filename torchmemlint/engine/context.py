"""The projects around the files of a run, kept from file to file within a process."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchmemlint.flow.project import Project


@lru_cache(maxsize=8)
def project(root: Path) -> Project:
    """The project below `root`: one for this process, until `forget`."""
    from torchmemlint.flow.project import Project

    return Project(root)


def forget() -> None:
    """Read the files of projects anew: a run begins."""
    project.cache_clear()

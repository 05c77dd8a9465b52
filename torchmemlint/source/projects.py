"""Where a project begins, as what lies in its folders tells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

_BEGINNING = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
_SETTINGS = (".torchmemlint.toml", "torchmemlint.toml")
# What a folder has that was unpacked from an archive of a repository without any of those.
_DESCRIBING = ("README.md", "README.rst", "README.txt", "README", "requirements.txt", "environment.yml", "LICENSE")


def project_above(folder: Path) -> Path | None:
    """The nearest folder, from this one upwards, with what stands at the top of a project; None where there is none."""
    return _nearest_with(_BEGINNING, folder)


def context_root(path: Path, root: Path) -> Path:
    """The folder whose files are read for context when the file at `path` is checked.

    That is `root`, the one that the settings are of. Two kinds of files belong to the project that they lie in: those
    elsewhere, as in `torchmemlint /data/project` without a configuration there, and those below a root that is a folder
    of projects and none itself.
    """
    if not path.is_relative_to(root):
        return _around(path.parent)
    return root if _is_project(root) else _below(path.parent, root)


@lru_cache(maxsize=64)
def _is_project(folder: Path) -> bool:
    return _has_one_of((*_BEGINNING, *_SETTINGS), folder)


@lru_cache(maxsize=4096)
def _below(folder: Path, root: Path) -> Path:
    found = project_above(folder)
    return found if found is not None and found.is_relative_to(root) else root


@lru_cache(maxsize=4096)
def _around(folder: Path) -> Path:
    found = project_above(folder) or _nearest_with(_DESCRIBING, folder)
    if found is not None:
        return found
    while (folder / "__init__.py").exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _nearest_with(names: Sequence[str], folder: Path) -> Path | None:
    for above in (folder, *folder.parents):
        if _has_one_of(names, above):
            return above
    return None


def _has_one_of(names: Sequence[str], folder: Path) -> bool:
    return any((folder / name).exists() for name in names)

"""Which files belong to installed libraries, and not to a project. Knows nothing of torch."""

from __future__ import annotations

import site
import sysconfig
from functools import cache
from pathlib import Path, PurePath

FOLDERS = frozenset(("site-packages", "dist-packages"))
"""What folders of installed packages are called: those of this environment, and of others that it reaches by a path."""


@cache
def library_folders() -> tuple[Path, ...]:
    """The folders in which this interpreter has the standard library and installed packages, absolute."""
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {*site.getsitepackages(), site.getusersitepackages()}
    return tuple(Path(path).absolute() for path in paths if path)


@cache
def is_of_a_library(path: str) -> bool:
    """Whether a file lies in a folder of installed packages, or in the standard library."""
    file = PurePath(path)
    return not FOLDERS.isdisjoint(file.parts) or any(file.is_relative_to(folder) for folder in library_folders())

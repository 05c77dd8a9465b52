"""Where a dotted name leads, by the file system alone: no file is opened.

A name is looked up as Python does: relative imports from the importing file's own package, absolute ones from the
folders that Python would have on its path: the one above the file's top package, the project's root and its `src/`, the
file's own folder, and the one above a folder around it that has the name of the package, unless that is a part of
another package. Packages come before modules, and folders without `__init__.py` (namespace packages) last.

`torch` is installed, or else the project is torch: where a folder has a `torch.py` or a `torch/` of its own, no file of
it could run as a script and import torch. So it is not looked up in a file's own folder, nor in those around it. The
same goes for what Python itself brings, in packages: there a `typing.py` is known by its full name alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_PACKAGE = "__init__.py"
_INSTALLED = "torch"
_STANDARD = sys.stdlib_module_names
Place = tuple[Path, str]  # a file, and what is left of the name for it to define


class Finder:
    """Finds the files below `root` that imports stand for. Remembers what lies in folders.

    Paths are texts in here: a run asks tens of thousands of questions, and `Path` takes longer than the answers.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._names: dict[str, frozenset[str]] = {}  # of folders
        self._places: dict[tuple[str, str], tuple[Place | None, frozenset[str]]] = {}
        self._looked_for: set[str] = set()  # by the running search

    def place(self, qualified: str, path: Path) -> tuple[Place | None, frozenset[str]]:
        """The file that a dotted name, as imported by the file `path`, leads to; and what was looked for on the way."""
        folder = _above(str(path))
        found = self._places.get((qualified, folder))
        if found is None:
            self._looked_for = set()
            try:
                place = self._find(qualified, folder)
            except OSError:  # a folder that may be listed and not entered
                place = None
            found = self._places[qualified, folder] = place, frozenset(self._looked_for)
        return found

    def below(self, folder: str, qualified: str) -> Place | None:
        """The file that a dotted name leads to, if it is looked up in this folder alone."""
        try:
            return self._module(folder, qualified.split("."))
        except OSError:
            return None

    def is_package(self, folder: str) -> bool:
        """Has a folder an `__init__.py`?"""
        return self._has(folder, _PACKAGE)

    def is_folder(self, path: str) -> bool:
        """Is it a folder, perhaps by way of a link?"""
        return Path(path).is_dir()

    def names_in(self, folder: str) -> Iterable[str]:
        """What lies in a folder. Raises OSError where it cannot be listed."""
        return (entry.name for entry in os.scandir(folder))

    def _find(self, qualified: str, folder: str) -> Place | None:
        level = len(qualified) - len(qualified.lstrip("."))
        parts = [part for part in qualified[level:].split(".") if part]
        if level:
            for _ in range(level - 1):
                folder = _above(folder)
            return self._module(folder, parts, inside=True)
        within_namespace: Place | None = None
        for start in self._search_path(folder, parts[0]) if parts else ():
            found = self._module(start, parts)
            if found is None:
                continue
            if self._is_regular(start, parts[0]):
                return found
            within_namespace = within_namespace or found
        return within_namespace

    def _module(self, folder: str, parts: list[str], *, inside: bool = False) -> Place | None:
        """The file of a name below a folder; `inside`: of a name in the folder's own package."""
        for index, part in enumerate(parts):
            below = path_in(folder, part)
            if self._has(folder, part) and self.is_package(below):
                folder = below
            elif self._has(folder, f"{part}.py"):
                return Path(f"{below}.py"), ".".join(parts[index + 1 :])
            elif self._has(folder, part) and self.is_folder(below):
                folder = below  # a namespace package
            elif (inside or index) and self.is_package(folder):
                return Path(folder, _PACKAGE), ".".join(parts[index:])
            else:
                return None
        return (Path(folder, _PACKAGE), "") if self.is_package(folder) else None

    def _is_regular(self, folder: str, name: str) -> bool:
        """Is it a module or a package with an `__init__.py`?"""
        return self._has(folder, f"{name}.py") or self.is_package(path_in(folder, name))

    def _search_path(self, folder: str, package: str) -> Iterator[str]:
        top = folder
        while self.is_package(top) and top != _above(top):
            top = _above(top)
        root = str(self.root)
        if package == _INSTALLED or (package in _STANDARD and self.is_package(folder)):
            yield from dict.fromkeys((top, root, path_in(root, "src")))
            return
        around = [_above(one) for one in self._up_to_root(folder) if one.endswith(path_in("", package))]
        above = (one for one in around if not self.is_package(one))
        yield from dict.fromkeys((top, root, path_in(root, "src"), folder, *above))

    def _up_to_root(self, folder: str) -> Iterator[str]:
        """A folder below the root, and those around it, as far as they are."""
        while folder.startswith(path_in(str(self.root), "")) and folder != str(self.root):
            yield folder
            folder = _above(folder)

    def _has(self, folder: str, name: str) -> bool:
        """Is there such a name in a folder?"""
        self._looked_for.add(path_in(folder, name))
        names = self._names.get(folder)
        if names is None:
            try:
                names = frozenset(self.names_in(folder))
            except OSError:
                names = frozenset()
            self._names[folder] = names
        return name in names


class InMemory(Finder):
    """Finds files that lie nowhere."""

    def __init__(self, root: Path, files: Iterable[Path]) -> None:
        super().__init__(root)
        self._folders: dict[str, set[str]] = {}
        for path in files:
            for inner in (path, *path.parents[:-1]):
                self._folders.setdefault(str(inner.parent), set()).add(inner.name)

    def is_folder(self, path: str) -> bool:
        """Is it a folder?"""
        return path in self._folders

    def names_in(self, folder: str) -> Iterable[str]:
        """What lies in a folder."""
        return self._folders.get(folder, ())


def _above(path: str) -> str:
    """The folder that a path lies in."""
    return os.path.dirname(path) or "."  # noqa: PTH120 (see `Finder`)


def path_in(folder: str, name: str) -> str:
    """The path of a name in a folder."""
    return folder + name if folder.endswith(os.sep) else f"{folder}{os.sep}{name}"

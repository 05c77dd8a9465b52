"""The files of a project by the names of their modules, lowered when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from torchmemlint.flow.ir.lower import lower
from torchmemlint.flow.ir.ops import Unit
from torchmemlint.flow.names import suites

if TYPE_CHECKING:
    import ast

Found = tuple["tuple[Path, str] | None", frozenset[str]]  # a file with what is left of the name; what was looked for
Locate = Callable[[str, Path], Found]  # where a dotted name leads that a file imports
Matching = Callable[[str, Path], list[Path]]  # the modules that a file may mean by a name of which a part is known


class Sources:
    """The files below `root`. `read` gives the text of one, None where it cannot be had."""

    def __init__(
        self,
        root: Path,
        locate: Locate,
        matching: Matching,
        read: Callable[[Path], str | None],
        is_library: Callable[[Path], bool] = lambda path: False,
        parse: Callable[[str, Path], ast.Module] | None = None,
    ) -> None:
        """`is_library` says of a file whether it is one of a library's, of which each is run by itself.

        `parse` gives the standard parser's tree of a text, where somebody else needs it, too.
        """
        self._root = root
        self._is_library = is_library
        self.locate, self._matching = locate, matching
        self._read = read
        self._parse = parse
        self._units: dict[Path, tuple[str, Unit | None]] = {}
        self._paths: dict[str, Path] = {}
        self.size = 0  # characters of what is kept
        self.sought: set[str] = set()  # files that were looked for since somebody last emptied this

    def within(self, path: Path) -> Path:
        """Where a file lies in the project."""
        return suites.within(path, self._root)

    def name(self, path: Path) -> str:
        """The name of a file's module, seen from the root: where two folders have a `utils.py`, there are two names."""
        relative = self.within(path)
        return ".".join(relative.with_suffix("").parts).removesuffix(".__init__")

    def path(self, unit: Unit) -> Path:
        """The file that was lowered to this."""
        return self._paths[unit.name]

    def is_library(self, name: str) -> bool:
        """Is a module, by its name, one that is run by itself, and that others look into only where they call it?"""
        path = self._path_of(name)
        return path is not None and self._is_library(path)

    def text(self, path: Path) -> str:
        """A file's text; none where it cannot be had."""
        return self._read(path) or ""

    def unit(self, path: Path) -> Unit | None:
        """A file as operations; None where it is no Python 3."""
        text = self._read(path)
        if text is None:
            return None
        known = self._units.get(path)
        if known is None or (known[0] is not text and known[0] != text):
            known = self._units[path] = text, self._lowered(path, text)
        return known[1]

    def _lowered(self, path: Path, text: str) -> Unit | None:
        try:
            unit = lower(self._parse(text, path) if self._parse is not None else text, self.name(path))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        self._paths[unit.name] = path
        self.size += len(text)
        return unit

    def forget(self) -> None:
        """Let go of all operations."""
        self._units.clear()
        self.size = 0

    def find(self, name: str) -> Unit | None:
        """The file of a module, by its name seen from the root."""
        path = self._path_of(name)
        return None if path is None else self.unit(path)

    def _path_of(self, name: str) -> Path | None:
        path = self._paths.get(name)
        if path is None:
            place = self._place(name, self._root / "__main__.py")
            if place is None or place[1] or self.name(place[0]) != name:
                return None
            path = place[0]
        return path

    def absolute(self, dotted: str, unit: Unit) -> str | None:
        """What a dotted name that a file imports stands for, seen from the root; None for what lies outside."""
        place = self._place(dotted, self.path(unit))
        if place is None:
            return None
        name = self.name(place[0])
        self._paths.setdefault(name, place[0])
        return f"{name}.{place[1]}" if place[1] else name

    def matching(self, pattern: str, unit: Unit) -> list[str]:
        """The modules that a file may mean by a name of which only parts are known, seen from the root."""
        found = self._matching(pattern, self.path(unit))
        for path in found:
            self._paths.setdefault(self.name(path), path)
        return list(map(self.name, found))

    def _place(self, dotted: str, path: Path) -> tuple[Path, str] | None:
        place, sought = self.locate(dotted, path)
        self.sought |= sought
        return place

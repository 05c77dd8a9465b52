"""Where imports lead in files that change the folders in which Python looks.

After `sys.path.append(...)` a script imports what lies anywhere in its project, and which folder is meant is often
computed. So a name that leads nowhere else is taken for the only module or package of the project that has it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

from torchmemlint.flow.names.finder import Finder
from torchmemlint.flow.names.sources import Found

_CHANGED = "sys.path"


class Elsewhere:
    """Finds what a `Finder` finds, and for files that mention `sys.path` what lies elsewhere in the project."""

    def __init__(
        self,
        finder: Finder,
        files: Callable[[], Iterable[Path]],
        text: Callable[[Path], str | None],
        installed: Iterable[str] = (),
    ) -> None:
        """`files` are all of the project; `installed`: packages that do not lie in it."""
        self._finder, self._files, self._text = finder, files, text
        self._installed = sys.stdlib_module_names | {*installed}

    def place(self, dotted: str, path: Path) -> Found:
        """The file that a dotted name leads to which a file imports, and what was looked for on the way."""
        place, sought = self._finder.place(dotted, path)
        first = dotted.partition(".")[0]
        if place is not None or not first or first in self._installed or _CHANGED not in (self._text(path) or ""):
            return place, sought
        sought |= {str(folder / name) for folder in self._everywhere for name in (first, f"{first}.py")}
        folders = self._folders.get(first, set())
        return (self._finder.below(str(next(iter(folders))), dotted) if len(folders) == 1 else None), sought

    @cached_property
    def _everywhere(self) -> set[Path]:
        return set().union(*self._folders.values())

    @cached_property
    def _folders(self) -> dict[str, set[Path]]:
        """The folders in which something of a name lies."""
        found: dict[str, set[Path]] = {}
        for path in self._files():
            found.setdefault(path.stem, set()).add(path.parent)
            if path.parent != self._finder.root:
                found.setdefault(path.parent.name, set()).add(path.parent.parent)
        return found

"""The files around the analysed one: what an imported name stands for, read when it is asked for.

A name is looked up as Python does: relative imports from the importing file's own package, absolute ones from the
folders that Python would have on its path: the one above the file's top package, the project's root and its `src/`, and
the file's own folder. What lies elsewhere (the installed libraries) is not read: knowledge speaks for it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.source.decoding import UnreadableFile, decode, read
from torchmemlint.syntax.source_module import SourceModule

MAX_BYTES = 2_000_000  # of source that is kept in memory from one analysed file to the next
MAX_FILE = 1_000_000  # bytes; longer files are tables or generated, and are not read for context
MAX_HOPS = 8  # re-exports followed


class Project:
    """The project below `root`; for one process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ids = itertools.count(1)  # identities of objects, over all files
        self.read: set[Path] = set()  # files read for context, ever
        self._programs: dict[Path, Program | None] = {}
        self._names: dict[str, frozenset[str]] = {}  # of folders
        self._places: dict[tuple[str, Path], tuple[Path, str] | None] = {}

    def definition(self, qualified: str, path: Path, hops: int = 0) -> Function | ClassInfo | None:
        """The function or class of the project that a dotted name, as imported by the file `path`, stands for."""
        place = self._place(qualified, path)
        if place is None or hops > MAX_HOPS:
            return None
        file, name = place
        if not name or "." in name or file == path:
            return None
        program = self.program(file)
        if program is None:
            return None
        found = program.find_function(name) or program.find_class(name)
        if found is not None:
            return found
        if name in program.imported:
            return self.definition(program.imported[name], file, hops + 1)
        for module in program.star_imports:
            found = self.definition(f"{module}{'' if module.endswith('.') else '.'}{name}", file, hops + 1)
            if found is not None:
                return found
        return None

    def program(self, path: Path) -> Program | None:
        """The functions and classes of a file; None where it cannot be read."""
        if path in self._programs:
            return self._programs[path]
        self.read.add(path)
        program: Program | None = None
        try:
            if path.stat().st_size <= MAX_FILE:
                program = Program(SourceModule(decode(read(path)).text, path, context=True), self)
        except (OSError, UnreadableFile, RecursionError):
            program = None
        self._programs[path] = program
        return program

    def trim(self) -> None:
        """Let go of all files when they have become many (they hold each other); between the analyses of two files."""
        programs = [program for program in self._programs.values() if program is not None]
        if sum(len(program.source.text) for program in programs) > MAX_BYTES:
            self._programs.clear()
            for program in programs:
                program.release()

    def _place(self, qualified: str, path: Path) -> tuple[Path, str] | None:
        key = (qualified, path.parent)
        if key not in self._places:
            try:
                self._places[key] = next(self._candidates(qualified, path), None)
            except OSError:  # a folder that may be listed and not entered
                self._places[key] = None
        return self._places[key]

    def _candidates(self, qualified: str, path: Path) -> Iterator[tuple[Path, str]]:
        """Files that define a dotted name, each with what is left of the name."""
        level = len(qualified) - len(qualified.lstrip("."))
        parts = [part for part in qualified[level:].split(".") if part]
        if level:
            folder = path.parent
            for _ in range(level - 1):
                folder = folder.parent
            found = self._module(folder, parts)
            if found is not None:
                yield found
            return
        for folder in self._search_path(path):
            if parts and self._has(folder, parts[0]):
                found = self._module(folder, parts)
                if found is not None:
                    yield found

    def _module(self, folder: Path, parts: list[str]) -> tuple[Path, str] | None:
        for index, part in enumerate(parts):
            names = self._listing(folder)
            if part in names and (folder / part).is_dir():
                folder = folder / part
            elif f"{part}.py" in names:
                return folder / f"{part}.py", ".".join(parts[index + 1 :])
            elif "__init__.py" in names:
                return folder / "__init__.py", ".".join(parts[index:])
            else:
                return None
        return None  # a package itself

    def _has(self, folder: Path, name: str) -> bool:
        names = self._listing(folder)
        return name in names or f"{name}.py" in names

    def _search_path(self, path: Path) -> Iterator[Path]:
        above = path.parent
        while "__init__.py" in self._listing(above) and above != above.parent:
            above = above.parent
        seen: set[Path] = set()
        for folder in (above, self.root, self.root / "src", path.parent):
            if folder not in seen:
                seen.add(folder)
                yield folder

    def _listing(self, folder: Path) -> frozenset[str]:
        key = str(folder)
        if key not in self._names:
            try:
                self._names[key] = frozenset(entry.name for entry in os.scandir(folder))
            except OSError:
                self._names[key] = frozenset()
        return self._names[key]

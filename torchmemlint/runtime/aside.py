"""What a measured run keeps away from the user's files, and what of torch it leaves out.

- `torch.save` to a file that is there already goes to a private file, from which `torch.load` in the same run reads;
  files that it makes anew are removed when the run is over. So a run neither overwrites nor leaves checkpoints. What
  frameworks save in other ways goes the same way (`frameworks.py`).
- `torch.compile` gives its argument back: a dispatch mode sees nothing inside a compiled graph, and what fusion
  saves is outside of what can be measured.

Each is counted, for the report to say.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

SAVED = "torch.save"
COMPILED = "torch.compile"


class Aside:
    """The replacements of one run, and how often each was used."""

    def __init__(self, folder: Path, made: Path) -> None:
        self.counts: Counter[str] = Counter()
        self._folder = folder
        self._made_file = made
        self.made: set[str] = set()  # files, and folders, that were not there
        self._folders: set[str] = set()  # that were empty, or not there
        self._private: dict[str, Path] = {}

    @contextlib.contextmanager
    def standing_in(self) -> Iterator[None]:
        """Put the replacements in place."""
        save, load = torch.save, torch.load

        def save_aside(obj: Any, f: Any, *arguments: Any, **keywords: Any) -> Any:
            return save(obj, self.target(f), *arguments, **keywords)

        def load_aside(f: Any, *arguments: Any, **keywords: Any) -> Any:
            return load(self.source(f), *arguments, **keywords)

        def compile_not(model: Any = None, *_: Any, **__: Any) -> Any:
            if model is None:
                return compile_not
            self.counts[COMPILED] += 1
            return model

        def module_compile_not(module: torch.nn.Module, *_: Any, **__: Any) -> None:
            self.counts[COMPILED] += 1

        replaced: list[tuple[Any, str, Any]] = [
            (torch, "save", save_aside),
            (torch, "load", load_aside),
            (torch, "compile", compile_not),
            (torch.nn.Module, "compile", module_compile_not),
        ]
        originals = [(owner, name, getattr(owner, name)) for owner, name, _ in replaced]
        for owner, name, replacement in replaced:
            setattr(owner, name, replacement)
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def target(self, f: Any) -> Any:
        """Where a file is saved instead: a file that was there stays as it is."""
        if not isinstance(f, str | os.PathLike):
            return f
        self.counts[SAVED] += 1
        path = _absolute(f)
        if path in self.made or self._is_private(path):
            return f
        if path not in self._private and not Path(path).exists():
            self._note([path, *_missing(Path(path).parent)])
            return f
        return self._private.setdefault(path, self._folder / f"saved-{len(self._private)}")

    def source(self, f: Any) -> Any:
        """Where a file is read from: what this run saved, if it did."""
        return self._private.get(_absolute(f), f) if isinstance(f, str | os.PathLike) else f

    def folder(self, path: str | os.PathLike[str]) -> str:
        """Where a folder's files are saved instead: a folder that has any stays as it is."""
        self.counts[SAVED] += 1
        real = _absolute(path)
        if real in self._folders or self._is_private(real):
            return os.fspath(path)
        if real not in self._private and not (Path(real).is_dir() and any(Path(real).iterdir())):
            self._folders.add(real)
            self._note(_missing(Path(real)))
            return os.fspath(path)
        return self.apart(real)

    def gather(self, folder: str | os.PathLike[str]) -> None:
        """Note what a folder that `folder` gave has now: it was not there."""
        if _absolute(folder) in self._folders:
            for one in Path(_absolute(folder)).rglob("*"):
                self._note([f"{one}{os.sep}" if one.is_dir() else str(one)])

    def apart(self, path: str | os.PathLike[str]) -> str:
        """A private folder in place of another."""
        private = self._private.setdefault(_absolute(path), self._folder / f"saved-{len(self._private)}")
        private.mkdir(exist_ok=True)
        return str(private)

    def _is_private(self, path: str) -> bool:
        return path.startswith(f"{_absolute(self._folder)}{os.sep}")

    def _note(self, made: list[str]) -> None:
        """Write down what is made anew, for who tidies up, should this process die. Folders end in a separator."""
        new = [one for one in made if one not in self.made]
        self.made.update(new)
        with self._made_file.open("a", encoding="utf-8") as file:
            file.write("".join(f"{one}\0" for one in new))


def _missing(folder: Path) -> list[str]:
    """A folder and those around it that are not there yet."""
    return [f"{one}{os.sep}" for one in (folder, *folder.parents) if not one.exists()]


def _absolute(path: str | os.PathLike[str]) -> str:
    return str(Path(os.fspath(path)).absolute())

"""What a measured run keeps away from the user's files, and what of torch it leaves out.

- `torch.save` to a file that is there already goes to a private file, from which `torch.load` in the same run reads;
  files that it makes anew are removed when the run is over. So a run neither overwrites nor leaves checkpoints.
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
        self.made: set[str] = set()  # files that were not there
        self._private: dict[str, Path] = {}

    @contextlib.contextmanager
    def standing_in(self) -> Iterator[None]:
        """Put the replacements in place."""
        save, load = torch.save, torch.load

        def save_aside(obj: Any, f: Any, *arguments: Any, **keywords: Any) -> Any:
            return save(obj, self._target(f), *arguments, **keywords)

        def load_aside(f: Any, *arguments: Any, **keywords: Any) -> Any:
            private = self._private.get(_absolute(f)) if isinstance(f, str | os.PathLike) else None
            return load(f if private is None else private, *arguments, **keywords)

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

    def _target(self, f: Any) -> Any:
        if not isinstance(f, str | os.PathLike):
            return f
        self.counts[SAVED] += 1
        path = _absolute(f)
        if path in self.made:
            return f
        if path not in self._private and not Path(path).exists():
            self.made.add(path)
            with self._made_file.open("a", encoding="utf-8") as made:  # for who tidies up, should this process die
                made.write(f"{path}\0")
            return f
        return self._private.setdefault(path, self._folder / f"saved-{len(self._private)}")


def _absolute(path: str | os.PathLike[str]) -> str:
    return str(Path(os.fspath(path)).absolute())

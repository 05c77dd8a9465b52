"""The linter's own files: with others, it may say something else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import torchmemlint


def own_files() -> Iterator[os.DirEntry[str]]:
    """Its code and its data, as they lie in its package."""
    for folder, _, _ in os.walk(Path(torchmemlint.__file__).parent):
        yield from (entry for entry in os.scandir(folder) if entry.name.endswith((".py", ".json", ".toml")))

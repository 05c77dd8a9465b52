"""Source trees to measure on: packages' source distributions from the package index, unpacked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder of sources."""

    name: str  # as in `timm-1.0.31`
    root: Path
    files: tuple[Path, ...]  # the .py files, sorted
    size: int  # of them together, bytes


def tree(root: Path) -> Tree:
    """What a folder holds. Reads every file once, so that each tool after it finds them in the page cache."""
    files = sorted(
        Path(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith((".py", ".pyi"))
    )
    return Tree(root.name, root, tuple(files), sum(len(file.read_bytes()) for file in files))


def fetch(package: str, cache: Path) -> Tree:
    """The tree of a folder, or of a package (`timm`, `timm==1.0.31`) downloaded into `cache`."""
    if Path(package).is_dir():
        return tree(Path(package).resolve())
    pinned = re.fullmatch(r"(?P<name>[\w.-]+)==(?P<version>[\w.]+)", package)
    if pinned is None or not (known := cache / f"{pinned['name']}-{pinned['version']}").is_dir():
        known = _download(package, cache)
    return tree(known)


def _download(package: str, cache: Path) -> Path:
    archives = cache / "archives" / re.sub(r"[^\w.=-]", "_", package)
    archives.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--no-binary", ":all:", "--dest", str(archives), package], check=True)
    archive = max(archives.iterdir(), key=lambda path: path.stat().st_mtime)
    target = cache / re.sub(r"(\.tar\.\w+|\.tgz|\.zip)$", "", archive.name)
    if not target.is_dir():
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(cache)
        else:
            with tarfile.open(archive) as packed:
                packed.extractall(cache, filter="data")
    return target

"""Projects brought to a folder. Of archives, only what a run reads is unpacked; nothing that comes along is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from torchmemlint.config import requirement, resolver
from torchmemlint.engine.corpus.listing import Kind, Listed
from torchmemlint.immutable import immutable
from torchmemlint.source.discovery import SUFFIXES

MAX_BYTES = 2_000_000_000  # unpacked from one archive
MAX_FILES = 200_000
CLONING = 600.0  # seconds
_READ = frozenset((*resolver.FILE_NAMES, ".gitignore"))
# Git asks nobody for a password, and leaves large files alone.
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "GIT_SSH_COMMAND": "ssh -o BatchMode=yes"}


class OpeningError(Exception):
    """A project that cannot be had; the message says why."""


@immutable()
class Project:
    """A project that lies in a folder."""

    name: str
    folder: Path
    is_ours: bool = False  # the folder was made for this run


def open_project(listed: Listed, into: Path) -> Project:
    """Bring a project to a folder; one that is not there yet is made below `into`. Raises `OpeningError`."""
    if listed.kind is Kind.FOLDER:
        return Project(listed.name, Path(listed.where))
    folder = into / listed.name
    try:
        if listed.kind is Kind.REPOSITORY:
            _clone(listed.where, folder)
        else:
            folder.mkdir()
            _unpack(Path(listed.where), folder)
    except (
        OSError,
        OpeningError,
        tarfile.TarError,
        zipfile.BadZipFile,
        EOFError,
        ValueError,
        NotImplementedError,
    ) as error:
        shutil.rmtree(folder, ignore_errors=True)
        verb = "cloned" if listed.kind is Kind.REPOSITORY else "unpacked"
        raise OpeningError(f"{listed.where}: cannot be {verb}: {' '.join(str(error).split())}") from None
    if listed.kind is Kind.ARCHIVE:
        folder = _only_folder(folder)
    return Project(listed.name, folder, is_ours=True)


def keep_only(project: Project, files: Iterable[Path]) -> None:
    """Remove from a folder that was made for this run all but some files."""
    if not project.is_ours:
        return
    kept = {str(file) for file in files}
    for folder, _, names in os.walk(project.folder):
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118 (many of them)
            if path not in kept:
                os.unlink(path)  # noqa: PTH108


def _only_folder(folder: Path) -> Path:
    """What an archive holds is mostly one folder, which is the project; a package is none."""
    entries = list(folder.iterdir())
    alone = len(entries) == 1 and entries[0].is_dir() and not (entries[0] / "__init__.py").exists()
    return entries[0] if alone else folder


def _is_read(name: str) -> bool:
    last = PurePosixPath(name).name
    return name.endswith(SUFFIXES) or last in _READ or requirement.is_asked(last)


def _unpack(archive: Path, folder: Path) -> None:
    if archive.suffix in (".zip", ".whl"):
        _unzip(archive, folder)
    else:
        _untar(archive, folder)


def _untar(archive: Path, folder: Path) -> None:
    if not hasattr(tarfile, "data_filter"):
        raise OpeningError("this release of Python cannot do so safely: it takes 3.10.12, 3.11.4, 3.12 or later")
    budget = _Budget()
    with tarfile.open(archive) as tar:
        for member in tar:
            # Links stay packed: what they lead to is unpacked itself, or lies outside.
            if member.isfile() and _is_read(member.name):
                budget.spend(member.size)
                tar.extract(member, folder, filter="data")


def _unzip(archive: Path, folder: Path) -> None:
    budget = _Budget()
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            if not member.is_dir() and _is_read(member.filename):
                parts = PurePosixPath(member.filename.replace("\\", "/")).parts
                if ".." in parts or PurePosixPath(member.filename).is_absolute():
                    raise OpeningError(f"`{member.filename}` would lie outside of the folder")
                budget.spend(member.file_size)  # zipfile gives no more than it says here
                packed.extract(member, folder)


class _Budget:
    """How much may still be unpacked."""

    def __init__(self) -> None:
        self._bytes, self._files = MAX_BYTES, MAX_FILES

    def spend(self, size: int) -> None:
        self._bytes -= size
        self._files -= 1
        if self._bytes < 0 or self._files < 0:
            raise OpeningError(f"it holds more than {MAX_FILES} files or {MAX_BYTES // 10**9} GB that would be read")


def _clone(url: str, folder: Path) -> None:
    command = [
        "git",
        "-c",
        "core.hooksPath=/dev/null",
        "clone",
        "--quiet",
        "--depth",
        "1",
        "--no-tags",
        "--single-branch",
    ]
    try:
        done = subprocess.run(
            [*command, "--", url, str(folder)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, **_QUIET},
            timeout=CLONING,
            check=False,
        )
    except FileNotFoundError:
        raise OpeningError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise OpeningError(f"it took more than {CLONING:.0f} s") from None
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OpeningError(lines[-1] if lines else f"git ended with status {done.returncode}")
    shutil.rmtree(folder / ".git", ignore_errors=True)

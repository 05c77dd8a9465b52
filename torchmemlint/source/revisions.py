"""What git says of the files: which of them changed since a revision, and what was in them then.

Names are handled as git hands them out with `-z`: any byte but the null may be in them.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from torchmemlint.config.errors import ConfigError
from torchmemlint.immutable import immutable

_LINK = b"160000"  # the mode of a submodule
_FILES = (b"100644", b"100755")


class RevisionError(ConfigError):
    """What git cannot tell; the message says why."""


@immutable()
class Change:
    """A file that differs from what it was, with the blob that holds what it was; None where it was not there."""

    path: str  # as it is named now, from the top of the work tree; of a deleted file, as it was
    blob: str | None


@immutable()
class Changes:
    """What differs in a work tree from the point where its history left that of a revision."""

    top: Path  # of the work tree, without links
    revision: str  # as it was given
    files: Mapping[str, Change]  # by path
    tracked: frozenset[str]
    submodules: tuple[str, ...]

    def name_of(self, path: Path) -> str | None:
        """How git names a file; None for one that is outside of the work tree."""
        real = os.path.realpath(path)
        top = str(self.top)
        if not real.startswith(top.rstrip(os.sep) + os.sep):
            return None
        return os.path.relpath(real, top).replace(os.sep, "/")

    def is_foreign(self, name: str) -> bool:
        """Does a file belong to a submodule, whose history is another one?"""
        return any(name.startswith(f"{link}/") for link in self.submodules)

    def contents(self, changes: Iterable[Change]) -> Iterator[tuple[Change, bytes]]:
        """Files with what was in them, as git keeps it."""
        wanted = [change for change in changes if change.blob is not None]
        asked = "".join(f"{change.blob}\n" for change in wanted).encode()
        told = _git(self.top, "cat-file", "--batch", told=asked) if wanted else b""
        at = 0
        for change in wanted:
            end = told.index(b"\n", at)
            kind = told[at:end].split(b" ")
            if len(kind) != 3:
                raise RevisionError(f"git lacks what was in {change.path}: {told[at:end].decode(errors='replace')}")
            size = int(kind[2])
            yield change, told[end + 1 : end + 1 + size]
            at = end + 1 + size + 1


def changes_since(revision: str, folder: Path) -> Changes:
    """What differs in the work tree around `folder` from the merge base of a revision and the checked-out commit.

    Changes that are not committed count, and so do files that git does not know yet. Raises RevisionError.
    """
    top = _top(folder)
    base = _merge_base(revision, top)
    listed = _git(top, "ls-files", "--stage", "-z").split(b"\0")
    index = [(entry.split(b" ", 1)[0], os.fsdecode(entry.partition(b"\t")[2])) for entry in listed if entry]
    return Changes(
        Path(os.path.realpath(top)),
        revision,
        {change.path: change for change in _differences(base, top)},
        frozenset(path for mode, path in index if mode != _LINK),
        tuple(path for mode, path in index if mode == _LINK),
    )


def check_out(commit: str, folder: Path, into: Path) -> None:
    """Write the files of a commit of the repository around `folder` below `into`. Raises RevisionError.

    They come from git's archive: what is not committed, and submodules, are not among them.
    """
    known = "" if commit.startswith("-") else _try(folder, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    if not known:
        raise RevisionError(f"git knows no commit `{commit}`")
    data = _git(_top(folder), "archive", "--format=tar", known)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        if hasattr(tarfile, "fully_trusted_filter"):  # it is the user's own, which is run next: links may lead anywhere
            archive.extraction_filter = tarfile.fully_trusted_filter
        archive.extractall(into)


def place_in_tree(folder: Path) -> Path:
    """A folder as seen from the top of its work tree. Raises RevisionError."""
    return Path(os.path.realpath(folder)).relative_to(os.path.realpath(_top(folder)))


def _top(folder: Path) -> Path:
    return Path(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel").removesuffix(b"\n")))


def _merge_base(revision: str, top: Path) -> str:
    shallow = ""
    if _git(top, "rev-parse", "--is-shallow-repository").strip() == b"true":
        shallow = "; the history is cut off here: fetch more of it (`git fetch --unshallow`, or `fetch-depth: 0` in CI)"
    for name in (revision, "HEAD"):
        known = "" if name.startswith("-") else _try(top, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if not known:
            raise RevisionError(f"--new-since {revision}: git knows no commit `{name}`{shallow}")
    found = _try(top, "merge-base", revision, "HEAD")
    if not found:
        raise RevisionError(f"--new-since {revision}: it has no history in common with HEAD{shallow}")
    return found


def _differences(base: str, top: Path) -> Iterator[Change]:
    options = ("--raw", "-z", "--no-abbrev", "--find-renames", "--no-ext-diff", "--ignore-submodules=all")
    fields = iter(_git(top, "diff", *options, "--no-relative", base, "--").split(b"\0"))
    for told in fields:
        if not told:
            continue
        before, _, blob, _, status = told.removeprefix(b":").split(b" ")
        path = os.fsdecode(next(fields))
        if status[:1] in (b"R", b"C"):
            path = os.fsdecode(next(fields))
        if status == b"U":
            continue  # a merge in progress: what is in the work tree follows in an entry of its own
        was_there = before in _FILES and blob.strip(b"0") != b""
        yield Change(path, blob.decode() if was_there else None)


def _try(folder: Path, *arguments: str) -> str:
    """The first line that git prints; empty where it says no."""
    done = _run(folder, *arguments)
    lines = done.stdout.decode(errors="replace").splitlines()
    return lines[0] if done.returncode == 0 and lines else ""


def _git(folder: Path, *arguments: str, told: bytes | None = None) -> bytes:
    done = _run(folder, *arguments, told=told)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise RevisionError(f"git {arguments[0]} in {folder}: {said[0].removeprefix('fatal: ')}")
    return done.stdout


def _run(folder: Path, *arguments: str, told: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    # A hook is told of its repository in ways that hold for the folder that it is called in.
    environment.pop("GIT_INDEX_FILE", None)
    if "GIT_WORK_TREE" not in environment:
        environment.pop("GIT_DIR", None)
    try:
        return subprocess.run(
            ("git", "--no-pager", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments),
            input=told,
            stdin=subprocess.DEVNULL if told is None else None,
            capture_output=True,
            env=environment,
            check=False,
        )
    except OSError as error:
        raise RevisionError(f"git cannot be run: {error.strerror or error}") from None

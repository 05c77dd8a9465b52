"""`.gitignore` files, at every level."""

from __future__ import annotations

import itertools
from pathlib import Path

from pathspec import GitIgnoreSpec

from torchmemlint.immutable import immutable
from torchmemlint.regular import text_of
from torchmemlint.source.wildcards import spec_of


@immutable()
class Ignores:
    """The patterns that hold in a directory: its own, then those of the directories above it."""

    base: str  # absolute directory of `spec`, with a closing slash
    spec: GitIgnoreSpec
    above: Ignores | None

    def leaves_out(self, path: str, *, is_directory: bool) -> bool:
        """Whether the nearest pattern that matches an absolute path (slashes forward) leaves it out."""
        name = path[len(self.base) :] + ("/" if is_directory else "")
        verdict = self.spec.check_file(name).include
        if verdict is not None:
            return verdict
        return self.above is not None and self.above.leaves_out(path, is_directory=is_directory)


def enter(directory: Path, above: Ignores | None) -> Ignores | None:
    """The patterns that hold in `directory`, given those that hold in its parent."""
    for name in (".git/info/exclude", ".gitignore"):
        above = _read(directory / name, directory, above)
    return above


def above(directory: Path) -> Ignores | None:
    """The patterns from the directories above, down from the root of the repository that `directory` is in.

    None outside of a repository, and where they leave out `directory` itself: who names an ignored directory
    wants it checked.
    """
    if (directory / ".git").exists():
        return None
    chain: list[Path] = []
    for parent in directory.parents:
        chain.append(parent)
        if (parent / ".git").exists():
            break
    else:
        return None
    found: Ignores | None = None
    for parent in reversed(chain):
        found = enter(parent, found)
    for path in (directory, *chain[:-1]):
        if found is not None and found.leaves_out(path.as_posix(), is_directory=True):
            return None
    return found


def leaves_out(path: Path) -> bool:
    """Whether git ignores a file, by its own name or by a directory that it is in; never so outside of a repository."""
    chain: list[Path] = []
    for parent in path.parents:
        chain.insert(0, parent)
        if (parent / ".git").exists():
            break
    else:
        return False
    patterns: Ignores | None = None
    for directory, inside in itertools.pairwise([*chain, path]):
        patterns = enter(directory, patterns)
        if patterns is not None and patterns.leaves_out(inside.as_posix(), is_directory=inside != path):
            return True
    return False


def _read(path: Path, directory: Path, above: Ignores | None) -> Ignores | None:
    try:
        lines = text_of(path, errors="replace").splitlines()
    except OSError:  # there is none
        return above
    patterns = [line for line in lines if line.strip() and not line.startswith("#")]
    if not patterns:
        return above
    try:
        spec = spec_of(patterns)
    except ValueError:  # git ignores patterns that it does not understand, one by one
        spec = spec_of([pattern for pattern in patterns if _is_valid(pattern)])
    return Ignores(directory.as_posix().rstrip("/") + "/", spec, above)


def _is_valid(pattern: str) -> bool:
    try:
        spec_of([pattern])
    except ValueError:
        return False
    return True

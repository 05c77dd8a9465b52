"""How files are named in reports, and how text reaches a stream that may not know all characters."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from torchmemlint.findings import Evidence, Finding
from torchmemlint.fixes.eligibility import eligible

DOCUMENTATION = "https://torchmemlint.readthedocs.io/rules/"


def shown_path(path: Path, root: Path) -> str:
    """The path as read from `root`, where it lies below it; as it is where it does not."""
    absolute = absolute_path(path, root)
    try:
        return str(absolute.relative_to(root.absolute()))
    except ValueError:
        return str(path)


def shown_place(path: str | Path, row: int | str, root: Path) -> str:
    """A row of a file, as read from `root`."""
    return f"{shown_path(Path(path), root)}:{row}"


def absolute_path(path: Path, root: Path) -> Path:
    """The path from the top, links kept; a relative one begins at `root`."""
    return Path(os.path.normpath(root.absolute() / path))


def repository(root: Path) -> Path:
    """The folder at or above `root` that is checked out from version control; `root` itself where none is."""
    top = root.absolute()
    return next((folder for folder in (top, *top.parents) if (folder / ".git").exists()), top)


def repository_path(path: Path, root: Path) -> str:
    """The path as services name the files of a repository: from its top, with forward slashes.

    A file outside of the repository has its absolute path.
    """
    absolute = absolute_path(path, root)
    try:
        return absolute.relative_to(repository(root)).as_posix()
    except ValueError:
        return absolute.as_posix()


def elsewhere(evidence: Evidence, finding: Finding, root: Path) -> Path | None:
    """The file of a piece of evidence, where that is not the finding's own."""
    filename = evidence.filename
    if filename is None or absolute_path(filename, root) == absolute_path(finding.filename, root):
        return None
    return filename


def rule_url(code: str) -> str:
    """The documentation page of a rule."""
    return f"{DOCUMENTATION}{code}/"


def mark(finding: Finding, *, unsafe: bool) -> str:
    """`[*]` for what `--fix` would remove now, `[-]` for what it would with `--unsafe-fixes`, else nothing."""
    if eligible(finding, unsafe=unsafe):
        return "[*]"
    return "[-]" if eligible(finding, unsafe=True) else ""


def one_line(text: str) -> str:
    """The text without line breaks, and without characters that play tricks on a terminal."""
    from torchmemlint.report.columns import show

    return show(" ".join(text.split())).text


def emit(stream: TextIO, text: str) -> None:
    """Write text; what the stream's encoding cannot say becomes plain ASCII or an escape."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = (
            text.replace("│", "|")
            .replace("…", "...")
            .replace("→", "->")
            .encode(encoding, "backslashreplace")
            .decode(encoding)
        )
    stream.write(text)

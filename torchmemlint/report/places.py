"""How files are named in reports, and how text reaches a stream that may not know all characters."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Position, Span
from torchmemlint.fixes.eligibility import eligible
from torchmemlint.immutable import immutable
from torchmemlint.report.message import message_of

if TYPE_CHECKING:
    from torchmemlint.engine.run import RunReport

NAMES = Path()  # as a root: names of files are relative to it, and no places (PROJECT/path)
_FILES = 2  # other files that a line names


def shown_path(path: Path, root: Path) -> str:
    """The path as read from `root`, where it lies below it; as it is where it does not."""
    absolute = absolute_path(path, root)
    try:
        return str(absolute.relative_to(root.absolute()))
    except ValueError:
        return str(path)


def printed_path(path: Path, root: Path) -> str:
    """The same for people: a name cannot play tricks on a terminal, nor be a command to GitHub, which reads logs."""
    from torchmemlint.report.columns import show

    text = show(shown_path(path, root)).text
    return f"./{text}" if text.lstrip().startswith("::") else text


def shown_place(path: str | Path, row: int | str, root: Path) -> str:
    """A row of a file, as read from `root`, for people."""
    return f"{printed_path(Path(path), root)}:{row}"


@immutable()
class Place:
    """A place as people see it: in a notebook, the cell (its number among all cells, from 1) and the row within it."""

    row: int
    column: int
    cell: int | None = None

    @property
    def brief(self) -> str:
        """`5`, or `cell 3:5`."""
        return str(self.row) if self.cell is None else f"cell {self.cell}:{self.row}"

    @property
    def text(self) -> str:
        """`5:9`, or `cell 3:5:9`, as ruff writes it."""
        return f"{self.brief}:{self.column}"


def place(finding: Finding, position: Position) -> Place:
    """A place of a finding's own file, for people."""
    if finding.cells is None:
        return Place(position.row, position.column)
    within = finding.cells.within(position)
    return Place(within.row, within.column, finding.cells.cell(position.row))


def evidence_place(evidence: Evidence, finding: Finding, position: Position) -> Place:
    """A place of a piece of evidence, for people: it may stand in another file."""
    if evidence.filename is not None and evidence.filename != finding.filename:
        return Place(position.row, position.column)
    return place(finding, position)


def file_position(finding: Finding, position: Position) -> Position:
    """A place of a finding's own file in the text of that file, for machines that know nothing of cells: a notebook's
    row of JSON.
    """
    return position if finding.cells is None else finding.cells.in_file(position)


def file_span(finding: Finding, span: Span) -> Span:
    """A stretch of a finding's own file in the text of that file."""
    return Span(file_position(finding, span.start), file_position(finding, span.end))


def evidence_span(evidence: Evidence, finding: Finding) -> Span:
    """Where a piece of evidence stands in the text of its file, which may be another one."""
    if evidence.filename is not None and evidence.filename != finding.filename:
        return evidence.span
    return file_span(finding, evidence.span)


def with_cell(text: str, finding: Finding) -> str:
    """What is said of a finding, in a notebook with its cell, where the place that is shown is one of the JSON."""
    return text if finding.cells is None else f"{place(finding, finding.span.start).brief}: {text}"


def file_lines(finding: Finding, report: RunReport) -> list[str]:
    """The rows of a finding's file as a text, which those of a notebook's cells are not; none where it is gone."""
    return report.sources(finding.filename) if finding.cells is None else report.raw_sources(finding.filename)


def file_fix(finding: Finding) -> Fix | None:
    """The fix as edits of the file's text: of a notebook, of its JSON. None where there is none that may be applied."""
    fix, cells = finding.fix, finding.cells
    if fix is None or not fix.edits or fix.applicability is Applicability.HINT:
        return None
    if cells is None:
        return fix
    if any(edit.span.start.row != edit.span.end.row or "\n" in edit.content for edit in fix.edits):
        return None  # it adds or takes away a row, which is an item of a list there
    edits = (Edit(file_span(finding, edit.span), json.dumps(edit.content)[1:-1]) for edit in fix.edits)
    return replace(fix, edits=tuple(edits))


def absolute_path(path: Path, root: Path) -> Path:
    """The path from the top, links kept; a relative one begins at `root`.

    Below the root `NAMES`, relative ones stay as they are.
    """
    if root == NAMES:
        return path
    return Path(os.path.normpath(root.absolute() / path))


def file_address(path: Path, root: Path) -> str:
    """The address of a file on this machine; "" for one that is only a name."""
    absolute = absolute_path(path, root)
    return absolute.as_uri() if absolute.is_absolute() else ""


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


def asides(finding: Finding, root: Path) -> list[str]:
    """What follows the first line of a message where its parts are not shown: its asides, and `(see meters.py:8)`,
    where in each other file the evidence begins.
    """
    places: dict[Path, str] = {}
    for evidence in finding.evidence:
        filename = elsewhere(evidence, finding, root)
        if filename is not None:
            places.setdefault(filename, shown_place(filename, evidence.span.start.row, root))
    told = list(message_of(finding).asides)
    return [*told, f"(see {', '.join(list(places.values())[:_FILES])})"] if places else told

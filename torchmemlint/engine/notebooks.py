"""What is different where the text that is checked is the program of a notebook's cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from torchmemlint.engine.run import FixedCell, FixedFile
from torchmemlint.findings import Applicability, Finding
from torchmemlint.fixes.edits import EditError, apply_edits
from torchmemlint.source.cells import CellProgram
from torchmemlint.source.decoding import UnreadableFile
from torchmemlint.source.notebook import NotebookText
from torchmemlint.source.old_python import old_python

_OF_THE_PROGRAM = re.compile(r" at row \d+")  # of a state of it that was given up: nobody can look there


def within_cells(findings: Sequence[Finding], text: str, program: CellProgram) -> list[Finding]:
    """Findings about a state of the program. A fix that is no change within one cell is to be shown only."""
    return [_within_a_cell(finding, text, program) for finding in findings]


def unreadable_cells(program: CellProgram) -> list[tuple[UnreadableFile, str]]:
    """What is wrong with cells, and their texts. Of those in an old Python, which come in numbers, only the first."""
    found: list[tuple[UnreadableFile, str]] = []
    old = 0
    for problem in program.problems:
        cell, _ = program.place(problem.position.row)
        text = program.texts[cell]
        is_old = bool(old_python(text))
        old += is_old
        if old <= 1 or not is_old:
            found.append((UnreadableFile(f"{problem.message}: this cell is passed over", problem.position), text))
    return found


def placed(findings: Sequence[Finding], unreadable: Sequence[Finding], source: NotebookText) -> list[Finding]:
    """Findings about the program, and those about cells that cannot be read, as they are reported: with their cells."""
    found = [source.program.outside(finding) for finding in findings]
    found += unreadable
    if not found:
        return []
    cells = source.cells()
    return sorted((replace(finding, cells=cells) for finding in found), key=lambda f: (f.span.start, f.code, f.message))


def fixed(found: FixedFile, before: NotebookText, after: NotebookText) -> FixedFile:
    """What the fixes did to a notebook, cell by cell."""
    pairs = zip(before.numbers, before.program.texts, after.program.texts, strict=True)
    cells, kept = before.cells(), after.cells()
    return replace(
        found,
        applied=tuple(replace(finding, cells=cells) for finding in found.applied),
        rolled_back=tuple(
            (replace(after.program.outside(one), cells=kept), _OF_THE_PROGRAM.sub("", why))
            for one, why in found.rolled_back
        ),
        cells=tuple(FixedCell(number, old, new) for number, old, new in pairs if old != new),
        shown=after.shown,
    )


def _within_a_cell(finding: Finding, text: str, program: CellProgram) -> Finding:
    fix = finding.fix
    if fix is None or not fix.edits or fix.applicability is Applicability.HINT:
        return finding
    try:
        if program.fits(text, apply_edits(text, fix.edits)):
            return finding
    except EditError:  # applying the fixes says what is wrong with it
        return finding
    return replace(finding, fix=replace(fix, applicability=Applicability.HINT))

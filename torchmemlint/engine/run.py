"""What a run over many files reports. Light to import: the formats need nothing else of the engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torchmemlint.findings import ContextFile, Finding, Severity
from torchmemlint.fixes.eligibility import eligible
from torchmemlint.immutable import immutable


class RuleFailure(Exception):  # noqa: N818 (it is one)
    """A plugin's rule raised an exception, or gave what is no finding of its own; the message says where."""


@immutable()
class FixedCell:
    """What the fixes changed in one cell of a notebook."""

    number: int  # among all cells of the notebook, from 1
    before: str
    after: str


@immutable()
class FixedFile:
    """What the fixes did, or with `--diff` would do, to one file."""

    filename: Path
    before: str  # decoded text, newlines as in the file; of a notebook, the program that its cells make
    after: str
    applied: tuple[Finding, ...]
    rolled_back: tuple[tuple[Finding, str], ...]  # the finding and why its fix was taken back
    cells: tuple[FixedCell, ...] | None = None  # of a notebook: those that change
    shown: str | None = None  # of a notebook: the rows of `after` as they stand in the cells


def _is_no_advice(finding: Finding) -> bool:
    return finding.severity is not Severity.ADVICE


@immutable()
class LeftOut:
    """Findings that are not reported."""

    count: int
    where: str  # they are, in words: `in torchmemlint-baseline.json`
    gone: int = 0  # entries there that no longer occur


@immutable()
class RunReport:
    """Everything that an output format may want to know about a run.

    `findings` are the remaining ones (suppressed and fixed ones are gone), sorted by file, row, column, code.
    `sources(path)` gives a file's lines without their newlines (as they were when checked: after fixing,
    the fixed text), and an empty list where they cannot be had.
    """

    findings: tuple[Finding, ...]
    files_checked: int
    files_skipped: int  # passed over: they have nothing to do with torch
    fixed: tuple[FixedFile, ...]
    sources: Callable[[Path], list[str]]
    notices: tuple[str, ...] = ()  # one line each, for the error stream
    fixes_applied_to_disk: bool = False  # True under --fix, False under --diff and plain checks
    unsafe_fixes: bool = False  # --unsafe-fixes was given: unsafe fixes count as fixable
    show_summary: bool = True  # False under --quiet
    show_fixes: bool = False  # what was fixed is listed
    folds: bool = False  # in the format for reading: advice, and what a rule repeats in a file, in a line each
    failing: int = 0  # remaining findings at or above the severity that fails a run
    fails: Callable[[Finding], bool] = _is_no_advice  # is a finding one of them?
    errors: tuple[str, ...] = ()  # internal errors, one line each, for the error stream: exit code 2
    context: tuple[ContextFile, ...] = ()  # files that were read for context only, in the order of their names
    from_cache: int = 0  # files of which an earlier run's result was taken
    tracebacks: tuple[str, ...] = ()  # of these errors, where there are any
    left_out: tuple[LeftOut, ...] = ()  # what is known and not reported
    partly: tuple[Path, ...] = ()  # files in which there was more to follow than a file may take
    unsure: int = 0  # further findings, which are less certain than is asked for
    programs: Callable[[Path], list[str]] = lambda path: []  # `sources`, but of notebooks the Python: row for row
    raw_sources: Callable[[Path], list[str]] = lambda path: []  # `sources`, but of notebooks the lines of their JSON

    def fixable(self, *, unsafe: bool) -> list[Finding]:
        """The findings that a fix may remove; none whose fix was tried in this run and taken back."""
        taken_back = {finding for one in self.fixed for finding, _ in one.rolled_back}
        return [one for one in self.findings if one not in taken_back and eligible(one, unsafe=unsafe)]

"""What `--verbose` says about a run: how many files were checked, which others were read for it, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import ContextFile, Lead
from torchmemlint.report.places import shown_path

SHOWN = 10  # files of a kind that are named, unless `-vv` asks for all

_COUNTED = {Lead.IMPORTED: "imported by these", Lead.IMPORTS: "that import them"}


def lines(report: RunReport, seconds: float, root: Path, level: int) -> Iterator[str]:
    """The lines of `-v` (level 1) or `-vv`."""
    passed_over = f"{report.files_skipped} more never mention torch"
    yield f"checked {_files(report.files_checked)}, {passed_over}, in {seconds:.2f} s"
    if report.from_cache:
        yield f"of {_files(report.from_cache)} the result of an earlier run still holds"
    if report.partly:
        yield f"followed only a part of {_files(len(report.partly))}, as more would have taken too long"
        yield from _listed([shown_path(path, root) for path in report.partly], level)
    context = report.context
    if not context:
        yield "read no other files for context"
        return
    counts = Counter(one.lead for one in context)
    kinds = ", ".join(f"{counts[lead]} {words}" for lead, words in _COUNTED.items() if counts[lead])
    yield f"read {_files(len(context), 'other ')} for context: {kinds}"
    yield from _listed([f"{shown_path(one.path, root)}: {_reason(one, root)}" for one in context], level)


def _listed(files: Sequence[str], level: int) -> Iterator[str]:
    shown = files if level > 1 else files[:SHOWN]
    for one in shown:
        yield f"  {one}"
    if len(shown) < len(files):
        yield f"  and {len(files) - len(shown)} more (-vv names all)"


def _reason(one: ContextFile, root: Path) -> str:
    by = shown_path(one.by, root)
    return f"imported by {by}" if one.lead is Lead.IMPORTED else f"imports {by}"


def _files(count: int, other: str = "") -> str:
    return f"{count} {other}file{'' if count == 1 else 's'}"

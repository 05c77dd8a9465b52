"""What `--verbose` says about a run: how many files were checked, which others were read for it, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import ContextFile, Lead
from torchmemlint.report.places import shown_path

SHOWN = 10  # files read for context that are named, unless `-vv` asks for all

_COUNTED = {Lead.IMPORTED: "imported by these", Lead.IMPORTS: "that import them"}


def lines(report: RunReport, seconds: float, root: Path, level: int) -> Iterator[str]:
    """The lines of `-v` (level 1) or `-vv`."""
    passed_over = f"{report.files_skipped} more never mention torch"
    yield f"checked {_files(report.files_checked)}, {passed_over}, in {seconds:.2f} s"
    if report.from_cache:
        yield f"of {_files(report.from_cache)} the result of an earlier run still holds"
    context = report.context
    if not context:
        yield "read no other files for context"
        return
    counts = Counter(one.lead for one in context)
    kinds = ", ".join(f"{counts[lead]} {words}" for lead, words in _COUNTED.items() if counts[lead])
    yield f"read {_files(len(context), 'other ')} for context: {kinds}"
    shown = context if level > 1 else context[:SHOWN]
    for one in shown:
        yield f"  {shown_path(one.path, root)}: {_reason(one, root)}"
    if len(shown) < len(context):
        yield f"  and {len(context) - len(shown)} more (-vv names all)"


def _reason(one: ContextFile, root: Path) -> str:
    by = shown_path(one.by, root)
    return f"imported by {by}" if one.lead is Lead.IMPORTED else f"imports {by}"


def _files(count: int, other: str = "") -> str:
    return f"{count} {other}file{'' if count == 1 else 's'}"

"""The report of `torchmemlint verify` for the terminal, by rich."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from rich.text import Text

from torchmemlint.measured import Verdict
from torchmemlint.report.allocator import outside_tensors
from torchmemlint.report.faces import faces, out_of_memory, whose
from torchmemlint.report.places import shown_place
from torchmemlint.report.rich_text import rows, write_texts
from torchmemlint.report.sparkline import sparkline
from torchmemlint.runtime.compare import steadily
from torchmemlint.runtime.growth import Growth
from torchmemlint.runtime.verification import (
    Comparison,
    Difference,
    Figures,
    FindingResult,
    Sameness,
    VerifyReport,
)
from torchmemlint.sizes import format_size

_STYLES = {
    Verdict.CONFIRMED: "bold red",
    Verdict.CHANGES_RESULTS: "bold magenta",
    Verdict.FIX_FAILS: "bold magenta",
    Verdict.NO_EFFECT: "green",
    Verdict.NOT_REACHED: "yellow",
    Verdict.NOT_TRIED: "cyan",
}


def write_verification(report: VerifyReport, stream: TextIO, *, color: bool, root: Path) -> None:
    """Write the report; paths as seen from `root`."""
    write_texts(_Writer(report, root).parts(), stream, color=color)


class _Writer:
    def __init__(self, report: VerifyReport, root: Path) -> None:
        self._report = report
        self._root = root
        self._tracker = ", the tracker's included" if report.before.simulated else ""

    def parts(self) -> Iterator[Text]:
        """The report from top to bottom."""
        report = self._report
        yield Text.assemble(("verify ", "bold"), report.program)
        yield Text(_conditions(report), style="dim")
        yield Text()
        yield from rows(self._as_it_is(), 2)
        yield from out_of_memory(report.before, self._root)
        for note in report.notes:
            yield Text.assemble(("note: ", "bold yellow"), note)
        for result in report.findings:
            yield Text()
            yield self._heading(result)
            yield from rows(self._finding(result), 4)
        if report.together is not None:
            yield Text()
            yield Text(f"All {report.together_fixes} fixes together", style="bold")
            yield from rows(self._compared(report.together), 4)
        yield Text()
        yield Text(_summary(report), style="bold")

    def _as_it_is(self) -> Iterator[tuple[str, str]]:
        report, run = self._report, self._report.before
        yield "peak", _peak(run.peak, run.peak_reserved) + whose(run)
        yield from faces(run)
        if run.allocator is not None:
            yield "no tensor's", outside_tensors(run.allocator, self._root)
        steepest = run.steepest
        if steepest is None:
            yield "growth", "none from step to step"
        else:
            yield "growth", f"{_per_step(steepest.growth)} along {self._series(steepest.series)}"
        if report.host_growth is not None:
            held = _per_step(report.host_growth) if steadily(report.host_growth) else "does not grow"
            yield "host heap", held + self._tracker
        if report.seconds_per_step is not None and not run.simulated:
            tracker = "" if run.seconds_per_step != report.seconds_per_step else ", the tracker's included"
            yield "time", f"{_seconds(report.seconds_per_step)} per step{tracker}"
        if len(run.step_live) > 2:
            yield "held", f"{sparkline(run.step_live)}  after each of {len(run.step_live)} steps"
        if report.steady.sameness not in (Sameness.EQUAL, Sameness.UNKNOWN):
            yield "unsteady", f"two runs of it differ: {_difference(report.steady)}"
        if run.left_out:
            yield "replaced", _left_out(run.left_out)
        cut = sum(loop.cuts for loop in run.loops) + run.cut_passes
        if cut:
            yield "cut short", f"loops and passes over loaders, {_times(cut)}"

    def _heading(self, result: FindingResult) -> Text:
        finding = result.finding
        place = shown_place(finding["filename"], finding["location"]["row"], self._root)
        verdict = result.verdict
        return Text.assemble(
            (place, "bold"), f"  {finding['code']} {finding['name']}  ", (verdict.value, _STYLES[verdict])
        )

    def _finding(self, result: FindingResult) -> Iterator[tuple[str, str]]:
        if result.finding["doubts"]:
            yield result.finding["confidence"], "; ".join(doubt["message"] for doubt in result.finding["doubts"])
        if result.note:
            yield "why", result.note
        if result.comparison is not None:
            yield from self._compared(result.comparison)
        elif result.growing is not None:
            series, growth = result.growing
            nbytes = format_size(growth.bytes_per_step)
            until = ", and keeps them until they are used" if result.collected else ""
            does = "collects" if result.collected else "grows by"
            yield "measured", f"{self._series(series)} {does} {nbytes} per step{until}"

    def _compared(self, compared: Comparison) -> Iterator[tuple[str, str]]:
        before, after = compared.before, compared.after
        if compared.place:
            yield "of", compared.place
        yield "peak", _change(before.peak, after.peak)
        if before.peak_reserved is not None and after.peak_reserved is not None:
            yield "reserved", _change(before.peak_reserved, after.peak_reserved)
        if compared.peak_within is not None:
            series, was, now = compared.peak_within
            yield "", f"within {self._series(series)}: {_change(was, now)}"
        if before.growth.certain or after.growth.certain:
            along = f" along {self._series(compared.growth_series)}" if compared.growth_series else ""
            yield "growth", _growth_change(before.growth, after.growth) + along
        heaps = before.host_growth, after.host_growth
        if heaps[0] is not None and heaps[1] is not None and (steadily(heaps[0]) or steadily(heaps[1])):
            yield "host heap", _growth_change(heaps[0], heaps[1]) + self._tracker
        if not self._report.before.simulated:  # the time of a simulation says nothing about a GPU's
            yield from _time(before, after)
        yield "results", _difference(compared.difference)

    def _series(self, series: str) -> str:
        """`loop /a/b.py:12` as people read it."""
        family, _, rest = series.partition(" ")
        if family not in ("loop", "line"):
            return {"backward": "the backwards", "call": "the turns that call the model"}.get(
                family, f"the steps of {series}"
            )
        path, _, row = rest.rpartition(":")
        return f"the {family} at {shown_place(path, row, self._root)}"


def _conditions(report: VerifyReport) -> str:
    run = report.before
    steps = f"{run.steps} steps of {run.series}" if run.series else "no steps"
    if run.series.startswith(("backward", "call")):
        steps = f"{run.steps} {'backwards' if run.series.startswith('backward') else 'turns that call the model'}"
    kind = "" if run.simulated else "measured on "
    parts = [f"{kind}{run.description}", f"torch {run.torch}", steps, f"seed {run.seed}", f"{run.threads} threads"]
    return " · ".join(parts)


def _peak(allocated: int, reserved: int | None) -> str:
    more = "" if reserved is None else f" allocated, {format_size(reserved)} reserved"
    return format_size(allocated) + more


def _per_step(growth: Growth) -> str:
    if not growth.certain:
        return "0 B"
    fit = "" if growth.fit > 0.999 else f" (fit {growth.fit:.3f})"
    return f"{format_size(growth.bytes_per_step)} per step{fit}"


def _change(before: int, after: int) -> str:
    if before == after:
        return f"{format_size(before)}, the same"
    change = after - before
    sign = "+" if change > 0 else "-"
    return f"{format_size(before)} → {format_size(after)} ({sign}{format_size(abs(change))})"


def _growth_change(before: Growth, after: Growth) -> str:
    was, now = _per_step(before), _per_step(after)
    return f"{was}, the same" if was == now else f"{was} → {now}"


def _time(before: Figures, after: Figures) -> Iterator[tuple[str, str]]:
    if before.seconds_per_step is None or after.seconds_per_step is None:
        return
    tracker = ", the tracker's included" if before.with_tracker else ""
    yield "time", f"{_seconds(before.seconds_per_step)} → {_seconds(after.seconds_per_step)} per step{tracker}"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _difference(difference: Difference) -> str:
    words = difference.sameness.value
    if difference.sameness is Sameness.EQUAL:
        words = "losses and parameters equal to the bit"
    elif difference.sameness is not Sameness.UNKNOWN:
        apart: list[str] = []
        if difference.losses:
            scale = "" if difference.largest_loss is None else f" (the largest is {difference.largest_loss:.2g})"
            apart.append(f"losses by up to {difference.losses:.2g}{scale}")
        if difference.parameters:
            apart.append(f"parameters by up to {difference.parameters:.2g}")
        words = f"{words}: {', '.join(apart)}" if apart else words
    return f"{words} ({difference.note})" if difference.note else words


def _left_out(counts: Mapping[str, int]) -> str:
    words = {
        "torch.save": "your checkpoints were left alone",
        "torch.compile": "torch.compile ran eagerly: what it fuses is outside of what is measured",
    }
    return "; ".join(f"{words.get(name, name)} ({_times(count)})" for name, count in counts.items())


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _summary(report: VerifyReport) -> str:
    if not report.findings:
        return "No findings in the files that were run."
    counts = Counter(one.verdict for one in report.findings)
    return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]) + "."

"""The report of `torchmemlint trace` for the terminal, by rich."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from rich.text import Text

from torchmemlint.immutable import immutable
from torchmemlint.report.allocator import outside_tensors
from torchmemlint.report.faces import faces, out_of_memory, whose
from torchmemlint.report.places import shown_place
from torchmemlint.report.rich_text import rows, write_texts
from torchmemlint.report.sparkline import sparkline
from torchmemlint.runtime.collector import Waiting
from torchmemlint.runtime.growth import FEWEST, WARM_UP
from torchmemlint.runtime.holders import Holder
from torchmemlint.runtime.idle import Idle
from torchmemlint.runtime.ledger import Site
from torchmemlint.runtime.results import RunResult
from torchmemlint.runtime.seldom import Seldom
from torchmemlint.runtime.shared import Shared
from torchmemlint.runtime.trace_report import TracedLeak, TraceReport
from torchmemlint.runtime.uses import Unneeded
from torchmemlint.sizes import format_size

_LINES = 8
_TOO_FEW = WARM_UP + FEWEST + 1
"""Turns by which growth cannot be told."""
_MADE = 4
_UNITS = {
    "optimizer": "step of {}",
    "loader": "batch of {}",
    "backward": "backward",
    "call": "turn that calls the model",
    "step": "step",
    "loop": "turn of the loop at {}",
}


def write_trace(report: TraceReport, stream: TextIO, *, color: bool, root: Path) -> None:
    """Write the report; paths as seen from `root`."""
    write_texts(_Writer(report, root).parts(), stream, color=color)


@immutable()
class LeakText:
    """A leak in words: its line, what each turn adds to what, and the rows below."""

    place: str
    nbytes: str
    unit: str
    rows: tuple[tuple[str, str], ...]


def leak_texts(report: TraceReport, root: Path) -> list[LeakText]:
    """The leaks of a report in words; paths as seen from `root`."""
    words = _Words(root)
    return [
        LeakText(
            words.place(one.leak.line),
            format_size(one.leak.bytes_per_turn),
            words.unit(one.leak.growth.series),
            tuple(words.leak(one)),
        )
        for one in report.leaks
    ]


class _Words:
    """Leaks and their places in words; paths as seen from `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def place(self, site: Site) -> str:
        """A line of source."""
        return shown_place(site.path, site.line, self._root)

    def unit(self, series: str) -> str:
        """What a series counts, one of them."""
        family, _, whose = series.partition(" ")
        path, _, line = whose.rpartition(":")
        whose = shown_place(path, line, self._root) if family == "loop" else f"{family} {whose}"
        return _UNITS.get(family, "turn of {}").format(whose)

    def leak(self, one: TracedLeak) -> Iterator[tuple[str, str]]:
        """The rows below its line: what each turn adds, who keeps it, which lines made it, which rule knows it."""
        leak = one.leak
        storages = f", {leak.growth.storages_per_turn:.3g} storages" if leak.growth.storages_per_turn else ""
        how = "the same" if leak.growth.steady else "on average"
        yield "grows", f"{leak.bytes_per_turn:,.0f} B{storages}, {how} in {leak.growth.turns} turns"
        for more in leak.besides:
            yield "also", f"{more.bytes_per_turn:,.0f} B per {self.unit(more.series)}"
        if leak.stays is not None:
            others = f", but for {leak.stays:,.0f} B of each turn that others keep, too" if leak.stays else ""
            yield "until", f"some time after each pass of the loop{others}"
        if leak.block_bytes is not None and leak.block_bytes != leak.bytes_per_turn:
            yield "blocks", f"{leak.block_bytes:,.0f} B of the allocator's blocks"
        if leak.holder is None and not leak.on_host:  # nobody looks for holders there
            yield "kept by", "unknown: no name of the program reaches it"
        for holder in () if leak.holder is None else (leak.holder, *leak.also):
            yield "kept by", _holder(holder)
        made = [f"{self.place(site)} ({format_size(nbytes)})" for site, nbytes in leak.made[:_MADE]]
        rest = len(leak.made) - len(made)
        yield "made at", ", ".join(made) + (f", and {rest} more lines" if rest else "")
        if leak.holder is not None and leak.holder.graph_lines:
            lines = (self.place(site) for site, _ in leak.holder.graph_lines)
            yield "graph", "saved for a backward at " + ", ".join(lines)
        yield "kinds", ", ".join(f"{kind.label} {format_size(nbytes)}" for kind, nbytes in leak.kinds)
        if leak.holder is not None and 2 * leak.holder.shown < leak.holder.direct:
            share = leak.holder.shown / leak.holder.direct
            yield (
                "views",
                f"the tensors show {share:.0%} of these bytes: each is a part of a storage that it keeps whole",
            )
        if leak.holder is not None and leak.holder.unfindable:
            yield "lost", f"{leak.holder.unfindable} results: nothing else has the object that they were cached for"
        if one.ranks:
            yield "ranks", ", ".join(map(str, one.ranks))
        for told in one.findings:
            yield "rule", f"{told.code} at {shown_place(told.path, told.line, self._root)}: {told.message}"
        if not one.findings and leak.is_growth:
            yield "rule", "none has a finding for it"

    def heading_of_waiting(self, one: Waiting) -> Text:
        """The line, and what waited."""
        return Text.assemble(
            ("waits  ", "bold red"),
            (self.place(one.line), "bold"),
            f" in {one.line.function}" if one.line.function != "<module>" else "",
            (f"  up to {format_size(one.most)} left to the garbage collector", "bold red"),
        )

    def waiting(self, one: Waiting) -> Iterator[tuple[str, str]]:
        """What the collector freed, how long it waited, and the cycle that held it."""
        times = "1 collection" if one.collections == 1 else f"{one.collections} collections"
        yield "freed", f"by {times}; {one.storages} storages, {format_size(one.freed)}, waited up to {one.turns} turns"
        yield (
            "cycle",
            "unknown: none was there when the heap was looked at" if one.cycle is None else _holder(one.cycle),
        )
        if one.line != one.site:
            yield "made at", self.place(one.site)

    def heading_of_idle(self, one: Idle) -> str:
        """Which peak, and how much of it."""
        share = f"{format_size(one.nbytes)} of {format_size(one.peak)} ({one.nbytes / one.peak:.0%})"
        which = "the peak" if one.series is None else f"the peak of {self.whole(one.series)}"
        return f"Not used after {which}: {share}"

    def whole(self, series: str) -> str:
        """A loop by its place."""
        path, _, line = series.partition(" ")[2].rpartition(":")
        return f"the loop at {shown_place(path, line, self._root)}"

    def idle(self, one: Idle) -> Iterator[tuple[str, str]]:
        """Its parts: who keeps them, or which lines made them."""
        for part in one.parts[:_LINES]:
            made = ", ".join(self.place(site) for site, _ in part.made[:_MADE])
            kept = "" if part.holder is None else f", kept by {_holder(part.holder)}"
            yield format_size(part.nbytes), f"{part.nbytes / one.peak:4.0%}  {part.kind.label} made at {made}{kept}"

    def seldom(self, one: Seldom) -> tuple[str, str]:
        """What a line keeps each time, and how often it did."""
        return format_size(
            one.nbytes
        ), f"at {self.place(one.line)}, {one.times} times in {one.steps} steps; none is freed"

    def shared(self, one: Shared) -> tuple[str, str]:
        """What a line makes for other processes, or has from them, in all."""
        return format_size(one.nbytes), f"at {self.place(one.line)}, {one.storages} storages in the whole run"

    def unneeded(self, one: Unneeded) -> Iterator[tuple[str, str]]:
        """The lines that saved activations for them, and the gradients themselves."""
        for site, nbytes in one.saved[:_LINES]:
            yield format_size(nbytes), f"saved for a backward at {self.place(site)}"
        count = "1 parameter" if one.parameters == 1 else f"{one.parameters} parameters"
        yield format_size(one.gradients), f"gradients of {count} that no optimizer steps"


class _Writer:
    def __init__(self, report: TraceReport, root: Path) -> None:
        self._report = report
        self._root = root
        self._words = _Words(root)

    def parts(self) -> Iterator[Text]:
        """The report from top to bottom."""
        report = self._report
        yield Text.assemble(("trace ", "bold"), report.program)
        yield Text(_conditions(report.run), style="dim")
        yield from rows(faces(report.run))
        yield from out_of_memory(report.run, self._root)
        for note in report.notes:
            yield Text.assemble(("note: ", "bold yellow"), note)
        for number, one in enumerate(report.leaks, 1):
            yield Text()
            yield self._heading(number, one)
            yield from rows(self._words.leak(one))
        for one in report.filling:
            yield Text()
            yield Text.assemble(("fills up  ", "bold green"), self._words.place(one.leak.line))
            yield from rows(self._words.leak(one))
        for one in report.gathered:
            yield Text()
            yield Text.assemble(("collected, and used later  ", "bold green"), self._words.place(one.leak.line))
            yield from rows(self._words.leak(one))
        if report.seldom:
            yield Text()
            yield Text("Kept now and then, in too few turns to tell whether it goes on", style="bold")
            yield from rows(self._words.seldom(one) for one in report.seldom[:_LINES])
        if report.shared:
            yield Text()
            yield Text(
                "Goes from process to process; a real GPU keeps it in the first until it is let go",
                style="bold",
            )
            yield from rows(self._words.shared(one) for one in report.shared[:_LINES])
        for waiting in report.waiting:
            yield Text()
            yield self._words.heading_of_waiting(waiting)
            yield from rows(self._words.waiting(waiting))
        for idle in report.idle:
            yield Text()
            yield Text(self._words.heading_of_idle(idle), style="bold")
            yield from rows(self._words.idle(idle))
        if report.unneeded is not None:
            yield Text()
            yield Text(f"{format_size(report.unneeded.nbytes)} for gradients that no optimizer uses", style="bold")
            yield from rows(self._words.unneeded(report.unneeded))
        yield from self._kinds()
        yield from self._peak()
        yield Text()
        yield Text(self._summary(), style="bold")

    def _heading(self, number: int, one: TracedLeak) -> Text:
        leak = one.leak
        where = " of CPU memory" if leak.on_host else ""
        return Text.assemble(
            (f"{number}  ", "bold red"),
            (self._words.place(leak.line), "bold"),
            f" in {leak.line.function}" if leak.line.function != "<module>" else "",
            (
                f"  +{format_size(leak.bytes_per_turn)}{where} per {self._words.unit(leak.growth.series)}",
                "bold red",
            ),
        )

    def _kinds(self) -> Iterator[Text]:
        timeline = self._report.timeline
        if not timeline.by_kind:
            return
        yield Text()
        yield Text(f"Held {self._moments()}", style="bold")
        high = max(max(values) for values in timeline.by_kind.values())
        yield from rows(
            (kind, f"{sparkline(values, 0, high)}  {format_size(values[-1])}")
            for kind, values in timeline.by_kind.items()
        )

    def _moments(self) -> str:
        timeline = self._report.timeline
        if not timeline.series:
            return f"at {timeline.moments} moments of the run"
        of = ", and of each ".join(self._words.unit(series) for series in timeline.series)
        return f"at the end of each {of} ({timeline.moments})"

    def _peak(self) -> Iterator[Text]:
        run = self._report.run
        if not run.peak:
            return
        yield Text()
        reserved = "" if run.peak_reserved is None else f", {format_size(run.peak_reserved)} reserved"
        yield Text(f"Lines at the peak of {format_size(run.peak)}{reserved}{whose(run)}", style="bold")
        tensors = sum(run.kinds.values())
        total = max(1, run.peak, tensors)
        shown = [(self._words.place(Site(one.path, one.line, one.function)), one.nbytes) for one in run.lines[:_LINES]]
        shown.append(("other lines", tensors - sum(nbytes for _, nbytes in shown)))
        if run.simulated:
            shown.append(("in no tensor: cuBLAS's workspaces, and rounding to blocks", total - tensors))
        yield from rows(
            (format_size(nbytes), f"{nbytes / total:4.0%}  {place}") for place, nbytes in shown if nbytes > 0
        )
        if run.allocator is not None:
            yield Text(f"No tensor's: {outside_tensors(run.allocator, self._root)}")

    def _summary(self) -> str:
        report = self._report
        if report.blind:
            times = "once" if report.run.failed_looks == 1 else f"{report.run.failed_looks} times"
            ran_out = "Memory ran out. " if report.run.out_of_memory is not None else ""
            return f"{ran_out}Growth cannot be told: what looks at the program failed {times}."
        steps, turns = report.run.steps, max((loop.turns for loop in report.run.loops), default=0)
        few = max(steps, turns) <= _TOO_FEW
        of_loop = not steps or steps <= _TOO_FEW < turns
        counted = f"in {turns} turns of a loop" if of_loop else f"from step to step in {steps} steps"
        if report.run.out_of_memory is not None and not report.growing:
            return f"Memory ran out; {'too few turns to tell what grows' if few else f'nothing grew {counted}'}."
        if not report.growing:
            most = max(steps, turns)
            found = f"Too few turns to tell what grows: {most}." if few else f"No growth {counted}."
            if report.seldom:
                keeping = "1 line keeps" if len(report.seldom) == 1 else f"{len(report.seldom)} lines keep"
                found = f"{keeping} more now and then: give it more --steps to tell whether it grows."
            elif report.shared and not few:
                where = self._words.place(report.shared[0].line)
                found = f"Growth cannot be told: tensors on the GPU go from process to process, at {where}."
            return " ".join((found, *self._besides()))
        if not report.leaks:
            return f"{format_size(sum(one.most for one in report.waiting))} waited for the garbage collector."
        lines, unknown = len(report.leaks), len(report.unknown)
        which = "no rule has a finding for it" if lines == 1 else f"no rule has a finding for {unknown} of them"
        return f"{lines} line{' lets' if lines == 1 else 's let'} memory grow{f'; {which}' if unknown else ''}."

    def _besides(self) -> Iterator[str]:
        """What takes memory that could be saved, though it does not grow."""
        report = self._report
        if report.gathered:
            leak = max((one.leak for one in report.gathered), key=lambda one: one.bytes_per_turn)
            unit = self._words.unit(leak.growth.series)
            yield f"{self._words.place(leak.line)} collects {format_size(leak.bytes_per_turn)} per {unit}."
        if report.idle:
            most = max(report.idle, key=lambda one: one.nbytes)
            yield f"But {format_size(most.nbytes)} could be freed before a peak ({most.nbytes / most.peak:.0%} of it)."
        if report.unneeded is not None:
            yield f"But {format_size(report.unneeded.nbytes)} are for gradients that no optimizer uses."


def _conditions(run: RunResult) -> str:
    on = run.description if run.simulated else f"measured on {run.description}"
    return f"{on}; torch {run.torch}, Python {run.python}, {run.steps} steps, seed {run.seed}"


def _holder(holder: Holder) -> str:
    where = {
        "local": f"local of {holder.function}()",
        "closure": f"closure of {holder.function}()",
        "default": f"default argument of {holder.function}()",
        "generator": f"local of the generator {holder.function}()",
        "attribute": f"attribute of {holder.of_type}",
        "class attribute": f"attribute of the class {holder.of_type}",
        "cycle": f"a reference cycle that only the garbage collector frees; attribute of {holder.of_type}",
    }.get(holder.kind, holder.kind)
    length = "" if holder.length is None else f" of {holder.length}"
    bound = "" if holder.bound is None else f", at most {holder.bound}"
    how = {"graph": ", by its graph", "direct and graph": ", directly and by graphs"}.get(holder.how, "")
    return f"{holder.name}: {holder.type}{length}{bound} ({where}){how}"

"""The report of `torchmemlint oom` for the terminal, by rich."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from rich.text import Text

from torchmemlint.report.places import one_line, shown_place
from torchmemlint.report.rich_text import rows, write_texts
from torchmemlint.runtime.ledger import Site
from torchmemlint.sizes import format_size
from torchmemlint.snapshot.callers import words
from torchmemlint.snapshot.report import DeviceReport, Explained, Failed, Growing, LineUse, Moment, OomReport, Remedy

_LINES = 12
_FUNCTIONS = 6
_EARLIER = 5
_LEAST = 2000  # lines with less than one part in so many are summed up


def write_oom(report: OomReport, stream: TextIO, *, color: bool, root: Path) -> None:
    """Write the report; paths as seen from `root`."""
    write_texts(_Writer(report, root).parts(), stream, color=color)


def place_of(site: Site, root: Path) -> str:
    """A line of source, or what stands where there is none."""
    return words(site) or (shown_place(site.path, site.line, root) if site.line else "all other lines")


def failure_rows(failed: Failed) -> Iterator[tuple[str, str]]:
    """A request that failed, in rows of a name and what it was."""
    size = format_size
    asked = f"{size(failed.requested)}; torch asked CUDA for {size(failed.needed)}, which had"
    yield "asked for", f"{asked} {size(failed.device_free)} free: {size(failed.missing)} missing"
    moment = failed.moment
    yield "allocated", f"{size(moment.allocated)} of {size(moment.reserved or 0)} reserved"
    pieces = _count(failed.pieces, "piece")
    yield "free inside", f"{size(failed.free)} in {pieces}, the largest {size(failed.largest_free)}"
    if failed.joined_would_fit and not failed.expandable:
        yield "fragments", "these pieces together would have served it: try PYTORCH_ALLOC_CONF=expandable_segments:True"
    elif failed.joined_would_fit:
        yield "fragments", "these pieces together would have served it"
    if not failed.missing:
        yield "limit", "CUDA had enough free: a limit such as `set_per_process_memory_fraction` refused it"


def remedy_rows(failed: Failed, root: Path) -> Iterator[tuple[str, str]]:
    """What would have made a request fit, in rows."""
    if not failed.missing:
        return
    found: Remedy = failed.by_findings
    if found.findings:
        verdict = "enough" if found.enough else f"not enough: {format_size(failed.missing)} were missing"
        yield "findings", f"{len(found.findings)} about {format_size(found.nbytes)} of live memory: {verdict}"
        for told, nbytes in found.findings:
            at = shown_place(told.path, told.line, root)
            yield "", f"at most {format_size(nbytes)}: {told.code} at {at}{fix_words(told)}"
    if not found.enough and not failed.by_lines.enough:
        yield "lines", "all of them together are less than what was missing"
    elif not found.enough:
        for site, nbytes in failed.by_lines.lines:
            yield (
                "lines" if site == failed.by_lines.lines[0][0] else "",
                f"{format_size(nbytes)}: {place_of(site, root)}",
            )
    saved = failed.moment.kinds.get("saved activation", 0)
    if saved > failed.missing:
        less = f"{100 * failed.missing / saved:.1f}% less of them would have been enough"
        yield "batch", f"saved activations are {format_size(saved)}; {less} (a smaller batch, checkpointing)"


def fix_words(one: Explained) -> str:
    """The fix of a finding, in words that follow its place."""
    if not one.fix:
        return ""
    return (
        f" ({one_line(one.fix)})" if one.applicability == "hint" else f" ({one.applicability} fix: {one_line(one.fix)})"
    )


def kinds_words(kinds: Mapping[str, int]) -> str:
    """The kinds of a line's bytes, most first."""
    return (
        ", ".join(kinds) if len(kinds) < 2 else ", ".join(f"{kind} {format_size(size)}" for kind, size in kinds.items())
    )


def growing_words(one: Growing) -> str:
    """How a line grows."""
    how = "the same" if one.steady else "on average"
    return f"+{format_size(one.bytes_per_step)} per step, {how} in {one.steps} steps; {format_size(one.nbytes)} live"


class _Writer:
    def __init__(self, report: OomReport, root: Path) -> None:
        self._report = report
        self._root = root
        self._told_before: set[tuple[str, str, int, str]] = set()

    def parts(self) -> Iterator[Text]:
        """The report from top to bottom."""
        report = self._report
        yield Text.assemble(("oom ", "bold"), one_line(report.snapshot))
        for note in report.notes:
            yield Text.assemble(("note: ", "bold yellow"), note)
        if report.ranks > 1:
            yield Text()
            yield from self._overview()
        for device in report.devices[: 1 if report.ranks > 1 else None]:
            yield Text()
            yield from self._device(device)
        yield Text()
        yield Text(self._summary(), style="bold")

    def _overview(self) -> Iterator[Text]:
        """The devices of several ranks: the first is told in full."""
        yield Text(f"{self._report.ranks} ranks, the first of these in full", style="bold")
        for device in self._report.devices:
            failed = f", out of memory {_count(len(device.failures), 'time')}" if device.failures else ""
            peak = f"peak {format_size(device.peak.allocated)}{_reserved(device.peak)}"
            yield Text.assemble("    ", (device.device, "bold"), f"  {peak}{failed}")

    def _device(self, device: DeviceReport) -> Iterator[Text]:
        steps = f", {_count(device.steps, 'step')}" if device.steps else ""
        yield Text.assemble((device.device, "bold"), f"  {device.events:,} events{steps}")
        at_end = f"{format_size(device.allocated)} allocated, {format_size(device.reserved)} reserved"
        peak = device.peak
        yield from rows(
            [
                ("peak", f"{format_size(peak.allocated)} allocated{_reserved(peak)}"),
                ("at its end", f"{at_end} in {_count(device.segments, 'segment')}"),
            ]
        )
        for note in device.notes:
            yield Text.assemble(("note: ", "bold yellow"), note)
        for failed in device.failures[:-1][-_EARLIER:]:
            where = f"{place_of(failed.site, self._root)}: {format_size(failed.requested)}"
            yield Text.assemble(("out of memory  ", "red"), where)
        if device.failures:
            yield from self._failure(device.failures[-1])
        if not device.failures or device.failures[-1].moment.allocated < peak.allocated:
            yield from self._moment("the peak", peak)
        yield from self._growing(device)

    def _failure(self, failed: Failed) -> Iterator[Text]:
        yield Text()
        function = (
            f" in {one_line(failed.site.function)}" if failed.site.line and failed.site.function != "<module>" else ""
        )
        yield Text.assemble(("out of memory  ", "bold red"), (place_of(failed.site, self._root), "bold"), function)
        yield from rows(failure_rows(failed))
        yield from self._moment("the request that failed", failed.moment)
        found = list(remedy_rows(failed, self._root))
        if found:
            yield Text()
            yield Text("What would have made it fit", style="bold")
            yield from rows(found)

    def _moment(self, what: str, moment: Moment) -> Iterator[Text]:
        yield Text()
        yield Text(f"Live at {what}: {format_size(moment.allocated)}", style="bold")
        total = max(1, moment.allocated)
        shown = [one for one in moment.lines[:_LINES] if one is moment.lines[0] or _LEAST * one.nbytes >= total]
        for one in shown:
            yield self._line(one, total)
            yield from self._findings(one.findings)
        rest = moment.lines[len(shown) :]
        if rest:
            share = sum(one.nbytes for one in rest)
            yield Text(
                f"{format_size(share):>12}  {100 * share / total:3.0f}%  {_count(len(rest), 'more line')}", style="dim"
            )
        functions = [one for one in moment.functions if 100 * one.nbytes >= total][:_FUNCTIONS]
        if functions:
            yield Text("By function", style="bold")
            yield from rows(
                (
                    f"{format_size(one.nbytes):>10}  {100 * one.nbytes / total:3.0f}%",
                    f"{one_line(one.function)} of {self._file(one.path)}",
                )
                for one in functions
            )
        yield Text("By kind", style="bold")
        yield from rows(
            (kind, f"{format_size(size)}  {100 * size / total:.0f}%") for kind, size in moment.kinds.items()
        )
        if moment.doubtful:
            guessed = f"{format_size(moment.doubtful)} of this are not freed in the history: their kind is a guess"
            yield Text(f"    {guessed}", style="dim")
        for hint in moment.hints:
            yield Text.assemble(("hint: ", "bold cyan"), hint)

    def _line(self, one: LineUse, total: int) -> Text:
        blocks = _count(one.blocks, "block")
        return Text.assemble(
            f"{format_size(one.nbytes):>12}  {100 * one.nbytes / total:3.0f}%  ",
            (place_of(one.site, self._root), "bold" if one.findings else ""),
            (f"{_inside(one.site)}  {blocks}, {kinds_words(one.kinds)}", "dim"),
        )

    def _findings(self, findings: Iterable[Explained]) -> Iterator[Text]:
        """Each in full the first time, and by its code after that."""
        before = []
        for one in findings:
            key = (one.code, one.path, one.line, one.message)
            if key in self._told_before:
                before.append(one.code)
                continue
            self._told_before.add(key)
            yield Text.assemble(" " * 20, (one.code, "magenta"), f" {self._told(one)}")
        if before:
            yield Text.assemble(" " * 20, (", ".join(dict.fromkeys(before)), "magenta"), (" (as above)", "dim"))

    def _told(self, one: Explained) -> str:
        where = "" if one.how == "here" else f"at {shown_place(one.path, one.line, self._root)}, which calls it: "
        return f"{where}{one_line(one.message)}{fix_words(one)}"

    def _file(self, path: str) -> str:
        return shown_place(path, 0, self._root).removesuffix(":0")

    def _growing(self, device: DeviceReport) -> Iterator[Text]:
        if not device.growing:
            return
        yield Text()
        yield Text("Grows from step to step", style="bold")
        for one in device.growing[:_LINES]:
            yield Text.assemble("    ", (place_of(one.site, self._root), "bold"), f"  {growing_words(one)}")
            yield from self._findings(one.findings)

    def _summary(self) -> str:
        report = self._report
        count = sum(len(one.failures) for one in report.devices)
        ended = f"Memory ran out {'once' if count == 1 else f'{count} times'}." if count else "Memory did not run out."
        if report.checked is None:
            return f"{ended} Give the sources (SRC) to see which findings explain these lines."
        explained = {
            (told.code, told.path, told.line)
            for device in report.devices
            for moment in (device.peak, *(one.moment for one in device.failures))
            for line in moment.lines
            for told in line.findings
        }
        return f"{ended} {_count(len(explained), 'finding')} about these lines, in {_count(report.checked, 'file')}."


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _inside(site: Site) -> str:
    return f" in {one_line(site.function)}" if site.line and site.function != "<module>" else ""


def _reserved(moment: Moment) -> str:
    return "" if moment.reserved is None else f", {format_size(moment.reserved)} reserved"

"""From a snapshot to its report: what lived at the peak and when a request failed, who explains it, what would help."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from torchmemlint.findings import Finding
from torchmemlint.runtime.curve import NO_CURVE, curve
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.ledger import Site
from torchmemlint.runtime.survivors import accrual
from torchmemlint.sizes import format_size
from torchmemlint.snapshot.callers import BEFORE, Phase, words
from torchmemlint.snapshot.history import STEPS, Failure, History, history_of
from torchmemlint.snapshot.layout import layout, reserved_at
from torchmemlint.snapshot.records import Snapshot
from torchmemlint.snapshot.report import (
    Branch,
    DeviceReport,
    Explained,
    Failed,
    FunctionUse,
    Growing,
    LineUse,
    Moment,
    OomReport,
    Remedy,
)
from torchmemlint.snapshot.sources import NO_SOURCES, Explanations, Sources

_MOST_FAILURES = 10
_DEEPEST = 24  # calls of the tree
_MOST_LINES = 400  # of a moment; the rest is one line
_MUCH = 100  # gradients with less than one part in so many are not worth a hint
_OF_VALUES = (Phase.FORWARD, Phase.OTHER)
_REST = Site("<other lines>", 0, "")

READS = (
    "a snapshot does not record when memory was read: what was live and no longer needed cannot be told apart from the"
    " rest"
)


def analyse(
    snapshot: Snapshot,
    name: str,
    sources: Sources = NO_SOURCES,
    findings: Sequence[Finding] = (),
    *,
    checked: int | None = None,
    notes: Iterable[str] = (),
    progress: Callable[[str], None] = lambda what: None,
) -> OomReport:
    """The report of a snapshot. `findings` are those of the files that `sources` found, `checked` counts these."""
    devices = []
    for device in snapshot.devices:
        progress(f"cuda:{device}")
        history = history_of(snapshot, device, sources.is_users)
        devices.append(_Device(snapshot, history, sources, Explanations(findings)).report())
    return OomReport(name, tuple(devices), snapshot.settings, checked, (*notes, READS))


class _Device:
    def __init__(self, snapshot: Snapshot, history: History, sources: Sources, explanations: Explanations) -> None:
        self._snapshot = snapshot
        self._history = history
        self._ledger = history.ledger
        self._sources = sources
        self._explanations = explanations
        self._above: dict[int, list[Finding]] = {}  # by call stack

    def report(self) -> DeviceReport:
        history, snapshot = self._history, self._snapshot
        segments = snapshot.of(history.device)
        blocks = [block for one in segments for block in one.blocks]
        events = snapshot.traces.get(history.device)
        peak = self._moment(history.peak_event, self._reserved(history.peak_event))
        return DeviceReport(
            history.name,
            len(events) if events is not None else 0,
            sum(block.requested for block in blocks if block.allocated),
            sum(block.size for block in blocks if block.allocated or block.waiting),
            sum(one.size for one in segments),
            len(segments),
            len(history.steps),
            peak,
            tuple(map(self._failed, history.failures[-_MOST_FAILURES:])),
            tuple(self._growing()),
            history.whole,
            tuple(self._notes(peak)),
            curve(self._ledger, history.name, history.steps) if len(self._ledger) else NO_CURVE,
        )

    def _reserved(self, event: int) -> int | None:
        """The bytes reserved after so many events of the ledger: only the end's are known without its segments."""
        events = self._snapshot.traces.get(self._history.device)
        if events is None or not len(events):
            return sum(one.size for one in self._snapshot.of(self._history.device))
        return reserved_at(self._snapshot, self._history.device, self._history.place(event))

    # --- a moment

    def _moment(self, event: int, reserved: int | None) -> Moment:
        history, ledger = self._history, self._ledger
        alive = ledger.alive_at(event, history.name)
        by_line: defaultdict[Site, list[int]] = defaultdict(list)
        kinds: Counter[str] = Counter()
        functions: Counter[tuple[str, str]] = Counter()
        for index in alive:
            site, nbytes = ledger.site(index), ledger.nbytes(index)
            by_line[site].append(index)
            kinds[ledger.kind(index).label] += nbytes
            if site.line:
                functions[self._sources.place(site).path, site.function] += nbytes
        lines = sorted((self._line(site, records) for site, records in by_line.items()), key=lambda one: -one.nbytes)
        if len(lines) > _MOST_LINES:
            rest = lines[_MOST_LINES:]
            together = sum((Counter(one.kinds) for one in rest), Counter[str]())
            blocks = sum(one.blocks for one in rest)
            lines[_MOST_LINES:] = [LineUse(_REST, sum(one.nbytes for one in rest), blocks, together)]
        return Moment(
            sum(map(ledger.nbytes, alive)),
            reserved,
            sum(mark < event for mark in history.steps),
            tuple(lines),
            tuple(FunctionUse(path, name, nbytes) for (path, name), nbytes in functions.most_common(50)),
            dict(kinds.most_common()),
            sum(ledger.nbytes(index) for index in alive if index in history.doubtful),
            self._calls(alive),
            tuple(self._hints(event, kinds)),
        )

    def _line(self, site: Site, records: Sequence[int]) -> LineUse:
        ledger = self._ledger
        kinds: Counter[str] = Counter()
        for index in records:
            kinds[ledger.kind(index).label] += ledger.nbytes(index)
        place = self._sources.place(site)
        values = any(self._history.caller(index).phase in _OF_VALUES for index in records)
        here = self._explanations.at(place, values=values)
        stacks = {self._history.stacks[index] for index in records}
        calling = {finding for stack in stacks for finding in self._callers_findings(stack)}.difference(here)
        told = [_explained(finding, "here") for finding in here]
        told += [_explained(finding, "caller") for finding in sorted(calling, key=_order)]
        return LineUse(place, kinds.total(), len(records), dict(kinds.most_common()), tuple(told))

    def _callers_findings(self, stack: int) -> list[Finding]:
        found = self._above.get(stack)
        if found is None:
            lines = self._history.callers[stack].lines[1:]
            found = self._above[stack] = self._explanations.above(map(self._sources.place, lines))
        return found

    def _calls(self, alive: Iterable[int]) -> Branch:
        """The calls that allocated what lives, as a tree from the outermost."""
        by_stack: Counter[int] = Counter()
        for index in alive:
            by_stack[self._history.stacks[index]] += self._ledger.nbytes(index)
        paths: list[tuple[tuple[Site, ...], int]] = []
        for stack, nbytes in by_stack.items():
            who = self._history.callers[stack]
            lines = who.lines[::-1] or (who.site,)
            paths.append((tuple(map(self._sources.place, lines[:_DEEPEST])), nbytes))
        return Branch("all", by_stack.total(), _branches(paths))

    def _hints(self, event: int, kinds: Counter[str]) -> Iterator[str]:
        gradients = kinds[Kind.GRADIENT.label]
        if _MUCH * gradients >= kinds.total() > 0 and self._history.phase_at(event) is Phase.FORWARD:
            yield (
                f"gradients ({format_size(gradients)}) are live during a forward pass: unless they are accumulated,"
                " `optimizer.zero_grad(set_to_none=True)` before it frees them"
            )

    # --- requests that failed

    def _failed(self, failure: Failure) -> Failed:
        history = self._history
        there = layout(self._snapshot, history, failure)
        moment = self._moment(failure.event, there.reserved)
        who = history.callers[failure.stack]
        missing = there.missing
        return Failed(
            failure.requested,
            failure.device_free,
            there.needed,
            missing,
            there.largest_free,
            there.free,
            there.pieces,
            there.joined_would_fit,
            there.expandable,
            self._sources.place(who.site),
            moment,
            self._by_findings(failure.event, missing),
            _by_lines(moment, missing),
        )

    def _by_findings(self, event: int, missing: int) -> Remedy:
        """The fewest findings whose bytes are those that were missing; what several explain counts once."""
        units: Counter[int] = Counter()  # bytes by call stack
        for index in self._ledger.alive_at(event, self._history.name):
            units[self._history.stacks[index]] += self._ledger.nbytes(index)
        left: defaultdict[Finding, dict[int, int]] = defaultdict(dict)
        how: dict[Finding, str] = {}
        for stack, nbytes in units.items():
            who = self._history.callers[stack]
            here = self._explanations.at(self._sources.place(who.site), values=who.phase in _OF_VALUES)
            for finding in (*here, *self._callers_findings(stack)):
                left[finding][stack] = nbytes
                how[finding] = "here" if finding in here else how.get(finding, "caller")
        chosen: list[tuple[Explained, int]] = []
        total = 0
        while left and (total < missing or not chosen):
            best = max(sorted(left, key=_order), key=lambda one: (sum(left[one].values()), one.severity.rank))
            stacks = left.pop(best)
            nbytes = sum(stacks.values())
            if not nbytes:
                break
            chosen.append((_explained(best, how[best]), nbytes))
            total += nbytes
            for others in left.values():
                for stack in stacks:
                    others.pop(stack, None)
        return Remedy(total, bool(chosen) and total >= missing, findings=tuple(chosen))

    # --- what grows

    def _growing(self) -> Iterator[Growing]:
        marks = self._history.steps
        if not marks:
            return
        by_line: defaultdict[Site, list[int]] = defaultdict(list)
        for index in self._ledger.alive_at(marks[-1], self._history.name):
            by_line[self._ledger.site(index)].append(index)
        found = []
        for site, records in by_line.items():
            grown = accrual(STEPS, marks, [(self._ledger.born(index), self._ledger.nbytes(index)) for index in records])
            if grown is not None:
                told = self._line(site, records).findings
                found.append(
                    Growing(
                        self._sources.place(site), grown.bytes_per_turn, grown.turns, grown.nbytes, grown.steady, told
                    )
                )
        yield from sorted(found, key=lambda one: -one.bytes_per_step)

    # --- notes

    def _notes(self, peak: Moment) -> Iterator[str]:
        history = self._history
        events = self._snapshot.traces.get(history.device)
        before = next((one.nbytes for one in peak.lines if one.site == BEFORE), 0)
        if events is None or not len(events):
            yield "the snapshot has no history (`_record_memory_history` was not on): what follows is its own moment"
        elif before:
            yield (
                f"{format_size(before)} were allocated before the history began: turn `_record_memory_history` on"
                " before the model is made to see their lines"
            )
        if history.lost:
            yield f"{history.lost:,} events do not fit to each other: the history has gaps"
        if len(history.failures) > _MOST_FAILURES:
            yield f"memory ran out {len(history.failures)} times; the last {_MOST_FAILURES} are told"


def _branches(paths: Sequence[tuple[tuple[Site, ...], int]]) -> tuple[Branch, ...]:
    by_first: defaultdict[Site, list[tuple[tuple[Site, ...], int]]] = defaultdict(list)
    for sites, nbytes in paths:
        if sites:
            by_first[sites[0]].append((sites[1:], nbytes))
    made = [
        Branch(_label(site), sum(nbytes for _, nbytes in inside), _branches(inside))
        for site, inside in by_first.items()
    ]
    return tuple(sorted(made, key=lambda one: -one.nbytes))


def _label(site: Site) -> str:
    return words(site) or f"{site.function} {Path(site.path).name}:{site.line}"


def _by_lines(moment: Moment, missing: int) -> Remedy:
    chosen: list[tuple[Site, int]] = []
    total = 0
    for one in moment.lines:
        if total >= missing and chosen:
            break
        if one.site.line:
            chosen.append((one.site, one.nbytes))
            total += one.nbytes
    return Remedy(total, bool(chosen) and total >= missing, lines=tuple(chosen))


def _order(finding: Finding) -> tuple[str, int, str]:
    return str(finding.filename), finding.span.start.row, finding.code


def _explained(finding: Finding, how: str) -> Explained:
    fix = finding.fix
    return Explained(
        finding.code,
        str(finding.filename),
        finding.span.start.row,
        finding.message,
        fix.message if fix is not None else "",
        fix.applicability.value if fix is not None else "",
        finding.confidence.value,
        how,
    )

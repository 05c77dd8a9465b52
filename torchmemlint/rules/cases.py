"""What runs show, as findings: of the rules about graphs that are kept, and about passes that record one for nothing.

One cause is one finding: a graph that is kept is no finding beside the pass that should record none, and what other
rules have found of it is not told again.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import replace

from torchmemlint.codes import OF_GRAPHS, OF_PASSES
from torchmemlint.doubts import Claim, Confidence, Doubt, is_guess, is_sure, ordered
from torchmemlint.findings import Evidence, Finding, Fix, Severity, Span
from torchmemlint.flow.domain.manners import How, Stored
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.reasons import Reason
from torchmemlint.flow.facts import FileFacts
from torchmemlint.knowledge import versions
from torchmemlint.rules import registry
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.detaching import detach_argument, detach_given, detach_stored, detach_written
from torchmemlint.rules.guarding import without_gradients
from torchmemlint.rules.listed import whole
from torchmemlint.rules.regions import merged
from torchmemlint.rules.told import Told
from torchmemlint.rules.volatile import asks_in_vain, without_asking

_CLAIMS = {"TML105": Claim.BACKWARD, "TML108": Claim.BACKWARD, "TML512": Claim.HELD, "TML807": Claim.HELD}
_APART = frozenset(  # worded by their rules, and told whatever else is found
    (
        "TML105 TML107 TML108 TML109 TML110 TML111 TML112 TML113 TML114 TML202 TML204 TML205 TML207 TML301 "
        "TML302 TML401 TML402 TML403 TML404 TML405 TML406 TML407 TML501 TML502 TML503 TML504 TML506 TML508 "
        "TML510 TML511 TML512 TML601 TML602 TML603 TML605 TML702 TML801 TML802 TML803 TML804 TML805 TML806 TML807"
    ).split()
)
_OF_CHECKPOINTS = frozenset({"TML504", "TML506"})
_HELD = {  # what happens at the place of a finding
    "TML101": "added up here",
    "TML102": "stored here",
    "TML103": "stored here",
    "TML104": "carried into the next iteration",
    "TML106": "stored by the hook",
    "TML701": "stored here",
}
CODES = OF_GRAPHS | OF_PASSES | _APART
_TELL_OF_WASTED = OF_PASSES | {"TML202", "TML207"}
_NO_END = 1_000_000_000  # column


def findings(facts: FileFacts, codes: frozenset[str], before: Iterable[Finding]) -> Iterator[Finding]:
    """Yield what runs show, beyond what other rules have found before."""
    codes &= CODES
    if not codes:
        return
    wanted = [case for case in facts.cases() if case.code in codes]
    wanted += facts.overwriting() if "TML302" in codes else []
    told_apart = [(case, finding) for case in wanted if case.code in _APART and (finding := _tell(Told(facts, case)))]
    growing = {case.place for case, _ in told_apart if case.code == "TML112"}  # the graph that is needed for nothing
    told_apart = [(case, one) for case, one in told_apart if case.code != "TML105" or case.place not in growing]
    told_apart = [*_one_for_each_checkpoint(told_apart)]
    apart = [finding for _, finding in told_apart]
    others = [finding for finding in (*before, *apart) if finding.code in OF_GRAPHS | _TELL_OF_WASTED]
    told = _Findings(others)
    found: list[int] = []  # of them
    reports: list[_Report] = []  # of them
    # Passes come first, then what grows.
    wanted.sort(key=lambda case: (case.code in OF_GRAPHS, case.code in OF_GRAPHS and case.advice))
    wanted = [case for case in wanted if case.code not in _APART and not _shows(facts, case)]
    for report in (_Report(facts, case) for case in wanted):
        if report.is_told_by(told) or is_guess(report.doubts, _claim(report.case)):
            continue
        causes = report.causes(told)
        if not causes:
            found.append(told.add(report.told()))
            reports.append(report)
        for number in causes:  # that a graph is kept and never used shows that its pass is wasted
            one = told.all[number]
            if number >= len(others) and report.confidence.rank > one.confidence.rank:
                told.all[number] = replace(one, doubts=ordered(report.doubts))
    told_of = list(zip((told.all[number] for number in found), reports, strict=True))
    shown = [report.case for finding, report in told_of if finding.confidence is not Confidence.POSSIBLE]
    asked = [case for case, _ in told_apart if any(asks_in_vain(case, other) for other in shown)]
    yield from (finding for case, finding in told_apart if case not in asked)
    yield from (finding for finding, told in told_of if told.case.code in OF_GRAPHS)
    passes = [(finding, told) for finding, told in told_of if told.case.code in OF_PASSES]
    for finding in merged(passes):
        own = [told.case for _, told in passes if told.span == finding.span] if asked and finding.fix else []
        idle = [Told(facts, case) for case in asked if any(asks_in_vain(case, other) for other in own)]
        yield replace(finding, fix=without_asking(finding.fix, idle)) if finding.fix and idle else finding


def _one_for_each_checkpoint(told: list[tuple[Case, Finding]]) -> Iterator[tuple[Case, Finding]]:
    """Yield all but what is found of a checkpoint where something surer, or worse, is found of the same one."""
    of_one: dict[Place, list[tuple[Case, Finding]]] = {}
    for one in told:
        if one[0].code in _OF_CHECKPOINTS:
            of_one.setdefault(one[0].place, []).append(one)
        else:
            yield one
    for some in of_one.values():
        yield min(some, key=lambda one: (-one[1].confidence.rank, -one[1].severity.rank, one[0].code))


def _claim(case: Case) -> Claim:
    if case.code not in OF_GRAPHS:
        return Claim.WASTED
    grows = not case.advice and case.code != "TML104"  # what is carried is differentiated each time
    return Claim.SPENT if case.spent and grows else Claim.KEPT


def _tell(told: Told) -> Finding | None:
    claim = _CLAIMS.get(told.case.code)
    if claim is not None and is_guess(told.doubts, claim):
        return None
    rule = whole(registry.by_code()[told.case.code])
    assert isinstance(rule, TellingRule)
    return rule.tell(told) if versions.release_of(told.facts.target_torch) >= rule.since else None


def _shows(facts: FileFacts, case: Case) -> bool:
    """Does a file that others use run something once, to show what comes out?"""
    project = facts.program.project
    return not case.repeated and project is not None and project.is_used(facts.path)


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _naming(finding: Finding) -> Iterator[Evidence]:
    """Yield the evidence of a finding in its file: of a graph that is kept, but for the place that keeps it."""
    own = finding.span if finding.code in OF_GRAPHS else None
    return (link for link in finding.evidence if link.filename is None and link.span != own)


class _Findings:
    """What has been found so far, of graphs that are kept and of passes."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.all: list[Finding] = []
        self._on: dict[tuple[bool, int], _Row] = {}  # by whether a graph is kept, and the rows that it stands on
        self._naming: dict[tuple[bool, int], list[int]] = {}  # likewise, by the rows where what it names begins
        for one in findings:
            self.add(one)

    def add(self, finding: Finding) -> int:
        """Take up a finding, and return its number."""
        number = len(self.all)
        self.all.append(finding)
        kept = finding.code in OF_GRAPHS
        for span in {finding.statement, finding.span}:
            for row, first, end in _rows(span):
                self._on.setdefault((kept, row), _Row()).add(first, end, number)
        for row in {link.span.start.row for link in _naming(finding)}:
            self._naming.setdefault((kept, row), []).append(number)
        return number

    def on(self, span: Span, *, kept: bool) -> list[int]:
        """Return the numbers of those that stand in a stretch."""
        rows = ((self._on.get((kept, row)), first, end) for row, first, end in _rows(span))
        return sorted({number for row, first, end in rows if row is not None for number in row.within(first, end)})

    def naming(self, span: Span, *, kept: bool) -> list[int]:
        """Return the numbers of those that name what begins on a row of a stretch."""
        return sorted({number for row, *_ in _rows(span) for number in self._naming.get((kept, row), ())})


class _Row:
    """What stands on a row: from which column to which, and a number; thousands may, one after the other."""

    def __init__(self) -> None:
        self._stretches: list[tuple[int, int, int]] = []  # in order
        self._longest = 0

    def add(self, first: int, end: int, number: int) -> None:
        """Take up a stretch."""
        insort(self._stretches, (first, end, number))
        self._longest = max(self._longest, end - first)

    def within(self, first: int, end: int) -> Iterator[int]:
        """Yield the numbers of those that share a column with a stretch, or begin where it does."""
        for place in range(bisect_right(self._stretches, (end,)) - 1, -1, -1):
            begin, last, number = self._stretches[place]
            if begin + self._longest < first:
                return
            if last >= first:
                yield number


def _rows(span: Span) -> Iterator[tuple[int, int, int]]:
    """Yield the rows of a stretch, each with its first column and the one behind its last."""
    start, end = span.start, span.end
    for row in range(start.row, end.row + 1):
        yield row, start.column if row == start.row else 0, end.column if row == end.row else _NO_END


class _Report(Told):
    """One case as a finding, of a graph that is kept or a pass that records one for nothing."""

    def is_told_by(self, others: _Findings) -> bool:
        """Do other findings, which are as sure, say the same?"""
        case = self.case

        def surer(numbers: Iterable[int]) -> Iterator[Finding]:
            return (one for number in numbers if (one := others.all[number]).confidence.rank >= self.confidence.rank)

        def alike(span: Span) -> Iterator[Finding]:
            return surer(others.on(span, kept=case.code in OF_GRAPHS))

        own = [place for place in (case.place, *case.calls) if place.path == self.facts.path]
        if any(self._stands_at(other, place) for place in own for other in alike(self.span_of(place))):
            return True
        naming = [*others.naming(self.statement, kept=True), *others.naming(self.statement, kept=False)]
        if any(self._names(other, case.place) and self._is_all_from(other) for other in surer(naming)):
            return True
        forwards = [self.span_of(forward) for forward in case.runs if forward.path == self.facts.path]
        return any(forward.contains(other.statement) for forward in forwards for other in alike(forward))

    def _is_all_from(self, other: Finding) -> bool:
        """Does no other pass record what is kept here, if it is one that is reported?"""
        led = (self.case.place, *self.case.calls)
        if other.code in OF_GRAPHS or any(self._stands_at(other, place) for place in led):
            return True
        return all(self._begins_at(other, graph) for graph in self.case.graphs)

    def causes(self, others: _Findings) -> list[int]:
        """Return the findings, shown by default, of passes that should record none of the graphs that are kept here."""
        if self.case.code not in OF_GRAPHS:
            return []
        found = [list(self._beginning(graph, others)) for graph in self.case.graphs]
        return [number for some in found for number in some] if all(found) else []

    def _beginning(self, graph: Place, others: _Findings) -> Iterator[int]:
        if graph.path != self.facts.path:
            return
        around = self.facts.source.statement_span(self.span_of(graph))
        for number in sorted({*others.on(around, kept=False), *others.naming(around, kept=False)}):
            other = others.all[number]
            is_told = other.confidence is not Confidence.POSSIBLE or is_sure(other.doubts)
            if is_told and self._begins_at(other, graph):
                yield number

    def _begins_at(self, other: Finding, graph: Place) -> bool:
        return self._stands_at(other, graph) or self._names(other, graph)

    def _stands_at(self, other: Finding, place: Place) -> bool:
        whole = other.span if other.code == self.case.code == "TML701" else other.statement
        return place.path == self.facts.path and _overlap(whole, self.span_of(place))

    def _names(self, other: Finding, place: Place) -> bool:
        if place.path != self.facts.path:
            return False
        span = self.span_of(place)
        links = [link.span for link in _naming(other) if link.span.contains(span)]
        return bool(links) and any(map(self.facts.source.statement_span(span).contains, links))

    def told(self) -> Finding:
        """The finding."""
        case, rule = self.case, registry.by_code()[self.case.code]
        text = self.text_of(case.place)
        message = self._kept(text) if case.code in OF_GRAPHS else self._wasted(text)
        return self.finding(rule, message, self._evidence(), severity=self._severity(rule.severity), fix=self._fix())

    def _severity(self, highest: Severity) -> Severity:
        case = self.case
        if case.code == "TML104":
            return highest  # with its graph spent, the next backward raises
        if case.advice or case.making or not case.repeated:
            return Severity.ADVICE
        if case.code in OF_PASSES:
            if case.kept is not None:
                return Severity.ERROR
            return Severity.ADVICE if case.little else Severity.WARNING
        return Severity.WARNING if case.spent else highest

    def _kept(self, text: str) -> str:
        case = self.case
        if case.code == "TML104":
            if case.spent:
                return f"`{text}` is not detached between steps: the second `backward()` enters a freed graph"
            return f"`{text}` is not detached between steps: each `backward()` repeats all earlier steps"
        what = "graph nodes (CPU memory)" if case.spent else "autograd graph, with all activations, in GPU memory"
        brief = what if case.spent else "graph and activations (GPU memory)"
        if case.advice:
            return f"`{text}` keeps {'' if case.spent else 'an '}{what} until it is replaced"
        if case.code == "TML106":
            return f"`{text}` in a hook keeps its call's {brief}"
        if case.how is How.OUTPUT:
            return f"`{text}` is returned: every step's {brief} stay until the epoch ends"
        if case.code == "TML701":
            return f"`{text}` keeps every step's {brief} until the epoch ends"
        each = "iteration" if case.loop is not None else "call"
        return f"`{text}` keeps every {each}'s {what}"

    def _wasted(self, text: str) -> str:
        match self.case.reason:
            case Reason.DETACHED if self.case.through:
                return f"all that is computed from `{text}` is detached, so its graph is wasted"
            case Reason.DETACHED if Doubt.PENDING in self.doubts:
                return f"what is used of `{text}` is detached, so its graph is wasted"
            case Reason.DETACHED:
                return f"all outputs of `{text}` are detached, so its graph is wasted"
            case Reason.UNTRAINED:
                return f"no optimizer trains the network of `{text}`, but gradients are enabled"
            case Reason.READ if self.case.through:
                return f"no backward reaches the results of `{text}`, but gradients are enabled"
            case Reason.READ:
                return f"only numbers are read from `{text}`, but gradients are enabled"
            case Reason.EVALUATING:
                return f"`{text}` runs in eval mode with gradients enabled; no backward follows"
            case Reason.UNUSED:
                return f"the result of `{text}` is not used, but gradients are enabled"
        return f"`{text}` predicts with gradients enabled; no backward follows"

    def _evidence(self) -> Iterator[Evidence]:
        case = self.case
        if case.code in OF_PASSES:
            yield self.link(case.place, "the forward pass runs with gradients enabled")
        if case.switched is not None:
            yield self.link(case.switched, "eval mode is set here")
        if case.kept is not None:
            yield self.link(case.kept, "keeps its graph across iterations")
        yield from self.begun()
        yield from sorted(self._freed_and_held(), key=lambda link: (link.filename is None, link.span.start))
        yield from self.around("repeated by this loop")
        if case.within is not None:
            yield self.link(case.within, "keeps what it is given")
        yield from self.called()

    def _freed_and_held(self) -> Iterator[Evidence]:
        case = self.case
        if case.code in OF_GRAPHS:
            yield self.link(case.place, "returned here" if case.how is How.OUTPUT else _HELD[case.code])
        if case.backward is not None:
            yield self.link(case.backward, "backward frees the activations, the graph's nodes stay")

    def _is_of_this_iteration(self) -> bool:
        """Do statements before the one that carries a graph on begin such graphs, and not the statement itself?"""
        loop, own = self.case.loop, self.statement
        rows = {place.span[0] for place in self.case.graphs if place.path == self.case.place.path}
        before = loop is not None and any(loop.span[0] <= row < own.start.row for row in rows)
        return before and not any(own.start.row <= row <= own.end.row for row in rows)

    def _fix(self) -> Fix | None:
        """A fix, safe where the case is certain and nothing else is changed by it."""
        case = self.case
        certain = is_sure(self.doubts)
        if case.code in OF_PASSES:
            return without_gradients(self, wholly=case.code == "TML201")
        piece = self.piece
        if piece is None:
            return None
        if case.code == "TML104":
            return detach_given(piece, self.span) if case.spent and not self._is_of_this_iteration() else None
        if case.stored is Stored.HOLDER:
            return None
        if case.how is How.OUTPUT:
            return detach_written(piece, self.span, safe=certain and case.stored is Stored.TENSOR)
        if case.within is not None:
            return detach_argument(piece, self.span)
        return detach_stored(piece, self.span, safe=certain and case.stored is Stored.TENSOR)

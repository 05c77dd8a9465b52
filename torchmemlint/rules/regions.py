"""Regions of waste: passes that one fix runs with gradients off are one finding, of the surest and largest of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from torchmemlint.amounts import total
from torchmemlint.findings import Applicability, Evidence, Finding, Fix
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.reasons import Reason
from torchmemlint.rules.guarding import around_function, around_statements
from torchmemlint.rules.told import Told

Pass = tuple[Finding, Told]


def merged(passes: Iterable[Pass]) -> Iterator[Finding]:
    """Yield the findings of passes that are waste, one for each region."""
    functions: dict[Place, list[Pass]] = {}
    apart: list[Pass] = []
    for one in passes:
        case = one[1].case
        if case.function is not None and (case.reason is Reason.ROLE or not case.beside):
            functions.setdefault(case.function, []).append(one)
        else:
            apart.append(one)
    for region in functions.values():
        runs = list(_runs(region))
        is_narrow = len(runs) == 1 and all(finding.code != "TML201" for finding, _ in region)
        fix = around_function(_first(region)[1]) if len(region) > 1 and not is_narrow else None
        if fix is not None or any(told.case.reason is Reason.ROLE for _, told in region):
            yield _finding(region, fix)
        else:
            apart += region
    for run in _runs(apart):
        fix = around_statements([told for _, told in run]) if len(run) > 1 else None
        if fix is not None:
            yield _finding(run, fix)
        else:
            yield from (finding for finding, _ in run)


def _runs(passes: Iterable[Pass]) -> Iterator[list[Pass]]:
    """Yield passes in statements of a block that follow each other, as sure as each other and with fixes as safe."""
    run: list[Pass] = []
    for one in sorted(passes, key=lambda one: one[0].span.start):
        if run and not _follows(run[-1], one):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _follows(one: Pass, other: Pass) -> bool:
    above, below = one[0].statement, other[0].statement
    between = one[1].facts.source.rows[above.end.row : below.start.row - 1]
    return (
        one[0].confidence is other[0].confidence
        and _trusted(one[0]) is _trusted(other[0]) is not Applicability.HINT
        and above.end.row < below.start.row
        and above.start.column == below.start.column
        and all(not line.strip() or line.lstrip().startswith("#") for line in between)
    )


def _trusted(finding: Finding) -> Applicability:
    return Applicability.HINT if finding.fix is None else finding.fix.applicability


def _first(passes: list[Pass]) -> Pass:
    def key(one: Pass) -> tuple[int, int, bool, Place]:
        finding, told = one
        return -finding.confidence.rank, -finding.severity.rank, told.case.little, told.case.place

    return min(passes, key=key)


def _finding(passes: list[Pass], fix: Fix | None) -> Finding:
    finding, first = _first(passes)
    alike = [told for other, told in passes if told is not first and other.confidence is finding.confidence]
    if not alike:
        return replace(finding, fix=fix or finding.fix)
    own, *further = finding.evidence
    return replace(
        finding,
        severity=max((other.severity for other, _ in passes), key=lambda severity: severity.rank),
        message=f"{finding.message} (and {len(alike)} more)",
        amount=total([other.amount for other, _ in passes]),
        evidence=(own, *map(_also, alike), *further),
        fix=fix or finding.fix,
    )


def _also(told: Told) -> Evidence:
    return told.link(told.case.place, f"`{told.text_of(told.case.place)}` does, too")

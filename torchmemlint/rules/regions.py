"""Regions of waste: passes that one fix runs with gradients off are one finding, of the surest and largest of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from torchmemlint.amounts import total
from torchmemlint.findings import Applicability, Evidence, Finding, Fix
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.reasons import Reason
from torchmemlint.rules.branching import around_branches, branching
from torchmemlint.rules.guarding import around_function, around_statements
from torchmemlint.rules.told import Told
from torchmemlint.syntax import statements

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
        fix = fix and replace(fix, narrower=_apart(runs))
        if fix is not None or any(told.case.reason is Reason.ROLE for _, told in region):
            yield _finding(region, fix)
        else:
            apart += region
    for runs in _branches(list(_runs(apart))):
        run = [one for alike in runs for one in alike]
        fix = _whole(runs)
        if fix is not None:
            yield _finding(run, fix)
        else:
            yield from (finding for finding, _ in run)


def _whole(runs: list[list[Pass]]) -> Fix | None:
    """One fix of all passes of some runs; None if each is by itself."""
    apart = _apart(runs)
    around = around_branches([told for run in runs for _, told in run])
    if around is not None:
        return replace(around, narrower=apart)
    return apart if len(runs) == 1 and len(runs[0]) > 1 else None


def _apart(runs: list[list[Pass]]) -> Fix | None:
    """A fix that puts each run under a block of its own; None if one of them cannot be."""
    fixes = [around_statements([told for _, told in run]) for run in runs]
    made = [fix for fix in fixes if fix is not None and fix.edits]
    if not made or len(made) < len(fixes):
        return None
    least = max(made, key=lambda fix: fix.applicability is not Applicability.SAFE)
    return replace(least, edits=tuple(dict.fromkeys(edit for fix in made for edit in fix.edits)))


def _branches(runs: list[list[Pass]]) -> Iterator[list[list[Pass]]]:
    """Yield the runs, those together that stand in the branches of one `if`, and are as sure and as safe."""
    found: dict[object, list[list[Pass]]] = {}
    for number, run in enumerate(runs):
        finding, told = run[0]
        head = branching(told)
        alike = (head, finding.confidence, _trusted(finding)) if head is not None else number
        found.setdefault(alike, []).append(run)
    yield from found.values()


def _runs(passes: Iterable[Pass]) -> Iterator[list[Pass]]:
    """Yield passes in statements of a block that follow each other, as sure as each other and with fixes as safe."""
    run: list[Pass] = []
    for one in sorted(passes, key=lambda one: one[0].span.start):
        if run and not _follows(run, one):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _follows(run: list[Pass], other: Pass) -> bool:
    one = run[-1]
    above, below = one[0].statement, other[0].statement
    rows = one[1].facts.source.rows
    between = rows[above.end.row : below.start.row - 1]
    return (
        one[0].confidence is other[0].confidence
        and _trusted(one[0]) is _trusted(other[0]) is not Applicability.HINT
        and above.end.row < below.start.row
        and above.start.column == below.start.column
        and (not _has_code(between) or _goes_on([told for _, told in run], below.start.row))
    )


def _has_code(rows: Iterable[str]) -> bool:
    return any(row.strip() and not row.lstrip().startswith("#") for row in rows)


def _goes_on(run: list[Told], row: int) -> bool:
    """Do the statements from passes to that in a row only compute with what these assign, not differentiated?"""
    facts, source, first = run[0].facts, run[0].facts.source, run[0].statement
    statement = statements.innermost(source.statements, first, source.rows)
    if any(told.case.reason not in (Reason.DETACHED, Reason.READ) for told in run) or statement is None:
        return False
    made, passes = statements.assigned(statement), {told.statement.start.row for told in run}
    torch = {name for name, qualified in facts.program.imported.items() if qualified == "torch"}
    for one in statements.behind(source.statements, first, source.rows):
        if one.lineno >= row:
            return one.lineno == row
        computes = isinstance(one, ast.Assign) and _is_computed(one.value, made, torch)
        if not statements.assigned(one) or not (computes or one.lineno in passes):
            return False
        made |= statements.assigned(one)
    return False


def _is_computed(value: ast.expr, made: set[str], torch: set[str]) -> bool:
    """Is a value an operation, or a method of some variables or of the module `torch`, which runs nothing else?"""

    def among(parts: list[ast.expr]) -> bool:
        computed = [_is_computed(part, made, torch) for part in parts]
        plain = [not any(isinstance(node, ast.Call) for node in ast.walk(part)) for part in parts]
        return any(computed) and all(a or b for a, b in zip(computed, plain, strict=True))

    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module)), args=given) if module in torch:
            return among([*given, *(one.value for one in value.keywords)])
        case ast.Call(func=ast.Attribute(value=of)) | ast.Subscript(value=of):
            others = {node for node in ast.walk(value) if isinstance(node, ast.Call)} - {value, *ast.walk(of)}
            return not others and _is_computed(of, made, torch)
        case ast.BinOp(left=left, right=right):
            return among([left, right])
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return among(parts)
        case ast.UnaryOp(operand=of):
            return _is_computed(of, made, torch)
    return isinstance(value, ast.Name) and value.id in made


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
        message=f"{finding.message} (1 of {len(alike) + 1} passes)",
        amount=total([other.amount for other, _ in passes]),
        evidence=(own, *map(_also, alike), *further),
        fix=fix or finding.fix,
    )


def _also(told: Told) -> Evidence:
    return told.link(told.case.place, f"so does `{told.text_of(told.case.place)}`")

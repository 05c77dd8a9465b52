"""Volatile: the argument of old torch that asked for no graph and has no effect now, beside a pass that records one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from torchmemlint.codes import OF_PASSES
from torchmemlint.findings import Edit, Fix
from torchmemlint.flow.domain.manners import Remark
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.rules.told import Told
from torchmemlint.syntax import statements

_NAME = re.compile(r"\w+")


def asks_in_vain(case: Case, wasted: Case) -> bool:
    """Is it asked, without effect, that no graph is recorded, before a pass that is reported to record one?"""
    if case.remark is not Remark.VOLATILE or wasted.code not in OF_PASSES or case.place > wasted.place:
        return False
    return wasted.function is None or wasted.function.contains(case.place)


def without_asking(fix: Fix, idle: Sequence[Told]) -> Fix:
    """A fix of a pass that also removes the argument which asked in vain for what the fix does."""
    edits = dict.fromkeys(edit for told in idle if _is_covered(told, fix) for edit in _asking(told))
    if not fix.edits or not edits:
        return fix
    return replace(fix, edits=(*fix.edits, *edits), narrower=fix.narrower and without_asking(fix.narrower, idle))


def _asking(told: Told) -> tuple[Edit, ...]:
    return told.call.without("volatile") if told.call is not None else ()


def _is_covered(told: Told, fix: Fix) -> bool:
    """Does a fix cover the function, or a statement that takes what the one assigns which asks in vain?"""
    if any(edit.content.lstrip().startswith("@") for edit in fix.edits):
        return True
    source = told.facts.source
    assigned = statements.assigned(statements.innermost(source.statements, told.span, source.rows))
    rows = {edit.span.start.row for edit in fix.edits if "import" not in edit.content}
    taken = " ".join(source.rows[row - 1] for row in range(min(rows, default=1), max(rows, default=0) + 1))
    return not assigned.isdisjoint(_NAME.findall(taken))

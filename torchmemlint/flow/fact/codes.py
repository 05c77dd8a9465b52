"""Codes: the rules for graphs that are kept, and for passes that record one for nothing."""

from __future__ import annotations

from torchmemlint.flow.domain.manners import How
from torchmemlint.flow.fact.reasons import Pass, Reason
from torchmemlint.flow.fact.retention import Fate, Retention

_OF_PASSES = {Reason.DETACHED: "TML203", Reason.UNTRAINED: "TML206"}


def code_of_pass(one: Pass) -> str:
    """Return the code of a pass."""
    return "TML201" if one.reason is None else _OF_PASSES.get(one.reason, "TML201")


_GROWING = {
    How.SUM: "TML101",
    How.COLLECTION: "TML102",
    How.HOOK: "TML106",
    How.CACHE: "TML103",
    How.OUTPUT: "TML701",
}


def code_of_kept(kept: Retention) -> str | None:
    """Return the code of what keeps a graph; None where that is as it ought to be."""
    if kept.grows:
        if kept.how is How.SUM and kept.fate is Fate.EACH:
            return "TML104"
        if kept.fate in (Fate.EACH, Fate.LATER):
            return None
        return _GROWING[kept.how]
    if kept.fate is Fate.NEVER and kept.useless:
        return "TML106" if kept.how is How.HOOK else "TML103"
    return None

"""Wasting: at which of the calls that led to a wasted pass it is told, and with which doubts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.fact.outcomes import Case, Outcome, Waste
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.reasons import Reason
from torchmemlint.flow.fact.sequence import shared_with

_BY_CALLERS = frozenset({Doubt.EVALUATED, Doubt.EVALUATED_ONCE, Doubt.ROLE, Doubt.CALLER})  # they decide on the result


def placed(waste: Waste, shown: Outcome, outcomes: Sequence[Outcome], is_used: Callable[[Place], bool]) -> Case | None:
    """Return a waste that some runs show as the case at one of its calls; None where all lead to what is needed.

    `outcomes` are what these runs and those of the files that import them show.
    """
    unused = [n for n, call in enumerate(waste.calls) if not is_used(call)]
    if not unused:
        return None
    ahead = {function for one in outcomes for function in one.ahead}
    unused = [n for n in unused if waste.functions[n] not in ahead] or unused
    own = [n for n in unused if waste.own[n]] or unused
    if waste.case.reason is not Reason.UNUSED:  # what is dropped at once no run could need
        apart = shared_with(waste.calls, (way for one in outcomes for way in one.cut))
        own = [n for n in own if n >= apart] or own
    if _is_kin_used(waste, outcomes):
        return None
    used = (place for one in outcomes for place in itertools.chain(one.used, one.open, one.needing))
    case = waste.at(own[0], used)
    function = waste.functions[0]
    if waste.entry and function is not None and _is_quiet(function, [one for one in outcomes if one is not shown]):
        return replace(case, doubts=case.doubts | {Doubt.UNDIFFERENTIATED})
    return case


def _is_kin_used(waste: Waste, outcomes: Sequence[Outcome]) -> bool:
    """Is a method called through its base classes, and what another class gives there differentiated?

    Who trains one of these classes trains the others by the same code.
    """
    if _BY_CALLERS.isdisjoint(waste.case.doubts):
        return False
    return any(method.contains(place) for one in outcomes for place in one.used for method in waste.kin)


def _is_quiet(function: Place, others: Sequence[Outcome]) -> bool:
    """Do other files call the function in which a pass stands with gradients off alone?

    What leads to the pass with gradients on is a method, then, that nothing calls.
    """
    modes = {mode for one in others for called in (one.called, one.left) if (mode := called.get(function)) is not None}
    return modes == {Mode.OFF}

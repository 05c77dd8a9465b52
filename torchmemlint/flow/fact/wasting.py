"""Wasting: at which of the calls that led to a wasted pass it is told, and with which doubts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.fact.outcomes import Case, Outcome, Waste
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.reasons import Reason
from torchmemlint.flow.fact.sequence import shared_with

_BY_CALLERS = frozenset({Doubt.EVALUATED, Doubt.EVALUATED_ONCE, Doubt.ROLE, Doubt.CALLER})  # they decide on the result


def told(outcomes: Sequence[Outcome], path: Path, is_used: Callable[[Place], bool]) -> Iterator[tuple[Case, str]]:
    """Yield the wastes that a file has to do with as cases, each with the method by which its run began.

    `outcomes` are what the runs of the file show, and of those that import it. `is_used`: may a call lead to what is
    needed?
    """
    found: list[tuple[Outcome, Waste, int]] = []
    for one in outcomes:
        for waste in one.wasted:
            if any(call.path == path for call in waste.calls):
                number = _told_at(waste, outcomes, is_used)
                if number is not None:
                    found.append((one, waste, number))
    used = _needing_gradients(outcomes, {waste.calls[number] for _, waste, number in found})
    for one, waste, number in found:
        yield _placed(waste, number, one, outcomes, used), waste.entry


def _told_at(waste: Waste, outcomes: Sequence[Outcome], is_used: Callable[[Place], bool]) -> int | None:
    """Return the number of the call at which a waste is reported; None where all lead to what is needed."""
    unused = [n for n, call in enumerate(waste.calls) if not is_used(call)]
    if not unused or _is_kin_used(waste, outcomes):
        return None
    ahead = {function for one in outcomes for function in one.ahead}
    unused = [n for n in unused if waste.functions[n] not in ahead] or unused
    own = [n for n in unused if waste.own[n]] or unused
    if waste.case.reason is not Reason.UNUSED:  # what is dropped at once no run could need
        apart = shared_with(waste.calls, (way for one in outcomes for way in one.cut))
        own = [n for n in own if n >= apart] or own
    return own[0]


def _needing_gradients(outcomes: Sequence[Outcome], wasted: Set[Place]) -> set[Place]:
    """Return what may need gradients. A pass that one run leaves open does not if it is waste in another."""
    found = set[Place]()
    for one in outcomes:
        found |= one.used | one.needing
        found.update(itertools.chain.from_iterable(chain for chain in one.open if wasted.isdisjoint(chain)))
    return found


def _placed(waste: Waste, number: int, shown: Outcome, outcomes: Sequence[Outcome], used: Set[Place]) -> Case:
    """Return a waste that some runs show as the case at one of its calls. `used` may need gradients."""
    case = waste.at(number, used)
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

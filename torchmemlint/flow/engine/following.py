"""What a run has called: where it is cut short, all that must be run by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from torchmemlint.flow.domain.effects import Differentiate, Effect, Forward, Step, each
from torchmemlint.flow.domain.frame import Summary
from torchmemlint.flow.domain.heap import Mode, ModeOf
from torchmemlint.flow.ir.ops import Function

T = TypeVar("T")
_TRAINING = frozenset({Differentiate, Forward, Step})
Called = tuple[Summary, Mode | ModeOf]


def within(calls: Iterable[Called]) -> Iterator[tuple[Function, Mode | ModeOf]]:
    """Yield the functions that some calls run, themselves and through others, each with the modes that it is run in."""
    todo = list(calls)
    seen = set(todo)
    for summary, mode in todo:
        yield summary.function, mode
        for inner, own in summary.followed.items():
            call = (inner, mode if own is Mode.CALLER else own)
            if call not in seen:
                seen.add(call)
                todo.append(call)


def note(called: dict[T, Mode], calls: Iterable[tuple[T, Mode | ModeOf]]) -> None:
    """Note what was called by a run, in the mode in which most is recorded."""
    for function, mode in calls:
        known = called.get(function)
        if mode is Mode.CALLER:
            mode = Mode.ON  # as it is where nothing turns it off
        elif not isinstance(mode, Mode):
            mode = Mode.EITHER
        called[function] = mode if known in (None, Mode.OFF) or mode is Mode.ON else known


def trains(effects: Iterable[Effect]) -> bool:
    """Do some effects run a network, or train it?"""
    return any(type(effect) in _TRAINING for effect in each(effects))

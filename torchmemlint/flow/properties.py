"""Properties of the project's classes, which code reads like attributes: walked once, and recalled from then on.

A trainer's `self.model` and `self.optimizer` may build what they give when they are first read. To walk that at each
of the hundred readings would cost more than all else.
"""

from __future__ import annotations

from collections.abc import Callable

from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import Function
from torchmemlint.flow.values import (
    ClassValue,
    Constant,
    External,
    FunctionValue,
    Instance,
    Known,
    Loops,
    Mode,
    ModuleValue,
    Unknown,
    Value,
)
from torchmemlint.immutable import immutable

# Not tensors, and what holds them: those are computed anew each time.
_LASTING = (ModuleValue, Instance, Known, Constant, ClassValue, FunctionValue, External, Unknown)
# Of the others, it matters in which loop they are made.
_LOOSE = (Constant, ClassValue, External, Unknown)


@immutable()
class Reading:
    """What a property has given, and the state of things: what may change it has not happened since."""

    value: Value
    assigned: int  # times that the attributes which it mentions were assigned
    spent: int  # graphs that backward passes had freed
    loops: Loops

    def is_good(self, assigned: int, spent: int, loops: Loops) -> bool:
        """May it be recalled?"""
        there = isinstance(self.value, _LOOSE) or self.loops == loops
        return there and (self.assigned, self.spent) == (assigned, spent)


def is_one(function: Function) -> bool:
    """Is a method read, and not called?"""
    return not {"property", "cached_property"}.isdisjoint(function.decorator_texts())


def result(it: Interpreter, callee: FunctionValue, mode: Mode, walk: Callable[[], Value]) -> Value:
    """What a call returns, by a walk of the function unless it is a property whose value is known."""
    owner = callee.bound
    if not isinstance(owner, ModuleValue | Instance) or not is_one(callee.function):
        return walk()
    key = (callee.function, owner.oid, mode)
    known = it.readings.get(key)
    if known is not None and known.is_good(_assigned(it, callee, owner.oid), len(it.spent_log), it.frame.loops):
        return known.value
    before = _done(it)
    value = walk()
    if isinstance(value, _LASTING) and _done(it) == before:
        spent, loops = len(it.spent_log), it.frame.loops
        it.readings[key] = Reading(value, _assigned(it, callee, owner.oid), spent, loops)
    return value


def _assigned(it: Interpreter, callee: FunctionValue, owner: int) -> int:
    return sum(it.assigned[owner, name] for name in callee.function.outline.names)


def _done(it: Interpreter) -> tuple[Mode, int, int]:
    """What a walk leaves behind besides values."""
    return it.state.mode, it.computed, len(it.spent_log)

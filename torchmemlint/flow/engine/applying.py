"""The application of what a function does to a call of it."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.frame import Frame, Summary
from torchmemlint.flow.domain.heap import Mode, State
from torchmemlint.flow.domain.memory import computed, sources_of
from torchmemlint.flow.domain.refs import Loop, Point
from torchmemlint.flow.domain.values import NOTHING, Value
from torchmemlint.flow.engine.binding import Binding
from torchmemlint.flow.engine.inlining import inline
from torchmemlint.flow.engine.substitution import Substitution
from torchmemlint.flow.ir.ops import Function

_DEPTH = 24  # calls within calls
_INIT = "__init__"  # what an object makes of its own kind, as it is made, is made like it
_REPEATS = 2  # of one function within itself: recursion through data or callbacks


def apply(
    frame: Frame,
    state: State,
    function: Function,
    bound: Binding,
    arguments: Arguments,
    point: Point,
    yields: bool = False,
) -> Value:
    """Apply the summary of a function. A call within itself passes on its arguments."""
    machine = frame.machine
    too_much = machine.is_exhausted() or len(machine.active) >= _DEPTH
    frame.cut = frame.cut or too_much
    repeats = machine.active.count(function) >= (1 if function.name == _INIT else _REPEATS)
    if repeats and machine.is_unfinished(function):
        return NOTHING  # the least that a call within itself may give
    if too_much:
        machine.leave(function, state.mode)
    if too_much or repeats:
        given = sources_of(state, arguments.all())
        return Value(graph=computed(frame, state, given, point), open=True)
    summary = machine.summary(function, bound, state)
    if summary is None:
        return NOTHING  # as above; the second round sees more
    frame.cut = frame.cut or (summary.cut and machine.may_train(summary))
    if frame.followed.get(summary) is not Mode.ON:
        frame.followed[summary] = state.mode
    machine.active.append(function)
    try:
        if summary.escapes and not yields and machine.active.count(function) == 1:
            return inline(frame, state, function, bound, point)
        if not yields and machine.is_to_repeat(frame, function):
            return _repeated(frame, state, summary, bound, point)
        return Substitution(frame, state, bound, point).apply(summary, yields)
    finally:
        machine.active.pop()


def _repeated(frame: Frame, state: State, summary: Summary, bound: Binding, point: Point) -> Value:
    """Apply the summary of a function that calls itself, directly or not: again and again."""
    results: list[Value] = []

    def body(inside: State) -> None:
        results.append(Substitution(frame, inside, bound, point).apply(summary))

    frame.machine.run_loop(frame, state, Loop.of(summary.function, (point.site, *point.context)), body)
    return results[-1]

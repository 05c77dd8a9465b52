"""The application of what a function does to a call of it."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.frame import Frame, Summary, fresh_temps
from torchmemlint.flow.domain.heap import Mode, State, renew
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.memory import computed, sources_of
from torchmemlint.flow.domain.refs import CONTEXT_LIMIT, Input, Loop, Object, Point, Ref
from torchmemlint.flow.domain.values import NOTHING, UNKNOWN, Value
from torchmemlint.flow.engine import decorating
from torchmemlint.flow.engine.binding import Binding
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
    if too_much or function.name == _INIT:
        machine.give(function, bound)  # its object's methods may have to be run by themselves
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
        result = Substitution(frame, state, bound, point).apply(summary, yields)
        if machine.is_exhausted():
            machine.give(function, bound)
        return result
    finally:
        machine.active.pop()


def _repeated(frame: Frame, state: State, summary: Summary, bound: Binding, point: Point) -> Value:
    """Apply the summary of a function that calls itself, directly or not: again and again."""
    results: list[Value] = []

    def body(inside: State) -> None:
        results.append(Substitution(frame, inside, bound, point).apply(summary))

    frame.machine.run_loop(frame, state, Loop.of(summary.function, (point.site, *point.context)), body)
    return results[-1]


def inline(frame: Frame, state: State, function: Function, bound: dict[Ref, Value], point: Point) -> Value:
    """Run a function in its caller's state, and return what it gives.

    Its summary would not do where it hands out what it has made, or functions which see that: only in its caller is
    it known what they do between its own operations.
    """
    context = (point.site, *point.context)[:CONTEXT_LIMIT]
    own = Object.of(Kind.FRAME, function, context)
    renew(state, own)
    inner = Frame(function, frame.machine, own, frame.provenance, context=context, temps=fresh_temps(function))
    inner.loops, inner.writes, inner.erased, inner.known = frame.loops, frame.writes, frame.erased, frame.known
    inner.bounded, inner.keys, inner.reads, inner.inside = frame.bounded, frame.keys, frame.reads, frame.inside
    inner.over = frame.over
    inner.surveying, inner.followed = frame.surveying, frame.followed
    inner.items = frame.items
    inner.hooks, inner.calls, inner.entry, inner.often = frame.hooks, frame.calls, frame.entry, frame.often
    # The caller's variables stay in the state, out of reach: what they hold is renewed and joined with everything else.
    prefix = f"<{len(context)} {frame.function.name}>"
    state.variables = {prefix + name: value for name, value in state.variables.items()}
    state.heap.put(own, Special.OUTER, bound.get(Input.of(function, Special.OUTER), UNKNOWN))
    for parameter in function.parameters:
        value = bound.get(Input.of(function, parameter.name), UNKNOWN)
        if parameter.name in function.shared:
            state.heap.put(own, parameter.name, value)
        else:
            state.variables[parameter.name] = value
    mode, outer = decorating.mode_of(frame.machine.index, function), state.mode
    state.mode = mode or outer
    inner.machine.run_body(inner, state)
    if mode is not None:
        state.mode = outer
    state.variables = {n[len(prefix) :]: v for n, v in state.variables.items() if n.startswith(prefix)}
    state.dead = False
    for effect in inner.effects:
        frame.log(effect)
    frame.cut, frame.shortened = frame.cut or inner.cut, frame.shortened or inner.shortened
    return inner.returned

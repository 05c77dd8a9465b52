"""Running a function as a part of its caller, where its summary would not do.

A function that hands out functions which see what it has made (hooks, callbacks) is run in place: only there it is
known when those are called, between its own operations.
"""

from __future__ import annotations

from torchmemlint.flow.domain.frame import Frame, fresh_temps
from torchmemlint.flow.domain.heap import State, renew
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import CONTEXT_LIMIT, Input, Object, Point, Ref
from torchmemlint.flow.domain.values import UNKNOWN, Value
from torchmemlint.flow.engine import decorating
from torchmemlint.flow.ir.ops import Function


def inline(frame: Frame, state: State, function: Function, bound: dict[Ref, Value], point: Point) -> Value:
    """Run a function in its caller's state, and return what it gives."""
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

"""Decorators of the project that turn gradients off: what they return runs what they are given in a mode of its own.

`return torch.no_grad()(function)`, also chosen of several, and a function within the decorator that calls what it is
given under `torch.no_grad()`. What they do is read off their text: so it is known of a class of any file.
"""

from __future__ import annotations

from functools import lru_cache

from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.domain.refs import Code
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import layout_of, operations
from torchmemlint.flow.ir.control import Return
from torchmemlint.flow.ir.defuse import DefUse, definitions
from torchmemlint.flow.ir.ops import Function
from torchmemlint.flow.ir.places import Temp
from torchmemlint.flow.models import guards
from torchmemlint.flow.names.index import Index
from torchmemlint.knowledge.contracts import Contracts

_WRAPS = "functools.wraps"


def mode_of(index: Index, function: Function) -> Mode | None:
    """Return the mode that a function's decorators set, also those of the project."""
    found = guards.mode_of(index.contracts, function)
    for decorator in function.decorators if found is None else ():
        if decorator.applied:
            value = index.in_unit(function.unit, decorator.name) or index.resolve(decorator.name)
            for r in value.refs if value is not None else ():
                if type(r) is Code and _turns_off(index.contracts, r.function, decorator.called):
                    return Mode.OFF
    return found


@lru_cache(maxsize=256)
def _turns_off(known: Contracts, function: Function, called: bool) -> bool:
    """Does a decorator turn gradients off, or a function that is called to get one?"""
    returned = [op.src for op in operations(function.body) if isinstance(op, Return)]
    flow = definitions(function)
    return bool(returned) and all(_is_quiet(known, flow, temp, called) for temp in returned)


def _is_quiet(known: Contracts, flow: DefUse, temp: Temp, called: bool) -> bool:
    """Is it a function that runs without gradients, or one that makes such ones?"""
    if temp in flow.moved:
        return all(_is_quiet(known, flow, one, called) for one in flow.moved[temp])
    match flow.made.get(temp):
        case ops.Load(name=name):
            inner = [f for f in flow.function.nested if f.name == name.text]
            if inner:
                return all(_turns_off(known, f, False) if called else _calls_quietly(known, flow, f) for f in inner)
            bound = flow.bound.get(name.text, [])
            return bool(bound) and all(_is_quiet(known, flow, one, called) for one in bound)
        case ops.Call(callee=callee, arguments=[first, *_]) if flow.called(flow.made.get(callee)) == _WRAPS:
            return _is_quiet(known, flow, first.temp, called)
        case ops.Call(callee=callee, arguments=[_]) if not called:
            return _is_context(known, flow, callee)
    return called and _is_context(known, flow, temp)


def _is_context(known: Contracts, flow: DefUse, temp: Temp) -> bool:
    """Is it what `torch.no_grad()` gives, or a context like it, whichever a program chooses?"""
    match flow.made.get(temp):
        case ops.Call(callee=callee) if callee in flow.moved:
            return all(flow.name(one) in known.off for one in flow.moved[callee])
        case ops.Call() | ops.CallMethod() as call:
            return guards.mode_named(known, flow.called(call), ()) is Mode.OFF
    return False


def _calls_quietly(known: Contracts, outer: DefUse, function: Function) -> bool:
    """Does a function call what its decorator is given with gradients off, and only so?"""
    given = {parameter.name for parameter in outer.function.parameters}
    flow, layout = definitions(function), layout_of(function)
    calls = [op for op in operations(function.body) if isinstance(op, ops.Call) and flow.path(op.callee) in given]
    if guards.mode_of(known, function) is Mode.OFF:
        return bool(calls)
    return bool(calls) and all(any(_is_context(known, flow, c) for c in layout.entered(op)) for op in calls)

"""Entries: a file is run as a program, and what nobody in the project calls is run from outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain.effects import Point
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import State
from torchmemlint.flow.domain.refs import Code, Globals
from torchmemlint.flow.domain.values import Value, of
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import lives, roles
from torchmemlint.flow.fact.inputs import enter
from torchmemlint.flow.fact.logs import Run, logged
from torchmemlint.flow.ir.ops import Function, Unit


def runs(engine: Engine, files: Iterable[Unit]) -> Iterator[Run]:
    """Yield the runs of some files: their bodies, then what nothing has called, callers first.

    A test is no program, and that it calls something does not say how users call it.
    """
    ends: dict[Unit, State] = {}
    units = [unit for unit in files if not roles.is_test(engine, unit.module)]
    for unit in units:
        frame, state = engine.run_module(unit)
        yield logged(frame, state, Value())
        state.spent = frozenset()
        ends[unit] = state
    mentioned = _mentions(units)
    for wanted in (True, False):  # what nobody mentions calls the others
        for unit in units:
            for function in unit.functions[1:]:
                chosen = (function.name not in mentioned) is wanted and function not in engine.called
                if (
                    chosen
                    and function.body
                    and function.name != "<lambda>"
                    and function.cls is None
                    and function.parent is unit.module
                    and not roles.is_test(engine, function)
                ):
                    yield _enter(engine, function, ends[unit])
            for cls in unit.classes:
                if roles.is_test_case(engine, cls):
                    continue
                methods = [
                    m
                    for m in cls.methods.values()
                    if (m.name not in mentioned) is wanted and (m not in engine.called or lives.is_hook(engine, m))
                ]
                if methods:
                    yield from lives.runs(engine, cls, methods, ends[unit])


def _mentions(units: list[Unit]) -> set[str]:
    """Return the names that some function mentions, other than in its own body."""
    found: set[str] = set()
    for unit in units:
        for function in unit.functions:
            if function.parent is not None and function.parent.parent is None:
                found |= function.mentions - {function.name}
    return found


def _enter(engine: Engine, function: Function, end: State) -> Run:
    module = Globals.of(function.unit.name)
    frame, state = Frame(function, engine, module, entry=True), end.copy()
    callee = of(Code.of(function, module))
    if any(d.applied for d in function.decorators):  # what a decorator of the project has made of it
        callee = state.heap.get(module, function.name) or callee
    point = Point(function.body[0], ())
    returned = Value()
    with engine.share(frame):
        returned = enter(engine, frame, state, function, callee, 0, point)
    return logged(frame, state, returned)

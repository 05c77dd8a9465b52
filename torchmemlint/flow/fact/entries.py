"""Entries: a file is run as a program, and what nobody in the project calls is run from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from functools import partial
from itertools import islice

from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import Mode, State
from torchmemlint.flow.domain.refs import Code, Globals, Point
from torchmemlint.flow.domain.values import Value, of
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import lives, roles
from torchmemlint.flow.fact.inputs import enter
from torchmemlint.flow.fact.logs import Run, logged
from torchmemlint.flow.fact.relevance import Relevance
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import CallMethod, Class, Function, GetAttribute, Unit
from torchmemlint.knowledge import torch_api

_FREEZING = "requires_grad_"


def runs(
    engine: Engine, files: Iterable[Unit], named: Callable[[Set[str]], bool], quietly: Callable[[str], bool]
) -> Iterator[Run]:
    """Yield the runs of some files: their bodies, then what nothing has called, callers first.

    `named` says whether functions of the files which import these mention some names, `quietly` whether a file that
    turns gradients off calls a method of some name, whatever it imports.

    What a run called that was cut comes last, in the mode in which it was called.

    A test is no program, and that it calls something does not say how users call it.
    """
    ends: dict[Unit, State] = {}
    units = [unit for unit in files if not roles.is_test(engine, unit.module)]
    relevance = Relevance(engine, units)
    units = [unit for unit in units if relevance.has_any(unit)]
    for unit in units:
        frame, state = engine.run_program(unit)
        yield logged(frame, state, Value())
        state.spent = frozenset()
        ends[unit] = state
    mentioned, places = mentions(units), _callers_first(units)
    entered: set[Function] = set()
    for late, wanted in ((False, True), (False, False), (True, True), (True, False)):  # callers first
        for cls, functions in _grouped(engine, units, mentioned, wanted, places):
            unit = functions[0].unit
            if engine.is_finished():
                return
            if not any(map(relevance.has, functions if cls is None else cls.methods.values())):
                continue
            chosen = [f for f in functions if f not in entered and (f in engine.left) is late]
            chosen = [f for f in chosen if f not in engine.called or lives.is_hook(engine, f)]
            entered.update(chosen)
            if not chosen:
                continue
            entries = lives.runs(engine, cls, chosen, ends[unit]) if cls else _entered(engine, chosen[0], ends[unit])
            known = len(engine.left)
            for run in entries:
                if late:
                    run.mentioned = partial(engine.unsure.__contains__, run.entry)
                elif cls is None or not lives.is_hook(engine, run.entry):
                    run.mentioned = partial(_is_met, engine, run.entry, named, quietly)
                yield run
                if run.cut and (run.mentioned() or _freezes_whole(run.entry)):
                    engine.unsure.update(islice(engine.left, known, None))
                known = len(engine.left)


def _freezes_whole(entry: Function) -> bool:
    """Does a program freeze a network as a whole, so that it trains only where something says so?"""
    return any(_FREEZING in function.mentions for function in entry.unit.functions if function.cls is None)


def inner(engine: Engine, files: Iterable[Unit]) -> Iterator[Run]:
    """Yield the runs of networks that detach something in their forward, taken apart: one pass for each part.

    To be run last. Not where all that is seen to call it turns gradients off.
    """
    for unit in files:
        for cls in unit.classes:
            forward, index = cls.methods.get("forward"), engine.index
            if forward is None or not index.is_network(cls) or index.differentiates(cls) or engine.is_finished():
                continue
            cuts = any(not method.mentions.isdisjoint(torch_api.CUTS) for method in cls.methods.values())
            if cuts and engine.called.get(forward) is not Mode.OFF and not roles.is_test_case(engine, cls):
                yield from lives.inner(engine, cls, engine.run_program(unit)[1])


def _is_met(
    engine: Engine, function: Function, named: Callable[[Set[str]], bool], quietly: Callable[[str], bool]
) -> bool:
    """Does code that was not followed to a function name it, and perhaps call it with gradients off?"""
    cls = function.cls
    names = {function.name} if cls is None else {function.name, cls.name} - {"__call__"}  # a call does not name that
    if function in engine.unsure or named(names):
        return True
    if cls is None:
        return False
    if _is_led_to_quietly(engine, function):
        return True
    return engine.index.may_be_network(cls) and roles.is_called_by_name(engine, function) and quietly(function.name)


def _is_led_to_quietly(engine: Engine, method: Function) -> bool:
    """Does a method that turns gradients off call another one of its object, or one hand it on to such a one?"""
    assert method.cls is not None
    own = [other for cls in engine.index.order(method.cls) for other in cls.methods.values() if other is not method]
    off = engine.index.contracts.off.last_parts
    quiet = [other for other in own if not off.isdisjoint(other.mentions)]
    for other in own if quiet else ():
        kinds = (GetAttribute, CallMethod) if other in quiet else (GetAttribute,)
        if method.name not in other.mentions:
            continue
        flow = definitions(other)
        if any(isinstance(op, kinds) and op.name == method.name and flow.is_self(op.base) for op in flow.made.values()):
            return True
    return False


def _grouped(
    engine: Engine, units: list[Unit], mentioned: set[str], wanted: bool, places: dict[str, int]
) -> list[tuple[Class | None, list[Function]]]:
    """Return what is (not) to be begun with: functions, each by itself, and the methods of each class.

    What a framework calls comes first, then callers.
    """
    found: list[tuple[Class | None, list[Function]]] = []
    for unit in units:
        for function in unit.functions[1:]:
            plain = function.cls is None and function.parent is unit.module and function.name != "<lambda>"
            if plain and function.body and not roles.is_test(engine, function):
                found.append((None, [function]))
        found += [(c, list(c.methods.values())) for c in unit.classes if not roles.is_test_case(engine, c)]
    chosen = [(cls, [f for f in group if _is_begun_with(engine, f, mentioned) is wanted]) for cls, group in found]
    ordered = [(cls, sorted(group, key=lambda f: places[f.name])) for cls, group in chosen if group]
    return sorted(ordered, key=lambda one: (not any(lives.is_hook(engine, f) for f in one[1]), places[one[1][0].name]))


def _is_begun_with(engine: Engine, function: Function, mentioned: set[str]) -> bool:
    """Does no function mention it, or does a framework call it, whoever else does?"""
    return function.name not in mentioned or lives.is_hook(engine, function)


def mentions(units: Iterable[Unit]) -> set[str]:
    """Return the names that some function mentions, other than in its own body."""
    found: set[str] = set()
    for unit in units:
        for function in unit.functions:
            if function.parent is not None and function.parent.parent is None:
                found |= function.mentions - {function.name}
    return found


def _callers_first(units: list[Unit]) -> dict[str, int]:
    """Return a place for each name of a function or class: behind what mentions it, unless it leads there itself."""
    mentions: dict[str, set[str]] = {}
    for unit in units:
        for function in unit.functions[1:]:
            mentions.setdefault(function.name, set()).update(function.mentions)
        for cls in unit.classes:  # who makes an object may call its methods without naming them
            mentions.setdefault(cls.name, set()).update(cls.methods)
    seen: set[str] = set()
    left: list[str] = []  # names in the order in which all that they lead to has been seen
    for first in reversed(mentions):
        todo = [] if first in seen else [(first, sorted(mentions[first] & mentions.keys()))]
        seen.add(first)
        while todo:
            name, rest = todo[-1]
            if not rest:
                left.append(name)
                todo.pop()
            elif (following := rest.pop()) not in seen:
                seen.add(following)
                todo.append((following, sorted(mentions[following] & mentions.keys())))
    return {name: place for place, name in enumerate(reversed(left))}


def _entered(engine: Engine, function: Function, end: State) -> Iterator[Run]:
    """Yield a call of a function, and many of them if one leaves a graph behind in its module."""
    module = Globals.of(function.unit.name)

    def call(frame: Frame, state: State) -> Value:
        callee = of(Code.of(function, module))
        if any(d.applied for d in function.decorators):  # what a decorator of the project has made of it
            callee = state.heap.get(module, function.name) or callee
        saved, state.mode = state.mode, engine.left.get(function, state.mode)
        returned = enter(engine, frame, state, function, callee, 0, Point(function))
        state.mode = saved
        return returned

    frame, state = Frame(function, engine, module, entry=True), end.copy()
    returned = Value()
    with engine.share(frame):
        returned = call(frame, state)
    yield logged(frame, state, returned)
    if lives.holds_graph(state, module) and not lives.holds_graph(end, module):
        yield lives.again(engine, function, function, end, [call])

"""Callers: how methods are called by their names on networks whose class was not seen, or through their base classes.

A class is often looked up by a name that a configuration has. Of who calls its methods, their names are all that shows.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.domain.refs import Behind, Object, Ref, path
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.ir.blocks import layout_of, operations
from torchmemlint.flow.ir.defuse import DefUse, definitions
from torchmemlint.flow.ir.ops import CallMethod, Function, Unit
from torchmemlint.flow.ir.places import Temp
from torchmemlint.flow.models.guards import mode_named, mode_of
from torchmemlint.knowledge import operations as operation
from torchmemlint.knowledge.contracts import Contracts


class Calling(enum.Enum):
    """How a method is called whose name is all that was seen."""

    RECORDED = "on a network, with gradients enabled, and nothing differentiates what it gives"
    TRAINED = "and what it gives is differentiated"
    QUIET = "with gradients disabled"
    OTHERWISE = "on what need not be a network, in a mode that is not known, or for a caller that may differentiate it"


def calling(
    engine: Engine, done: Iterable[tuple[Run, Evidence]], units: Iterable[Unit]
) -> dict[str, frozenset[Calling]]:
    """Return how some runs call methods of what is not known, by name; of what is not run, how their files do."""
    found: dict[str, set[Calling]] = {}
    for run, evidence in done:
        if run.life is None and not roles.is_test(engine, run.entry):
            returned = run.provenance.ancestors(run.returned)
            for receiver, name, call in _calls(run):
                if operation.method(name) is None:
                    way = _way(evidence, receiver, call)
                    leaves = way is Calling.RECORDED and call.result in returned and run.entry.parent is not None
                    found.setdefault(name, set()).add(Calling.OTHERWISE if leaves else way)
    for unit in units:
        for name, ways in _written(engine.index.contracts, unit).items():
            found.setdefault(name, ways)
    return {name: frozenset(ways) for name, ways in found.items()}


def _written(known: Contracts, unit: Unit) -> dict[str, set[Calling]]:
    """Return how a file calls methods of which it calls some where gradients are off, as written."""
    quiet, others = set[str](), set[str]()
    for function in unit.functions:
        flow, layout = definitions(function), layout_of(function)
        decorated = mode_of(known, function) is Mode.OFF
        for op in operations(function.body):
            if isinstance(op, CallMethod) and operation.method(op.name) is None and not flow.is_self(op.base):
                off = decorated or any(_turns_off(known, flow, context) for context in layout.entered(op))
                (quiet if off else others).add(op.name)
    return {name: {Calling.QUIET, Calling.OTHERWISE} if name in others else {Calling.QUIET} for name in quiet}


def _turns_off(known: Contracts, flow: DefUse, context: Temp) -> bool:
    """Is it the `torch.no_grad()` of a `with`?"""
    return mode_named(known, flow.called(flow.made.get(context)), ()) is Mode.OFF


def _calls(run: Run) -> Iterator[tuple[Ref, str, fx.Invoke | fx.InvokeMethod]]:
    """Yield the calls of methods, also of those that were bound to a name before."""
    for call in run.effects(fx.InvokeMethod):
        for receiver in call.receiver.refs:
            yield receiver, call.name, call
    for other in run.effects(fx.Invoke):
        for callee in other.callee.refs:
            if type(callee) is Behind and type(callee.key) is str:
                yield callee.base, callee.key, other


def _way(evidence: Evidence, receiver: Ref, call: fx.Invoke | fx.InvokeMethod) -> Calling:
    if evidence.is_differentiated(call.result):
        return Calling.TRAINED
    if call.mode is Mode.OFF:
        return Calling.QUIET
    is_on = call.mode in (Mode.ON, Mode.WANTED)
    return Calling.RECORDED if is_on and _is_network(evidence, receiver) else Calling.OTHERWISE


def _is_network(evidence: Evidence, receiver: Ref) -> bool:
    """Is something a network by its use, or a part of one, and not one that a library makes?"""
    parts = (receiver, *(part.base for part in path(receiver)))
    return any(part in evidence.networks | evidence.movable for part in parts if type(part) is not Object)


def kin(engine: Engine, method: Function) -> list[Function]:
    """Return the methods that one overrides or is overridden by, and the other overrides of the former.

    Who calls one of them through its base class may be given an object that has another.
    """
    if method.cls is None:
        return []
    name, index = method.name, engine.index
    above = [cls for cls in index.order(method.cls) if name in cls.methods]
    found = dict.fromkeys(f for cls in above for f in (cls.methods[name], *index.overriding(cls, name)))
    return [function for function in found if function is not method]


def calls_another(method: str, text: str) -> bool:
    """Does a program call a method of this name on something else than an object of the class that it writes?"""
    called = f".{method}("
    return called in text and re.search(rf"(?<!\bself)(?<!\bsuper\(\)){re.escape(called)}", text) is not None

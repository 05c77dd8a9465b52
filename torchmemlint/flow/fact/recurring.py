"""Recurring: gradients with a graph that leads back to what they are gradients of, which loops make again and again.

`backward(create_graph=True)` makes a circle: tensor, `.grad`, graph, tensor. It keeps all that the graph saved until
`.grad` is dropped or detached, and no garbage collector finds it. Source: the warning that torch gives for it, and
pytorch#4661.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.fact.services import innermost
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import is_inside, operations

_ZEROING = "zero_grad"
_MAY_RESET = frozenset({_ZEROING, "step"})  # of an optimizer that was not seen, which uses such gradients itself
_GIVEN = "inputs"  # whose gradients are wanted, and no others


def circles(places: Places, engine: Engine, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
    """Yield the backward passes of loops whose gradients have graphs that nothing in these loops drops."""
    for run, evidence in done:
        for event, effect in run.met(fx.Differentiate):
            makes = effect.creates and effect.asked and effect.named
            chain, repeat = effect.point.chain(), innermost(engine, event) if makes and run.life is None else None
            if repeat is not None and chain and isinstance(repeat.loop.site, ops.Op) and not _is_reset(run, event):
                through = run.provenance.ancestors(effect.sources)
                begun = [one.point.chain()[0] for one in run.effects(fx.Forward) if one.graph in through]
                handed = any(repeat.loop in e.loops and call.arguments.all() for e, call in run.calls())
                doubts, graphs = evidence.cut | ({Doubt.GIVEN} if handed else set()), tuple(map(places.of, begun[:1]))
                yield places.at(effect.point, "TML112", doubts, loop=places.of(repeat.loop.site), graphs=graphs)


def _is_reset(run: Run, event: Event) -> bool:
    """Does something in the loops around drop gradients? Or does the file replace them, or the call name some?"""
    site = event.effect.point.chain()[0]
    steps = [e for e, step in run.met(fx.Step) if step.name == _ZEROING]
    steps += [e for e, call in run.met(fx.InvokeMethod) if call.name in _MAY_RESET]
    if any(not one.loops.isdisjoint(event.loops) for one in steps):
        return True
    if any(one.name == _GIVEN for one in getattr(site, "arguments", ())):
        return True
    around = [loop.site for loop in event.loops if isinstance(loop.site, ops.Op)]
    functions = (f for f in site.owner.unit.functions if "grad" in f.mentions)
    replacing = [op for f in functions for op in operations(f.body) if _replaces(op)]
    return any(op.owner is not site.owner or any(is_inside((op,), loop) for loop in around) for op in replacing)


def _replaces(op: ops.Op) -> bool:
    match op:
        case ops.SetAttribute(name="grad"):
            return True
        case ops.Remove(attribute=True, key=key):
            return getattr(key, "value", None) == "grad"
    return False

"""Lingering: large results of passes that a variable still holds while the next iteration runs the same pass.

With gradients off the peak lies in forward, where the last result lies beside the new activations.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.provenance import Numbers
from torchmemlint.flow.domain.refs import Bare, Point
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import extents, roles
from torchmemlint.flow.fact.closing import inferring
from torchmemlint.flow.fact.evidence import CERTAIN, Evidence
from torchmemlint.flow.fact.logs import Event, Run, callee
from torchmemlint.flow.fact.services import innermost
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import Continue, For, While
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Bind, Load, Op, Unbind
from torchmemlint.immutable import immutable


@immutable()
class Lingering:
    """A variable that holds a large result over the end of an iteration."""

    point: Point  # the pass, as the loop's function calls it
    name: str
    loop: Op
    shown: Op  # what shows that the result is large
    wide: str | None  # the network's class, where it is that
    doubts: frozenset[Doubt]


def lingering(engine: Engine, run: Run, evidence: Evidence) -> Iterator[Lingering]:
    """Yield the variables of one run."""
    holds = [(event, hold) for event, hold in run.met(fx.Hold) if type(hold.point.site) is not Continue]
    passes = list(inferring(run, evidence)) if holds else []
    for event, hold in holds if passes else ():
        repeat = next((e for e in reversed(event.around) if isinstance(e, fx.Repeat)), None)
        if repeat is None or _trains(run, repeat):
            continue
        loop = hold.point.site
        assert isinstance(loop, For | While)
        found = {roles.head(engine, e.effect.point): e for e in passes if innermost(engine, e) is repeat}
        inside = list(operations([loop]))
        for head, one in found.items():
            call = next((n for n, op in enumerate(head) if op in inside), None)
            name = _holding(engine, run, hold, head)
            if call is None or name is None or not _is_overwritten_late(loop, inside, name, head[call]):
                continue
            large = _large(engine, one, loop, name)
            if large is not None:
                doubts = CERTAIN if any(map(evidence.is_known, callee(one.effect))) else {Doubt.NETWORK_BY_USE}
                yield Lingering(Point(head[call], head[call + 1 :]), name, loop, *large, evidence.cut | doubts)


def _trains(run: Run, repeat: fx.Repeat) -> bool:
    """Does the loop record graphs? The peak lies in those, or in a backward pass."""
    return any(repeat in e.around for e in (*run.of(fx.Differentiate), *run.of(fx.Forward)))


def _holding(engine: Engine, run: Run, hold: fx.Hold, head: tuple[Op, ...]) -> str | None:
    """Return the variable that holds what a pass gave, or else a copy or view of that on the same device."""
    held = [(name, {s for s in sources if type(s) is Bare and not s.host}) for name, sources in hold.held]
    for found in (
        held,
        [(name, run.provenance.ancestors(sources, numbers=Numbers.COPIED)) for name, sources in held],
    ):
        for name, sources in found:
            bare = (s for s in sources if type(s) is Bare)
            if any(roles.head(engine, Point(s.site, s.context)) == head for s in bare):
                return name
    return None


def _is_overwritten_late(loop: For | While, inside: list[Op], name: str, call: Op) -> bool:
    """Is a variable bound anew only after the next pass, and read neither before that nor after the loop?"""
    if first_use(inside[: inside.index(call)], name) is not None:
        return False
    around = list(operations(loop.owner.body))
    return not isinstance(first_use(around[around.index(loop) + len(inside) :], name), Load)


def first_use(ops: list[Op], name: str) -> Op | None:
    """Return the first operation on a variable."""
    return next((op for op in ops if isinstance(op, Bind | Unbind | Load) and op.name.text == name), None)


def _large(engine: Engine, event: Event, loop: For | While, name: str) -> tuple[Op, str | None] | None:
    """Return what shows that a result is large, and the network's class where it is that."""
    for network in callee(event.effect):
        wide = extents.wide_class(engine.index.contracts, network)
        site = getattr(network, "site", None)
        if wide is not None and isinstance(site, Op):
            return site, wide
    flow = definitions(loop.owner)
    loads = (op for op in operations([loop]) if isinstance(op, Load) and op.name.text == name)
    found = next(filter(None, (extents.shown(flow, op) for op in loads)), None)
    return None if found is None else (found, None)

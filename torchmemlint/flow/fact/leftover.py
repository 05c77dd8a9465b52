"""Leftover: what was read from a file stays bound to names, when it has been copied and the program goes on to work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import contained
from torchmemlint.flow.domain.refs import Behind
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.loading import Load, file_of, outliving
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.services import passes_of
from torchmemlint.flow.ir.blocks import layout_of
from torchmemlint.flow.ir.holding import Holding
from torchmemlint.flow.ir.ops import Op
from torchmemlint.flow.ir.places import Scope
from torchmemlint.immutable import immutable


@immutable()
class Leftover:
    """What the names of a function keep alive beyond the last use of it."""

    load: Load
    names: tuple[str, ...]
    copied: Op
    last: Op  # the last operation that uses one of them
    work: Op  # what runs after it
    trains: bool  # or is it only evaluated then?
    after: Op | None  # the operation behind which all of them can be deleted; None: not everywhere bound there


def leftovers(loads: Iterable[Load]) -> Iterator[Leftover]:
    """Yield the files whose contents stay bound."""
    for load in loads:
        if not (load.on_host or load.to_modules):
            continue  # optimizers take over what lies on their device
        for run, evidence, read, copies in load.seen:
            if not copies or _is_kept(run, read, copies):
                continue
            work: dict[Op, Event] = {}
            for event in _later(run, evidence, read, copies[0]):
                op = _same_call(read, event)
                if op is not None and (op not in work or type(work[op].effect) is not fx.Differentiate):
                    work[op] = event
            copied = {op: None for event in copies if (op := _same_call(read, event))}
            trains = any(type(event.effect) is fx.Differentiate for event in work.values())
            found = _left(load, list(copied), list(work), trains) if work and copied else None
            if found is not None:
                yield found
                break


def _is_kept(run: Run, read: Event, copies: list[Event]) -> bool:
    """Is what was read, or what was copied of it, kept or returned?"""
    point = read.effect.point
    copied = {r for event in copies for r in contained(run.state, _given(event.effect))}
    return any(r in copied or type(r) is not Behind for r in outliving(run) if file_of(r) == point)


def _given(effect: fx.Effect) -> list[Value]:
    return effect.arguments.all() if isinstance(effect, fx.Serve | fx.Invoke | fx.InvokeMethod) else []


def _later(run: Run, evidence: Evidence, read: Event, copied: Event) -> Iterator[Event]:
    """Yield what happens after a copy: backward passes, and models that a loop runs."""
    for event in passes_of(run, evidence, run.events.index(copied)):
        if isinstance(event.effect, fx.Differentiate) or event.loops - read.loops:
            yield event


def _same_call(read: Event, event: Event) -> Op | None:
    """Return the operation of the function that reads, in the same call of it, that leads to an event."""
    home, *calls = read.effect.point.chain()
    chain = event.effect.point.chain()
    for number, op in enumerate(chain):
        if op.owner is home.owner and chain[number + 1 :] == calls:
            return op
    return None


def _left(load: Load, copied: list[Op], work: list[Op], trains: bool) -> Leftover | None:
    """Return what a function keeps that reads a file; None where it lets go of it, or somebody else may use it."""
    function = load.op.owner
    holding = Holding(function, load.op, copied)
    names = holding.names
    if holding.first is None or holding.leaves or "locals" in function.mentions:
        return None
    if any(name.scope is Scope.CELL for name in holding.used):
        return None
    if function.parent is None and any(not names.isdisjoint(f.mentions) for f in function.unit.functions[1:]):
        return None
    placed = layout_of(function)
    order = placed.order
    bindings = [op for op in holding.bindings if order[op] > order[load.op]]
    uses = [op for op in holding.uses if order[op] > order[load.op]]
    if not uses or any(not holding.is_own(op) for op in bindings):
        return None
    last = max(uses, key=order.__getitem__)
    home = placed.home(holding.first)
    top = placed.within(last, placed.around(holding.first))
    behind = set(placed.following(top)) if top is not None else set()
    done = [op for op in work if placed.is_in(op, behind)]
    if top is None or not done:
        return None
    whole = all(placed.home(op) is home for op in (top, *bindings))
    first = holding.first.name.text
    ordered = (first, *sorted(names - {first}))
    first_work = min(done, key=order.__getitem__)
    return Leftover(load, ordered, copied[0], last, first_work, trains, top if whole else None)

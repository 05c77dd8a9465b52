"""Owning: what networks of the project consist of, beside what was seen being made."""

from __future__ import annotations

from torchmemlint.flow.domain.heap import visible
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Behind, Input, Loop, Object, Point, Ref
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.ir.ops import Op
from torchmemlint.flow.names.index import Index


def owned(engine: Engine, run: Run) -> set[Ref]:
    """Return what networks of the project have as attributes: inputs and objects of libraries that they consist of."""
    found: set[Ref] = set()
    cls = run.method_of
    if cls is not None and run.receiver is not None and engine.index.is_pipeline(cls):
        parts = engine.index.contracts.names("pipeline-modules").plain
        found.update(Behind.of(run.receiver, part) for part in parts)
    for holder, edges in run.state.heap.table.items():
        if type(holder) is Object and holder.kind is Kind.INSTANCE and engine.index.may_be_network(holder.about.cls):
            for name, value in visible(edges):
                if engine.index.runs(holder.about.cls, name):
                    found.update(r for r in value.refs if type(r) is Input or _is_part(r))
    return found


def constructs_network(index: Index, point: Point) -> bool:
    """Does the constructor of a network lead there? What is not seen there makes its layers."""
    owners = [site.owner for site in point.chain()]
    return any(o.name == "__init__" and o.cls is not None and index.may_be_network(o.cls) for o in owners)


def is_of_network(index: Index, loop: Loop) -> bool:
    """Does a loop stand in a method of a network, where its iterations may be parts of one pass?"""
    function = loop.site.owner if isinstance(loop.site, Op) else None
    return function is not None and function.cls is not None and index.may_be_network(function.cls)


def gathers_layers(index: Index, loop: Loop) -> bool:
    """Does a loop stand in the constructor of a network, which makes its parts there?"""
    return isinstance(loop.site, Op) and constructs_network(index, Point(loop.site))


def _is_part(reference: Ref) -> bool:
    """Is it an object of a class that is not seen, by how the class is written?"""
    if type(reference) is not Object or reference.kind is not Kind.OPAQUE or not isinstance(reference.about, str):
        return False
    return reference.about.rpartition(".")[2][:1].isupper() and not reference.about.startswith("torch.")

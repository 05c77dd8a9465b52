"""Data: where the values of a tensor are read or changed past autograd, by way of `x.data`."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.domain.manners import Remark
from torchmemlint.flow.domain.refs import Leaf, Parameters, Point, Source
from torchmemlint.flow.fact.evidence import CERTAIN, Evidence
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.ir.calls import works_in_place
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import (
    Call,
    CallMethod,
    Function,
    GetAttribute,
    GetItem,
    Op,
    Operate,
    SetAttribute,
    SetItem,
)
from torchmemlint.flow.ir.places import Temp
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import operations, torch_api

_INITIALISERS = "torch.nn.init."
_METADATA = torch_api.METADATA | torch_api.METADATA_ATTRIBUTES | {"data_ptr", "element_size", "storage_offset"}


class Access(enum.Enum):
    """What is done by way of `x.data`."""

    READ = "read"
    CHANGED = "changed"
    NEEDLESS = "changed, where gradients are off anyway"


@immutable()
class Bypass:
    """One `x.data` by which the values of a tensor are read or changed past autograd."""

    point: Point
    access: Access
    by: Op
    doubts: frozenset[Doubt]
    sources: frozenset[Source]  # of the tensor


def bypasses(run: Run, evidence: Evidence) -> Iterator[Bypass]:
    """Yield what is read or changed by way of `x.data` in one run."""
    uses: dict[Function, _Uses] = {}
    found: list[Bypass] = []
    for note in run.effects(fx.Note):
        if note.what is Remark.DATA and note.point.chain():
            op = note.point.chain()[0]
            if op.owner not in uses:
                uses[op.owner] = _Uses(op.owner)
            access, by = uses[op.owner].of(op)
            if access is Access.CHANGED and note.mode is Mode.OFF:
                access = Access.NEEDLESS
            doubts = _doubts(run, evidence, note, access) if access is not None else None
            if access is not None and doubts is not None:
                found.append(Bypass(note.point, access, by, doubts, note.of.graph))
    changes = {one.by for one in found if one.access is Access.CHANGED}
    for one in found:  # a change is put under `no_grad` with all that is read for it
        if one.access is not Access.READ or changes.isdisjoint(uses[one.by.owner].through(one.by)):
            yield one


def _doubts(run: Run, evidence: Evidence, note: fx.Note, access: Access) -> frozenset[Doubt] | None:
    """Return the doubts whether it is a tensor that has to do with a graph; None if nothing shows that."""
    owner, reads = note.of, access is Access.READ
    if reads and note.mode is Mode.OFF:
        return None
    if any(type(r) is Parameters for r in owner.refs) or any(type(s) is Leaf for s in owner.graph):
        return CERTAIN
    if not owner.refs.isdisjoint(evidence.with_gradients):
        return CERTAIN
    found = evidence.best(owner.graph)
    if found is None and not reads and not owner.refs.isdisjoint(evidence.tensors):
        return frozenset({Doubt.TENSOR_BY_USE})
    return found


class _Uses:
    """How a function uses what it gets by way of `x.data`."""

    def __init__(self, function: Function) -> None:
        self._flow = definitions(function)

    def of(self, op: Op) -> tuple[Access | None, Op]:
        """Return what is done by way of one `x.data`, and by what; None where no values are read or changed."""
        owner = self._flow.made.get(op.base) if isinstance(op, GetAttribute) else None
        if isinstance(owner, GetAttribute) and owner.name == "grad":
            return None, op  # no graph hangs on a gradient
        reads: list[Op] = []
        for temp, taker in self._takers(op):
            access = self._access(temp, taker)
            if access is not Access.READ:
                return access, taker
            reads.append(taker)
        later = [one for read in reads for one in self.through(read)]
        if any(isinstance(one, SetAttribute) and one.name == "data" for one in later):
            return None, op  # `p.data = ...`: another storage for a tensor, for which there is no other way
        return (Access.READ, reads[0]) if reads else (None, op)

    def through(self, op: Op) -> list[Op]:
        """Return an operation with those that its results flow into, within expressions."""
        found = [op]
        for one in found:
            found += [later for later in self._flow.following(one) if later not in found]
        return found

    def _access(self, temp: Temp, taker: Op) -> Access:
        match taker:
            case CallMethod(base=base, name=name) if base == temp and works_in_place(name):
                return Access.CHANGED
            case SetItem(base=base) if base == temp:
                return Access.CHANGED
            case Operate(place=place, operands=(first, *_)) if place is not None and first == temp:
                return Access.CHANGED
            case Call(callee=callee) if self._flow.name(callee).startswith(_INITIALISERS):
                return Access.NEEDLESS
            case CallMethod(base=base) if self._flow.name(base) + "." == _INITIALISERS:
                return Access.NEEDLESS
        return Access.READ

    def _takers(self, op: Op) -> Iterator[tuple[Temp, Op]]:
        """Yield what takes the values, also those of views, with the temporary that it takes."""
        views = [op]
        for view in views:
            for taker in self._flow.following(view):
                if isinstance(taker, GetAttribute | CallMethod) and _describes(taker.name):
                    continue
                if isinstance(taker, GetAttribute | GetItem) or (
                    isinstance(taker, CallMethod) and taker.base == getattr(view, "dst", None) and _is_view(taker.name)
                ):
                    views.append(taker)
                else:
                    yield getattr(view, "dst", -1), taker


def _describes(name: str) -> bool:
    return name in _METADATA or name.startswith("new")


def _is_view(method: str) -> bool:
    known = operations.method(method)
    return known is not None and known.view and not works_in_place(method)

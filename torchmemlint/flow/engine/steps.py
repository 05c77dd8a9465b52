"""Steps: what a framework does with what the steps of a project return."""

from __future__ import annotations

from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.heap import reached, visible
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.memory import differentiate, write
from torchmemlint.flow.domain.refs import Key, Object, Point, Ref
from torchmemlint.flow.domain.values import Value, join_all, of
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import Return
from torchmemlint.flow.ir.ops import Class, Function, Make, Op
from torchmemlint.flow.ir.places import ConstantKey
from torchmemlint.flow.names.index import Index

_LOSS = ("loss", 0)  # of what a step returns, where that is no tensor
_OWN = frozenset({"loss", "hiddens"})  # which the framework keeps detached


def take(site: CallSite, step: Function, receiver: Ref, returned: Value) -> None:
    """Differentiate the loss that a step returns, and keep the rest if the class asks for it when the epoch ends."""
    frame, state = site.frame, site.state
    boxes = [r for r in returned.each() if type(r) is Object]
    parts = (state.heap.get(box, key) for box in boxes for key in _LOSS)
    alone = returned._replace(refs=returned.refs - set(boxes))
    loss = join_all([alone, *(part for part in parts if part is not None)])
    differentiate(frame, state, reached(state, loss), site.point, False)
    if step.cls is None or not _asks_for_outputs(site.machine.index, step.cls, step.name):
        return
    for box in (box for box in boxes if box.kind is Kind.DICT):
        for key, value in list(visible(state.heap.edges(box))):
            place = _written_out(box, key) or _result(step)
            if key not in _OWN and place is not None:
                write(frame, state, of(receiver), Special.OUTPUTS, value, Point(place), True)


def _asks_for_outputs(index: Index, cls: Class, step: str) -> bool:
    """Has a class a method that is given what its steps returned? Not if something else is made of that first."""
    known, bases = index.contracts.names("receives-outputs"), index.libraries(cls)
    asks = any(known.has_method(name, bases) for name in known.last_parts if index.method(cls, name) is not None)
    return asks and index.method(cls, f"{step}_end") is None


def _written_out(box: Object, key: Key) -> Op | None:
    """Return what computes an entry of a dict, if that is written out with it."""
    if type(box.site) is not Make:
        return None
    written = ((entry.key, entry.temp) for entry in box.site.entries)
    temps = {temp for own, temp in written if isinstance(own, ConstantKey) and own.value == key}
    return next((op for op in operations(box.site.owner.body) if getattr(op, "dst", None) in temps), None)


def _result(function: Function) -> Op | None:
    """Return the last place where a function gives a result."""
    return next((op for op in reversed(list(operations(function.body))) if type(op) is Return), None)

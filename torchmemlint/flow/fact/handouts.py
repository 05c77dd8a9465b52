"""What a function stores and hands out again: `self.last = h`, then `return self.last + x`."""

from __future__ import annotations

from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import Return, Yield
from torchmemlint.flow.ir.defuse import DefUse, definitions
from torchmemlint.flow.ir.ops import GetAttribute, GetItem, SetAttribute, SetItem


def is_handed_out(store: object) -> bool:
    """Does the function that stores something also return what the place holds? Its callers get it, then."""
    if not isinstance(store, SetAttribute | SetItem):
        return False
    flow = definitions(store.owner)
    place = _place(flow, store)
    if not place:
        return False
    given = [op.src for op in operations(store.owner.body) if isinstance(op, Return | Yield)]
    return any(isinstance(op, GetAttribute | GetItem) and _place(flow, op) == place for op in flow.origins(*given))


def _place(flow: DefUse, op: SetAttribute | SetItem | GetAttribute | GetItem) -> str:
    base = flow.path(op.base)
    if not base:
        return ""
    return f"{base}.{op.name}" if isinstance(op, SetAttribute | GetAttribute) else f"{base}[]"

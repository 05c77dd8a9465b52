"""Pending: what is computed from a pass, and not used yet."""

from __future__ import annotations

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain.refs import Point
from torchmemlint.flow.ir.defuse import DefUse, definitions, operands
from torchmemlint.flow.ir.ops import Bind, Call, CallMethod, GetAttribute, Load, Op, Operate
from torchmemlint.flow.ir.places import Scope, Temp
from torchmemlint.flow.names.index import Index
from torchmemlint.knowledge import torch_api


def pending(index: Index, point: Point) -> frozenset[Doubt]:
    """Return the doubt about a pass, if nothing uses a value yet that is computed from its result."""
    calls = point.chain()
    return frozenset({Doubt.PENDING} if calls and _is_pending(index, calls[0]) else ())


def _is_pending(index: Index, made: Op) -> bool:
    """Is something computed from what an operation makes, with its graph, and bound to a name that nothing reads?

    What will read it may be commented out, or not written yet. A part of a result that is given a name is none.
    """
    flow = definitions(made.owner)
    unread = (bind for name, binds in flow.binds.items() if name not in flow.loads for bind in binds)
    return any(_comes_from(index, flow, bind, made) for bind in unread if bind.name.scope is Scope.LOCAL)


def _comes_from(index: Index, flow: DefUse, bind: Bind, made: Op) -> bool:
    todo: list[tuple[Temp, bool]] = [(bind.src, False)]  # with: is something computed on the way?
    seen = set(todo)
    for temp, is_computed in todo:
        op = flow.made.get(temp)
        if op is made and is_computed:
            return True
        if op is None or op is made or _ends(index, op):
            continue
        further = operands(op) if not isinstance(op, Load) else flow.bound.get(op.name.text, ())
        new = [(one, is_computed or isinstance(op, Call | CallMethod | Operate)) for one in further]
        todo += [one for one in new if one not in seen]
        seen.update(new)
    return False


def _ends(index: Index, op: Op) -> bool:
    """Does what an operation gives have no graph?"""
    if not isinstance(op, CallMethod | GetAttribute):
        return False
    return op.name in torch_api.GRAPHLESS or index.contracts.names("reads").has_method(op.name)

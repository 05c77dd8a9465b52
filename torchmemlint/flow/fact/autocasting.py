"""Autocasting: passes whose weights autocast casts anew, with a graph.

Until its outermost block ends, `torch.autocast` keeps the weights that it has cast. Releases of torch before the end of
2025 keep them without a graph where the first pass runs with gradients off: the network then trains no more in the rest
of the block (pytorch#65766, #112583, #165068).
"""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.domain.refs import Point, Ref
from torchmemlint.flow.fact.closing import inferring
from torchmemlint.flow.fact.passes import Passes
from torchmemlint.flow.fact.seen import module_of
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import With
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Call, CallMethod, Function, Op

_AUTOCAST = "autocast"


def cast_with_graphs(passes: Passes) -> Iterator[Point]:
    """Yield the passes that are differentiated, where none of the network runs without gradients in the same block."""
    known: dict[Function, dict[Op, With]] = {}
    trained = [(one, found) for one in passes.all if one.differentiated and (found := list(_around(one.point, known)))]
    quiet: dict[With, set[Ref]] = {}
    for event in inferring(passes.run, passes.evidence) if trained else ():
        for block in _around(event.effect.point, known):
            quiet.setdefault(block, set()).update(module_of(event.effect))
    for one, blocks in trained:
        if not any(one.module & quiet.get(block, set()) for block in blocks):
            yield one.point


def _around(point: Point, known: dict[Function, dict[Op, With]]) -> Iterator[With]:
    """Yield the blocks of autocast around a point, and around the calls that led there."""
    for op in point.chain():
        if _AUTOCAST in op.owner.mentions:
            if op.owner not in known:
                known[op.owner] = _blocks(op.owner)
            if op in known[op.owner]:
                yield known[op.owner][op]


def _blocks(function: Function) -> dict[Op, With]:
    """Return what stands in blocks of autocast, with the outermost of these."""
    found: dict[Op, With] = {}
    for op in operations(function.body):
        if isinstance(op, With) and any(_is_autocast(function, context) for context in op.contexts):
            for inner in operations(op.body):
                found.setdefault(inner, op)
    return found


def _is_autocast(function: Function, context: int) -> bool:
    flow = definitions(function)
    match flow.made.get(context):
        case CallMethod(name=name):
            return name == _AUTOCAST
        case Call(callee=callee):
            return flow.path(callee).rpartition(".")[2] == _AUTOCAST
    return False

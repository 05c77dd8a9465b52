"""Reusing: blocks that keep the weights which a network's first pass computes, with a graph or without one.

Until its outermost block ends, `torch.autocast` keeps the weights that it has cast. Releases of torch before the end of
2025 keep them without a graph where the first pass runs with gradients off: the network then trains no more in the rest
of the block (pytorch#65766, #112583, #165068). So does `parametrize.cached()` with the weights that parametrizations
compute, each the first time that it is read (torch/nn/utils/parametrize.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.domain.refs import Point, Ref
from torchmemlint.flow.fact.closing import inferring
from torchmemlint.flow.fact.details import Arriving
from torchmemlint.flow.fact.passes import Passes
from torchmemlint.flow.fact.seen import module_of
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import With
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Call, CallMethod, Function, Op

_KEEPING = {"autocast": Arriving.CAST, "cached": Arriving.CACHED}
_PARAMETRIZE = "torch.nn.utils.parametrize"

_Block = tuple[With, Arriving]


def reused_with_graphs(passes: Passes) -> Iterator[tuple[Arriving, Point]]:
    """Yield the passes that are differentiated, where none of the network runs without gradients in the same block."""
    known: dict[Function, dict[Op, _Block]] = {}
    trained = [(one, found) for one in passes.all if one.differentiated and (found := list(_around(one.point, known)))]
    quiet: dict[_Block, set[Ref]] = {}
    for event in inferring(passes.run, passes.evidence) if trained else ():
        for block in _around(event.effect.point, known):
            quiet.setdefault(block, set()).update(module_of(event.effect))
    for one, blocks in trained:
        if not any(one.module & quiet.get(block, set()) for block in blocks):
            yield blocks[0][1], one.point


def _around(point: Point, known: dict[Function, dict[Op, _Block]]) -> Iterator[_Block]:
    """Yield such blocks around a point, and around the calls that led there."""
    for op in point.chain():
        if not _KEEPING.keys().isdisjoint(op.owner.mentions):
            if op.owner not in known:
                known[op.owner] = _blocks(op.owner)
            if op in known[op.owner]:
                yield known[op.owner][op]


def _blocks(function: Function) -> dict[Op, _Block]:
    """Return what stands in blocks that keep weights, with the outermost of these."""
    found: dict[Op, _Block] = {}
    for op in operations(function.body):
        how = next(filter(None, (_kept_by(function, one) for one in op.contexts)), None) if type(op) is With else None
        if isinstance(op, With) and how is not None:
            for inner in operations(op.body):
                found.setdefault(inner, (op, how))
    return found


def _kept_by(function: Function, context: int) -> Arriving | None:
    """Return how a context keeps weights; None of one that keeps none."""
    flow = definitions(function)
    match flow.made.get(context):
        case CallMethod(base=base, name=name):
            path = f"{flow.path(base)}.{name}"
        case Call(callee=callee):
            path = flow.path(callee)
        case _:
            return None
    first, _, rest = path.partition(".")
    qualified = f"{function.unit.imports.get(first, first)}.{rest}".rstrip(".")
    name = path.rpartition(".")[2]
    return _KEEPING.get(name) if name == "autocast" or qualified == f"{_PARAMETRIZE}.cached" else None

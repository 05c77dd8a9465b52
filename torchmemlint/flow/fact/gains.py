"""Gains: whether a faster way to load is worth a change, beside the batch or the epoch that it is a part of."""

from __future__ import annotations

import math
from collections.abc import Iterator

from torchmemlint.amounts import FLOAT
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Object
from torchmemlint.flow.fact.loaders import Loader
from torchmemlint.flow.fact.numbers import Numbers, argument
from torchmemlint.flow.ir.control import For
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Call, Op
from torchmemlint.flow.ir.places import Spread
from torchmemlint.knowledge import data_sets

_SLOW = 8 * 2**20  # bytes: about a millisecond to copy
_HANDFUL = 10  # epochs
_IN_MEMORY = frozenset({"TensorDataset", *data_sets.IMAGES})


def has_small_batches(loader: Loader) -> bool:
    """Are its batches known to be so small that a copy takes no time? One of a single item is, unless that is large."""
    count, names = _batch_size(loader), set(_data_sets(loader))
    unit = loader.point.chain()[0].owner.unit
    if count is None or not names or not names <= data_sets.IMAGES.keys():
        return count == 1
    if any(not function.mentions.isdisjoint(data_sets.ENLARGING) for function in unit.functions):
        return False
    return max(math.prod(data_sets.IMAGES[name]) for name in names) * count * FLOAT < _SLOW


def _batch_size(loader: Loader) -> int | None:
    """Return how many items a batch has at most; None where that is not known."""
    size = loader.number("batch_size", 1)
    if size is not None and isinstance(size.value, int):
        return size.value
    made, calls = loader.point.chain()[0], loader.point.chain()[1:]
    numbers = Numbers(made.owner, calls=calls, others=loader.engine.imported([made.owner.unit]))
    return numbers.at_most(argument(made, 1, "batch_size"))


def has_short_epochs(loader: Loader, again: Op) -> bool:
    """Is an epoch known to be so short, and repeated so often, that the start of workers is a part of it?"""
    names, rounds = set(_data_sets(loader)), _rounds(loader, again)
    return bool(names) and names <= _IN_MEMORY and (rounds is None or rounds >= _HANDFUL)


def _data_sets(loader: Loader) -> Iterator[str]:
    """Yield the class of each data set that a loader loads from: a library's, or the one it is derived from."""
    for one in loader.sources():
        if type(one) is Object and one.kind is Kind.INSTANCE:
            bases = [name.rpartition(".")[2] for name in loader.engine.index.libraries(one.about.cls)]
            yield next((name for name in bases if name in _IN_MEMORY), one.about.cls.name)
        else:
            yield str(one.about).rpartition(".")[2] if type(one) is Object and one.kind is Kind.OPAQUE else ""


def _rounds(loader: Loader, loop: Op) -> int | None:
    """Return how often a loop over `range(n)` is run; None where that is not known."""
    made = definitions(loop.owner).made.get(loop.source) if isinstance(loop, For) else None
    if not isinstance(made, Call) or definitions(loop.owner).path(made.callee) != "range":
        return None
    numbers = Numbers(loop.owner, others=loader.engine.imported([loop.owner.unit]))
    ends = [numbers.at_most(one.temp) for one in made.arguments if one.spread is Spread.PLAIN]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends) or not 1 <= len(known) <= 2:
        return None
    return known[-1] - sum(known[:-1])

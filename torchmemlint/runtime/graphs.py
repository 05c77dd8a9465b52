"""What autograd graphs keep alive, and for whom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.ledger import Site
from torchmemlint.runtime.sites import Sites
from torchmemlint.runtime.tracker import tensors_in

LIMIT = 500_000
"""Nodes that one look visits at most."""


@dataclass(slots=True)
class Reach:
    """What the graph behind one value keeps that no value before it did: records, and the lines of their nodes."""

    records: list[int] = field(default_factory=list)
    lines: Counter[Site] = field(default_factory=Counter)
    hooked: int = 0  # nodes whose saved tensors only their hooks could tell


class Graphs:
    """Walks the graphs behind values, one value after the other; each node counts for the first that reaches it.

    What hooks saved (checkpointing, `save_on_cpu`) is not asked for: the answer would compute it again.
    """

    def __init__(
        self, index_of: Callable[[torch.Tensor], int | None], hooked: Container[Any], sites: Sites, limit: int = LIMIT
    ) -> None:
        self._index_of = index_of
        self._hooked = hooked
        self._sites = sites
        self._limit = limit
        self._seen: set[Any] = set()
        self._counted: set[int] = set()
        self.cut = False

    def reach(self, root: Any, elsewhere: Container[int], nbytes: Callable[[int], int]) -> Reach:
        """What the graph that begins at a node keeps, but for records that are held `elsewhere`."""
        result = Reach()
        if root in self._seen:
            return result
        self._seen.add(root)
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node in self._hooked:
                result.hooked += 1
            else:
                for tensor in _kept_by(node):
                    index = self._index_of(tensor)
                    if index is not None and index not in self._counted and index not in elsewhere:
                        self._counted.add(index)
                        result.records.append(index)
                        site = self._sites.of_node(node)
                        if site is not None:
                            result.lines[site] += nbytes(index)
            for following, _ in node.next_functions:
                if following is not None and following not in self._seen:
                    if len(self._seen) >= self._limit:
                        self.cut = True
                        return result
                    self._seen.add(following)
                    waiting.append(following)
        return result


def _kept_by(node: Any) -> Iterator[torch.Tensor]:
    yield from internals.saved_tensors(node)
    leaf = internals.leaf_of(node)
    if leaf is not None:
        yield leaf
        if leaf.grad is not None:
            yield leaf.grad
    if internals.is_custom_node(node):  # a Function's own attributes: `ctx.mask = mask`
        for value in vars(node).values():
            yield from tensors_in(value)


def order(node: Any) -> float:
    """When a node was made; what a later value's graph shares with an earlier one's belongs to the earlier."""
    number = internals.sequence_number(node)
    return math.inf if number is None else number


def in_order(entries: Iterable[tuple[Any, bool]]) -> list[Any]:
    """Nodes with whether the value they make is carried from turn to turn: these come first, then by age."""
    return [node for node, _ in sorted(entries, key=lambda entry: (not entry[1], order(entry[0])))]

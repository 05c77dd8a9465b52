"""What backward passes keep and make for gradients that no optimizer uses: a pretrained encoder that was not frozen.

The graph behind a backward's roots is walked now and then. A leaf counts as used if some optimizer has it, or if it is
no parameter; a node that leads to unused ones alone keeps what it saved in vain, and the backward that runs through it
fills their `.grad`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.graphs import LIMIT
from torchmemlint.runtime.ledger import Site
from torchmemlint.runtime.tracker import tensors_in
from torchmemlint.runtime.uses import Unneeded, in_spans

if TYPE_CHECKING:
    from torchmemlint.runtime.evidence import HookedNodes
    from torchmemlint.runtime.steps import Steps
    from torchmemlint.runtime.tracker import StorageTracker

_FIRST = 3
"""The backward that is looked at first: by then each optimizer of a usual training has stepped."""


class UnneededGradients:
    """Looks at some of a run's backward passes; `found` is what the costliest of these had."""

    def __init__(self, tracker: StorageTracker, steps: Steps, hooked: HookedNodes) -> None:
        self._tracker = tracker
        self._hooked = hooked
        self._trained: set[int] = set()  # parameters that optimizers have, by their numbers; they outlive this
        self._backwards = 0
        self._next = _FIRST
        self._found: list[tuple[Unneeded, set[int]]] = []
        self._in_shards = False  # then a backward's leaves are whole parameters, which no optimizer has
        steps.before_step.append(self._stepping)
        steps.on_backward.append(self._looked_at)

    @property
    def found(self) -> Unneeded | None:
        """What a backward had for parameters that no optimizer has stepped, now that the run is over."""
        return max(
            (one for one, leaves in self._found if self._trained.isdisjoint(leaves) and not self._in_shards),
            key=lambda one: one.nbytes,
            default=None,
        )

    def _stepping(self, optimizer: Any) -> None:
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        self._trained.update(map(id, parameters))
        self._in_shards = self._in_shards or any(internals.local_of(one) is not one for one in parameters)

    def _looked_at(self, roots: Any) -> None:
        self._backwards += 1
        if self._backwards < self._next or not self._trained or self._in_shards:
            return
        self._next *= 2
        with internals.without_function_modes():
            found = self._walked([node for node in map(internals.graph_of, tensors_in(roots)) if node is not None])
        if found is not None:
            self._found.append(found)

    def _walked(self, roots: list[Any]) -> tuple[Unneeded, set[int]] | None:
        needs: dict[Any, bool] = {}
        waiting = [(node, False) for node in roots]
        while waiting:
            node, done = waiting.pop()
            following = [one for one, _ in node.next_functions if one is not None]
            if done:
                leaf = internals.leaf_of(node)
                needs[node] = any(needs[one] for one in following) or (leaf is not None and self._is_used(leaf))
                continue
            if node in needs:
                continue
            if len(needs) >= LIMIT:
                return None
            needs[node] = False  # until its own following have been asked
            waiting.append((node, True))
            waiting.extend((one, False) for one in following if one not in needs)
        leaves = [leaf for node in needs if (leaf := internals.leaf_of(node)) is not None and not needs[node]]
        if not leaves:
            return None
        index_of, ledger = self._tracker.index_of, self._tracker.ledger
        kept = {index for node, need in needs.items() if need for index in self._saved(node)}
        kept |= {index for leaf in leaves if (index := index_of(leaf)) is not None}  # the parameters stay all the same
        saved: Counter[Site] = Counter()
        for node, need in needs.items():
            for index in () if need else self._saved(node):
                if index not in kept:
                    kept.add(index)
                    saved[ledger.site(index)] += ledger.nbytes(index)
        gradients = sum(leaf.numel() * leaf.element_size() for leaf in leaves)
        return Unneeded(tuple(saved.most_common()), gradients, len(leaves)), set(map(id, leaves))

    def _saved(self, node: Any) -> list[int]:
        if node in self._hooked:
            return []
        found = (self._tracker.index_of(tensor) for tensor in internals.saved_tensors(node))
        return [index for index in found if index is not None]

    def _is_used(self, leaf: torch.Tensor) -> bool:
        """Whether something takes a leaf's gradient: an optimizer, the program itself, or whoever made the leaf."""
        if id(leaf) in self._trained or not isinstance(leaf, torch.nn.Parameter):
            return True
        index = None if leaf.grad is None else self._tracker.index_of(leaf.grad)
        return index is not None and not in_spans(self._tracker.ledger.backwards, self._tracker.ledger.used(index))

"""Tells what storages are for, and where steps end, by watching optimizers, loaders and backward passes.

Steps, batches and backward passes are told by `steps.py`, whose hooks are public.
"""

from __future__ import annotations

import contextlib
import math
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.collector import watching_collections
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.steps import OnStep, Steps
from torchmemlint.runtime.threads import living
from torchmemlint.runtime.tracker import StorageTracker, is_parameter, tensors_in


class Watch(contextlib.AbstractContextManager["Watch"]):
    """While entered, claims kinds in a tracker's ledger and marks its steps.

    `steps` is what tells of these, where something else listens to it, too; it is entered here.
    """

    def __init__(self, tracker: StorageTracker, on_step: OnStep | None = None, steps: Steps | None = None) -> None:
        self._tracker = tracker
        self._steps = steps if steps is not None else Steps(tracker.ledger.failures)
        self._steps.before_step.insert(0, self._before_step)
        self._steps.after_step.insert(0, self._after_step)
        self._steps.on_batch.insert(0, self._claim_batch)
        self._steps.on_backward.insert(0, self._before_backward)
        self._steps.after_backward.insert(0, self._after_backward)
        self._of_thread = threading.local()  # its `backwards`: the events at which those that run now began
        self._steps.on_step.insert(0, tracker.ledger.mark)
        if on_step is not None:
            self._steps.on_step.append(on_step)
        self._hooked = HookedNodes()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Watch:
        """Put the hooks in place."""
        stack = self._stack
        stack.enter_context(self._steps)
        stack.enter_context(self._hooked.watching())
        stack.enter_context(_resizing(self._tracker))
        stack.enter_context(watching_collections(self._tracker.ledger))
        return self

    def __exit__(self, *exception: object) -> None:
        """Take the hooks away."""
        self._stack.close()

    @property
    def tracker(self) -> StorageTracker:
        """What fills the ledger."""
        return self._tracker

    @property
    def hooked(self) -> HookedNodes:
        """The nodes whose saved tensors must not be asked for."""
        return self._hooked

    def settle(self) -> None:
        """Claim what can only be told by looking: the gradients that parameters hold, and graphs without a backward.

        Graphs from before are left alone: asking a checkpointed one for what it saved would compute it. Parameters are
        looked for among the living objects, and not kept by weak references: a tensor that has one cannot be swapped
        (`torch.utils.swap_tensors`, by which `Module.to_empty` moves those of FSDP).
        """
        with self._tracker.standstill.held():
            self._tracker.write_off()
            tensors = living(torch.Tensor)
            self.claim_saved(one for one in tensors if self._tracker.index_of(one) is not None)
            for parameter in filter(is_parameter, tensors):
                if parameter.grad is not None:
                    self._tracker.claim(parameter.grad, Kind.GRADIENT)

    def _before_step(self, optimizer: Any) -> None:
        for parameter in _parameters(optimizer):
            self._tracker.claim(parameter, Kind.PARAMETER)
            if parameter.grad is not None:
                self._tracker.claim(parameter.grad, Kind.GRADIENT)

    def _after_step(self, optimizer: Any) -> None:
        for state in optimizer.state.values():
            for tensor in tensors_in(state):
                self._tracker.claim(tensor, Kind.OPTIMIZER_STATE)

    def _before_backward(self, roots: Any) -> None:
        self._tracker.standstill.backward_begins()
        self._of_thread.backwards = [*getattr(self._of_thread, "backwards", ()), self._tracker.ledger.now]
        self._tracker.sites.begin_backward()
        self.claim_saved(tensors_in(roots))

    def _after_backward(self, roots: Any) -> None:
        self._tracker.standstill.backward_ends()
        ledger = self._tracker.ledger
        ledger.backwards.append((self._of_thread.backwards.pop(), ledger.now))

    def claim_saved(self, roots: Iterable[torch.Tensor]) -> None:
        """Claim what the graphs behind some tensors keep for their backward."""
        with internals.without_function_modes():
            self._claim_saved(roots)

    def _claim_saved(self, roots: Iterable[torch.Tensor]) -> None:
        waiting = [node for node in map(internals.graph_of, roots) if node is not None]
        seen: set[Any] = set(waiting)
        claim, index_of = self._tracker.ledger.claim, self._tracker.index_of
        while waiting:
            node: Any = waiting.pop()
            if node not in self._hooked:
                for tensor in internals.saved_tensors(node):
                    index = index_of(tensor)
                    if index is not None:
                        claim(index, Kind.SAVED)
            for following, _ in node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    waiting.append(following)

    def _claim_batch(self, batch: Any) -> None:
        for tensor in tensors_in(batch):
            self._tracker.claim(tensor, Kind.INPUT)


@contextlib.contextmanager
def _resizing(tracker: StorageTracker) -> Iterator[None]:
    """Tell of storages that are resized below every operation, as sharded training does to free what it gathered."""
    storage: Any = torch.UntypedStorage
    original = storage.resize_

    def resize_(one: Any, size: int) -> Any:
        result = original(one, size)
        tracker.resized(one)
        return result

    storage.resize_ = resize_
    try:
        yield
    finally:
        storage.resize_ = original


class _Hooked:
    """The sequence numbers of one thread's nodes that were made while hooks decided what is saved."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[float] = []
        self._depth = 0

    def __contains__(self, sequence: int) -> bool:
        place = bisect_right(self._begins, sequence) - 1
        return place >= 0 and sequence < self._ends[place]

    def enter(self) -> None:
        if self._depth == 0:
            self._begins.append(internals.next_sequence_number())
            self._ends.append(math.inf)
        self._depth += 1

    def leave(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._ends[-1] = internals.next_sequence_number()


class HookedNodes:
    """Which nodes of the graph were made while hooks decided what is saved (checkpointing, `save_on_cpu`).

    To look at what such a node saved would run its hook: a checkpoint would compute its forward again.
    """

    def __init__(self) -> None:
        self._of_threads: dict[int, _Hooked] = {}

    def __contains__(self, node: object) -> bool:
        if not self._of_threads:
            return False
        sequence = internals.sequence_number(node)  # each thread counts by itself, and a node does not tell its own
        return sequence is not None and any(sequence in hooked for hooked in list(self._of_threads.values()))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Take note of each `saved_tensors_hooks` that is entered."""
        hooks: Any = torch.autograd.graph.saved_tensors_hooks
        enter, leave = hooks.__enter__, hooks.__exit__

        def entered(this: Any) -> Any:
            self._of_threads.setdefault(threading.get_ident(), _Hooked()).enter()
            return enter(this)

        def left(this: Any, *exception: Any) -> Any:
            self._of_threads[threading.get_ident()].leave()
            return leave(this, *exception)

        hooks.__enter__, hooks.__exit__ = entered, left
        try:
            yield
        finally:
            hooks.__enter__, hooks.__exit__ = enter, leave


def _parameters(optimizer: Any) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]

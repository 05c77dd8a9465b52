"""Tells what storages are for, and where steps end, by watching optimizers, loaders and backward passes.

All hooks are public: the optimizers' global step hooks, and wrappers around `torch.autograd.backward`,
`torch.autograd.grad` and `DataLoader.__iter__` that are taken away again.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import math
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.optim import optimizer as optimizers
from torch.utils.data import DataLoader

from torchmemlint.runtime import internals
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.tracker import StorageTracker, tensors_in

OnStep = Callable[[str], None]
"""Is told the series of each step that ends: `optimizer 1`, `loader 2`."""


class Watch(contextlib.AbstractContextManager["Watch"]):
    """While entered, claims kinds in a tracker's ledger and marks its steps."""

    def __init__(self, tracker: StorageTracker, on_step: OnStep | None = None) -> None:
        self._tracker = tracker
        self._on_step = on_step
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._count = itertools.count(1)
        self._hooked = HookedNodes()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Watch:
        """Put the hooks in place."""
        stack = self._stack
        pre = optimizers.register_optimizer_step_pre_hook(self._before_step)
        stack.callback(pre.remove)
        post = optimizers.register_optimizer_step_post_hook(self._after_step)
        stack.callback(post.remove)
        for name in ("backward", "grad"):
            stack.enter_context(_replaced(torch.autograd, name, self._before_backward))
        stack.enter_context(_iterating(self._batches))
        stack.enter_context(self._hooked.watching())
        return self

    def __exit__(self, *exception: object) -> None:
        """Take the hooks away."""
        self._stack.close()

    def settle(self) -> None:
        """Claim what can only be told by looking: the gradients that parameters hold, and graphs without a backward."""
        self.claim_saved(one for one in gc.get_objects() if issubclass(type(one), torch.Tensor))
        for parameter in list(self._tracker.parameters.values()):
            if parameter.grad is not None:
                self._tracker.claim(parameter.grad, Kind.GRADIENT)

    def _before_step(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        for parameter in _parameters(optimizer):
            self._tracker.claim(parameter, Kind.PARAMETER)
            if parameter.grad is not None:
                self._tracker.claim(parameter.grad, Kind.GRADIENT)

    def _after_step(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        for state in optimizer.state.values():
            for tensor in tensors_in(state):
                self._tracker.claim(tensor, Kind.OPTIMIZER_STATE)
        self._mark("optimizer", optimizer)

    def _before_backward(self, roots: Any, *_: Any, **__: Any) -> None:
        self.claim_saved(tensors_in(roots))

    def claim_saved(self, roots: Iterable[torch.Tensor]) -> None:
        """Claim what the graphs behind some tensors keep for their backward."""
        waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
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

    def _batches(self, loader: Any, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for tensor in tensors_in(batch):
                self._tracker.claim(tensor, Kind.INPUT)
            yield batch
            del batch
            self._mark("loader", loader)

    def _mark(self, family: str, whose: Any) -> None:
        number = self._numbers.get(whose)
        if number is None:
            number = self._numbers[whose] = next(self._count)
        series = f"{family} {number}"
        self._tracker.ledger.mark(series)
        if self._on_step is not None:
            self._on_step(series)


class HookedNodes:
    """Which nodes of the graph were made while hooks decided what is saved (checkpointing, `save_on_cpu`).

    To look at what such a node saved would run its hook: a checkpoint would compute its forward again.
    """

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[float] = []
        self._depth = 0

    def __contains__(self, node: object) -> bool:
        if not self._begins:
            return False
        sequence = internals.sequence_number(node)
        if sequence is None:
            return False
        place = bisect_right(self._begins, sequence) - 1
        return place >= 0 and sequence < self._ends[place]

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Take note of each `saved_tensors_hooks` that is entered."""
        hooks: Any = torch.autograd.graph.saved_tensors_hooks
        enter, leave = hooks.__enter__, hooks.__exit__

        def entered(this: Any) -> Any:
            if self._depth == 0:
                self._begins.append(internals.next_sequence_number())
                self._ends.append(math.inf)
            self._depth += 1
            return enter(this)

        def left(this: Any, *exception: Any) -> Any:
            self._depth -= 1
            if self._depth == 0:
                self._ends[-1] = internals.next_sequence_number()
            return leave(this, *exception)

        hooks.__enter__, hooks.__exit__ = entered, left
        try:
            yield
        finally:
            hooks.__enter__, hooks.__exit__ = enter, leave


def _parameters(optimizer: Any) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


@contextlib.contextmanager
def _replaced(owner: Any, name: str, before: Callable[..., None]) -> Iterator[None]:
    original = getattr(owner, name)

    @functools.wraps(original)
    def replacement(*arguments: Any, **keywords: Any) -> Any:
        before(*arguments, **keywords)
        return original(*arguments, **keywords)

    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextlib.contextmanager
def _iterating(through: Callable[[Any, Iterator[Any]], Iterator[Any]]) -> Iterator[None]:
    original = DataLoader.__iter__

    def iterate(loader: Any) -> Any:
        return through(loader, original(loader))

    DataLoader.__iter__ = iterate  # type: ignore[method-assign]
    try:
        yield
    finally:
        DataLoader.__iter__ = original  # type: ignore[method-assign]

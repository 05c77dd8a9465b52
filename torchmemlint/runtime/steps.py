"""Where the steps of a program end: after each step of an optimizer, and after each batch of a loader.

In a program that has made neither, backwards and calls of modules can stand in for them.

All hooks are public: the optimizers' global step hooks, and wrappers around `DataLoader.__iter__`,
`torch.autograd.backward` and `torch.autograd.grad` that are taken away again.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.optim import optimizer as optimizers
from torch.utils.data import DataLoader

from torchmemlint.runtime.failures import Failures

OnStep = Callable[[str], None]
"""Is told the series of each step that ends: `optimizer 1`, `loader 2`."""


class Steps(contextlib.AbstractContextManager["Steps"]):
    """While entered, tells of steps. Fill the lists before. `failures` counts what observers raise.

    What `on_step` raises is raised in the program: it is where a run is stopped, and where users put their own.
    """

    def __init__(self, failures: Failures | None = None) -> None:
        self.failures = failures if failures is not None else Failures()
        self.before_step: list[Callable[[Any], None]] = []  # given the optimizer
        self.after_step: list[Callable[[Any], None]] = []  # given the optimizer, before the step is told
        self.on_batch: list[Callable[[Any], None]] = []  # given the batch
        self.on_backward: list[Callable[[Any], None]] = []  # given the roots, before it runs
        self.after_backward: list[Callable[[Any], None]] = []  # given the roots, when it has run or failed
        self.on_step: list[OnStep] = []
        self.begin_pass: Callable[[], Callable[[int], bool]] | None = None
        """Called when a loader's pass begins; what it gives is asked after each batch whether the pass ends here."""
        self.after_pass: list[
            Callable[[str, int], None]
        ] = []  # given the loader's series, and how many batches it gave
        self.on_root_backward: list[Callable[[], None]] = []  # after each `backward`, where it stands in for a step
        self.on_call: list[Callable[[], None]] = []  # after a module's call without a graph, where that does
        self._calling = threading.local()  # its `depth`: of modules that call each other
        self._standing_in: contextlib.ExitStack | None = None
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._count = itertools.count(1)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Steps:
        """Put the hooks in place."""
        pre = optimizers.register_optimizer_step_pre_hook(self._before_step)
        self._stack.callback(pre.remove)
        post = optimizers.register_optimizer_step_post_hook(self._after_step)
        self._stack.callback(post.remove)
        for name, after in (("backward", self._after_root_backward), ("grad", self._after_backward)):
            around = _replaced(torch.autograd, name, self._before_backward, after)
            self._stack.enter_context(around)
        self._stack.enter_context(_iterating(self._batches))
        if self.on_root_backward or self.on_call:
            self._stand_in()
        return self

    def _stand_in(self) -> None:
        """Let backwards and calls of modules tell of steps, until the program makes an optimizer or a loader."""
        standing_in = self._standing_in = self._stack.enter_context(contextlib.ExitStack())
        for owner in (torch.optim.Optimizer, DataLoader):
            around = _replaced(owner, "__init__", lambda *_, **__: self._no_longer(), lambda *_, **__: None)
            standing_in.enter_context(around)
        modules: Any = torch.nn.modules.module
        before = modules.register_module_forward_pre_hook(self._before_call)
        after = modules.register_module_forward_hook(self._after_call, always_call=True)
        standing_in.callback(before.remove)
        standing_in.callback(after.remove)

    def _no_longer(self) -> None:
        standing_in, self._standing_in = self._standing_in, None
        if standing_in is not None:
            standing_in.close()

    @property
    def _depth(self) -> int:
        return getattr(self._calling, "depth", 0)

    def _before_call(self, module: Any, arguments: Any) -> None:
        self._calling.depth = self._depth + 1

    def _after_call(self, module: Any, arguments: Any, result: Any) -> None:
        self._calling.depth = max(0, self._depth - 1)
        if self._depth == 0 and self._standing_in is not None and not torch.is_grad_enabled():
            for told in self.on_call:
                told()

    def __exit__(self, *exception: object) -> None:
        """Take the hooks away."""
        self._stack.close()

    def _before_step(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        self.failures.tell(self.before_step, optimizer)

    def _after_step(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        self.failures.tell(self.after_step, optimizer)
        self.ended("optimizer", optimizer)

    def _before_backward(self, roots: Any, *_: Any, **__: Any) -> None:
        self.failures.tell(self.on_backward, roots)

    def _after_backward(self, roots: Any, *_: Any, **__: Any) -> None:
        self.failures.tell(self.after_backward, roots)

    def _after_root_backward(self, *arguments: Any, **keywords: Any) -> None:
        self._after_backward(*arguments, **keywords)
        if self._standing_in is not None:
            for told in self.on_root_backward:
                told()

    def _batches(self, loader: Any, batches: Iterator[Any]) -> Iterator[Any]:
        return _Pass(self, loader, batches)

    def ended(self, family: str, whose: Any) -> None:
        """Tell of a step."""
        series = self.series(family, whose)
        for observer in self.on_step:
            observer(series)

    def series(self, family: str, whose: Any) -> str:
        """What the steps of an optimizer, or the batches of a loader, are called."""
        number = self._numbers.get(whose)
        if number is None:
            number = self._numbers[whose] = next(self._count)
        return f"{family} {number}"


class _Pass:
    """A loader's iterator that tells of its batches. Like the loader's own, it keeps no batch that it gave."""

    def __init__(self, steps: Steps, loader: Any, batches: Iterator[Any]) -> None:
        self._steps = steps
        self._loader = loader
        self._batches: Iterator[Any] | None = batches
        self._given = 0
        self._enough = steps.begin_pass() if steps.begin_pass is not None else None

    def __iter__(self) -> _Pass:
        return self

    def __next__(self) -> Any:
        """The next batch; its request ends the step of the one before."""
        if self._batches is None:
            raise StopIteration
        if self._given:
            self._steps.ended("loader", self._loader)
            if self._enough is not None and self._enough(self._given):
                self._batches = None  # ends the loader's workers
                self._over()
                raise StopIteration
        try:
            batch = next(self._batches)
        except StopIteration:
            self._over()
            raise
        self._given += 1
        self._steps.failures.tell(self._steps.on_batch, batch)
        return batch

    def _over(self) -> None:
        if self._given:
            self._steps.failures.tell(self._steps.after_pass, self._steps.series("loader", self._loader), self._given)

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._batches, name)


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


@contextlib.contextmanager
def _replaced(owner: Any, name: str, before: Callable[..., None], after: Callable[..., None]) -> Iterator[None]:
    original = getattr(owner, name)

    @functools.wraps(original)
    def replacement(*arguments: Any, **keywords: Any) -> Any:
        before(*arguments, **keywords)
        try:
            return original(*arguments, **keywords)
        finally:
            after(*arguments, **keywords)

    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)

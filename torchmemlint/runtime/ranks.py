"""The processes of a program for torchrun: begun together, and ended together. Knows nothing of torch."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from torchmemlint.runtime.order import Order
from torchmemlint.runtime.process import Child
from torchmemlint.runtime.results import End, RunResult
from torchmemlint.runtime.several import together
from torchmemlint.runtime.torchrun import free_port

_ALONE = 5.0
"""Seconds that the ranks have to end by themselves when one has ended badly, before they are told to..."""
_TOLD = 15.0
"""... and after that, before they are ended from without."""


class Ranks:
    """The processes of a program for torchrun; what a `Child` is for one."""

    def __init__(self, order: Order, *, beside_others: bool) -> None:
        port = free_port()
        self._children: list[Child] = []
        self._bad_since: float | None = None
        self._looked: set[int] = set()
        self._told = -1
        self._orders = [order.of_rank(rank, port) for rank in range(order.program.processes)]
        try:
            for one in self._orders:
                Path(one.folder).mkdir()
                self._children.append(Child(one, beside_others=beside_others))
        except BaseException:
            self.end()
            raise

    def pause(self) -> None:
        """Wait a moment, or until the first of those that still run ends."""
        still = [child for child in self._children if not child.has_ended]
        if still:
            still[0].pause()

    def new_steps(self) -> int | None:
        """How many steps the slowest has made, where that has changed."""
        for child in self._children:
            child.new_steps()
        steps = min(child.told for child in self._children)
        if steps == self._told:
            return None
        self._told = steps
        return steps

    def new_output(self) -> bytes:
        """What they have written since this was asked last."""
        return b"".join(child.new_output() for child in self._children)

    def is_over(self) -> bool:
        """Whether all have ended. When one has ended badly, the others are not waited for for long."""
        over = [child.is_over() for child in self._children]
        now = time.monotonic()
        for rank, ended in enumerate(over):
            if ended and rank not in self._looked:
                self._looked.add(rank)
                if self._bad_since is None and self._children[rank].result().end is not End.FINISHED:
                    self._bad_since = now
        if all(over) or self._bad_since is None:
            return all(over)
        if now > self._bad_since + _ALONE:
            for order in self._orders:
                order.leave_file.touch()
        return now > self._bad_since + _ALONE + _TOLD

    def kill(self) -> None:
        """End what is left of all of them."""
        for child in self._children:
            child.kill()

    def end(self) -> None:
        """The same, and wait for them, and remove what they leave behind."""
        self.kill()
        for child in self._children:
            child.end()

    def result(self) -> RunResult:
        """What they did, when they have ended."""
        found = [replace(child.result(), rank=rank) for rank, child in enumerate(self._children)]
        return together(found)

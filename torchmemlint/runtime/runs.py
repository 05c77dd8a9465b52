"""The runs of a verification: each made once, one after another or some side by side, and told as they go on.

Knows nothing of torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from torchmemlint.immutable import immutable
from torchmemlint.runtime.commands import Options
from torchmemlint.runtime.launch import launch_all
from torchmemlint.runtime.order import Order, Program
from torchmemlint.runtime.results import End, RunResult


class Progress(Protocol):
    """Is told what goes on."""

    def begin(self, label: str, number: int, of: int | None) -> None:
        """A run begins; `of` is None while it is not known how many there will be."""

    def steps(self, number: int, made: int) -> None:
        """The run of this number has made so many steps."""

    def end(self, number: int) -> None:
        """It has ended."""


@immutable()
class Done:
    """A run that has ended."""

    order: Order
    result: RunResult


@immutable()
class Wanted:
    """A run that is made at most once. `overlay` are paths and the texts that stand in for theirs."""

    label: str
    overlay: tuple[tuple[str, str], ...] = ()
    tracked: bool = True
    analysis: str | None = None
    least: int = 0  # steps

    @property
    def settings(self) -> dict[str, Any]:
        """As an order takes them."""
        return {
            "overlay": dict(self.overlay),
            "tracked": self.tracked,
            "analysis": self.analysis,
            "least": self.least,
        }

    @property
    def same(self) -> Wanted:
        """What two runs have in common that are the same, whatever they are called."""
        return replace(self, label="")


class Runs:
    """Makes runs of a program. `planned` is how many there will be at least, as far as that is known."""

    def __init__(self, program: Program, options: Options, progress: Progress, folder: Path) -> None:
        self.options = options
        self.begun = 0
        self.planned: int | None = None
        self._program = program
        self._progress = progress
        self._folder = folder
        self._done: dict[Wanted, Done] = {}

    def make(self, label: str, **settings: Any) -> Done:
        """A run with these settings of an order."""
        return self._make([(label, settings)], 1)[0]

    def get(self, wanted: Wanted) -> Done:
        """A run, made now if it was not yet."""
        if wanted.same not in self._done:
            self._done[wanted.same] = self.make(wanted.label, **wanted.settings)
        return self._done[wanted.same]

    def ahead(self, wanted: Sequence[Wanted], at_once: int, usual: End) -> bool:
        """Make runs side by side, for `get` to find; whether that was worth it.

        Beside others a program may run out of time or memory. So what does not end as it usually does is not kept:
        it is made again when it is asked for, by itself. Nor are times of steps, which are the others' doing, too.
        """
        new: dict[Wanted, Wanted] = {}
        for one in wanted:
            if one.same not in self._done:
                new.setdefault(one.same, one)
        if at_once < 2 or len(new) < 2:
            return False
        made = self._make([(one.label, one.settings) for one in new.values()], at_once)
        for same, done in zip(new, made, strict=True):
            if done.result.end is usual or done.result.end is End.FINISHED:
                self._done[same] = replace(done, result=replace(done.result, seconds_per_step=None))
        return True

    def _make(self, runs: Sequence[tuple[str, dict[str, Any]]], at_once: int) -> list[Done]:
        first = self.begun + 1
        orders = [self.options.order(self._program, self._folder, **self._with_values(how)) for _, how in runs]

        def begins(number: int) -> None:
            self.begun += 1
            planned = None if self.planned is None else max(self.planned, self.begun)
            self._progress.begin(runs[number][0], self.begun, planned)

        results = launch_all(
            orders,
            at_once,
            begins,
            lambda number, made: self._progress.steps(first + number, made),
            lambda number: self._progress.end(first + number),
        )
        return [Done(order, result) for order, result in zip(orders, results, strict=True)]

    def _with_values(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {"values": not self.options.fake, **settings}

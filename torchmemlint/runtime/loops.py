"""The loops of a program while it runs: their turns, the steps inside them, and when they have had enough.

The *budget* of a run is a number of steps, not of seconds, so that two runs can be compared. It works as Lightning's
`limit_train_batches` does, for any program:

- a pass over a loader ends after N batches; where gradients are accumulated over several batches, after N optimizer
  steps, at most `ACCUMULATED` times N batches;
- a loop of the project with steps inside (optimizer steps; without any, batches) is left once it has had N of them
  and two turns of its own. So a training script gets to its evaluation, to its second epoch, and to its end;
- in a program that has made neither an optimizer nor a loader, a backward is a step; so is a turn of an outermost
  loop in which a module is called without a graph (an evaluation, a generation), for that loop;
- a loop without steps inside (over the layers of a model, over time) is never cut;
- the whole run is stopped when one optimizer or loader has had `WHOLE` times N steps.

What was cut is counted. Knows nothing of torch.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from torchmemlint.runtime.failures import Failures

FAMILIES = ("optimizer", "loader", "backward", "call")
"""What steps, most telling first; the last two stand in where neither of the others was made."""
ACCUMULATED = 4
WHOLE = 10
_REMEMBERED = 20_000  # turns of one entry whose moments are kept
_SWALLOWED = 5  # times that the order to stop may be caught by the program before the process ends by itself


class StopRun(BaseException):
    """Ends the program from within. Not an `Exception`, which programs catch."""


@dataclass(slots=True, eq=False)
class Entry:
    """One time that a loop was entered, until it was left."""

    loop: Loop
    moments: array[int] = field(default_factory=lambda: array("q"))  # in events: the beginning of each turn
    turns: int = 0
    steps: Counter[str] = field(default_factory=Counter)  # by series, those inside
    began: int = 0  # in events
    ended: int | None = None
    cut: bool = False
    called: int = 0  # the last turn in which a module was called without a graph
    around: Entry | None = None  # that of the loop of the project which ran when this one was entered
    thread: int = field(default_factory=threading.get_ident)

    @property
    def leads(self) -> bool:
        """Whether no other thread is in as late a turn of the same loop: the first to begin one begins it for all."""
        return all(one.turns < self.turns for one in tuple(self.loop.running) if one.thread != self.thread)

    @property
    def had(self) -> int:
        """The steps inside: those of the busiest optimizer, where none stepped those of a loader, and so on."""
        for family in FAMILIES:
            found = [count for series, count in self.steps.items() if series.startswith(family)]
            if found:
                return max(found)
        return 0

    @property
    def within_a_step(self) -> bool:
        """Whether it ran inside of a step, where bytes grow by nature: a loop over layers, or over time.

        The nearest loop around it that has steps tells: one step in each turn, or less, makes it a loop over
        batches; more make it one over epochs, in which an evaluation has a loop of its own.
        """
        around = self.around
        while around is not None and not around.steps:
            around = around.around
        return not self.steps and around is not None and around.had <= 1.5 * around.turns


@dataclass(slots=True, eq=False)
class Loop:
    """A `for` or `while` of the project."""

    path: str
    line: int
    entries: int = 0
    turns: int = 0
    cuts: int = 0
    longest: Entry | None = None  # of those with steps inside the one with most turns; without any, of all
    running: set[Entry] = field(default_factory=set)

    @property
    def series(self) -> str:
        """Its name as a series of marks in a ledger."""
        return f"loop {self.path}:{self.line}"


class LoopWatch:
    """Follows the loops that run now, and keeps the budget. `now` gives the number of events so far.

    `failures` counts what its observers raise.
    """

    def __init__(self, steps: int, seconds: float, now: Callable[[], int], failures: Failures | None = None) -> None:
        self._failures = failures if failures is not None else Failures()
        self.loops: dict[tuple[str, int], Loop] = {}
        self.counts: Counter[str] = Counter()  # steps by series, of the whole run
        self.cut_passes = 0
        self.stopped: str | None = None  # why the whole run was
        self.on_turn: list[Callable[[Entry], None]] = []
        self.on_leave: list[Callable[[Entry], None]] = []
        self.when_swallowed: Callable[[], None] | None = None
        self.steps = steps
        self._deadline = time.monotonic() + seconds
        self._now = now
        self._raised = 0
        self._of_thread = threading.local()
        self.paused = False

    @property
    def active(self) -> list[Entry]:
        """The loops that run now in this thread, the outermost first."""
        try:
            found: list[Entry] = self._of_thread.active
        except AttributeError:
            found = self._of_thread.active = []
        return found

    # --- what the instrumented program calls

    def enter(self, path: str, line: int) -> Entry:
        """A loop begins."""
        loop = self.loops.get((path, line))
        if loop is None:
            loop = self.loops[path, line] = Loop(path, line)
        loop.entries += 1
        entry = Entry(loop, began=self._now(), around=self.active[-1] if self.active else None)
        loop.running.add(entry)
        self.active.append(entry)
        return entry

    def turn(self, entry: Entry) -> bool:
        """A turn begins; True when the loop is to be left instead."""
        self.check()
        if entry.turns >= 2 and entry.had >= self.steps:
            entry.cut = True
            entry.loop.cuts += 1
            return True
        entry.turns += 1
        entry.loop.turns += 1
        if entry.turns <= _REMEMBERED:
            entry.moments.append(self._now())
        self._failures.tell(self.on_turn, entry)
        return False

    def leave(self, entry: Entry) -> None:
        """A loop ends, in whatever way; its locals still live."""
        self._failures.tell(self.on_leave, entry)
        entry.ended = self._now()
        entry.loop.running.discard(entry)
        for place in range(len(self.active) - 1, -1, -1):  # a generator's loop may end out of order
            if self.active[place] is entry:
                del self.active[place]
                break
        best = entry.loop.longest
        if best is None or (bool(entry.steps), entry.turns) > (bool(best.steps), best.turns):
            entry.loop.longest = entry

    # --- what the steps tell

    def calls_in_a_new_turn(self) -> bool:
        """Whether a module's call that happens now is the first in this turn of the outermost loop."""
        if not self.active or self.active[0].called == self.active[0].turns:
            return False
        self.active[0].called = self.active[0].turns
        return True

    def step(self, series: str) -> None:
        """A step ended."""
        self.counts[series] += 1
        for entry in self.active:
            entry.steps[series] += 1
        if self.counts[series] >= WHOLE * self.steps * (1 if series.startswith("optimizer") else ACCUMULATED):
            self.stopped = self.stopped or f"{self.counts[series]} steps of {series}"
        self.check()

    def enough_batches(self, batches: int, optimizer_steps: int, backwards: int) -> bool:
        """Whether a loader's pass ends here, after so many batches, and so many of these within it."""
        if batches < self.steps:
            return False
        if backwards > optimizer_steps and optimizer_steps < self.steps and batches < ACCUMULATED * self.steps:
            return False
        self.cut_passes += 1
        return True

    def check(self) -> None:
        """Stop the program if it has had enough; StopRun goes through it."""
        if self.paused:
            return
        if self.stopped is None and time.monotonic() > self._deadline:
            self.stopped = "time"
        if self.stopped is not None:
            self._raised += 1
            if self._raised > _SWALLOWED and self.when_swallowed is not None:
                self.paused = True
                self.when_swallowed()
            raise StopRun

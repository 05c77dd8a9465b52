"""Programs with the labels that running them gave."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from .build import Program
from .emission import Mark

HARMFUL = ("leak", "waste")


@dataclass(frozen=True)
class Label:
    """What running a program said of it."""

    truth: str  # leak, deferred, waste or clean
    unseen_caller: bool  # nobody in the files calls the entry
    grows: bool
    live: bool  # nodes with saved tensors grow; otherwise the graph is spent
    nodes_per_iteration: float
    bytes_per_iteration: float
    passes: int
    recorded: int
    used: int
    nodes: tuple[int, ...]
    put_confirmed: bool | None = None  # without the marked lines nothing grows; None: that could not be told

    @property
    def harmful(self) -> bool:
        """Whether there is something to find."""
        return self.truth in HARMFUL


@dataclass(frozen=True)
class Example:
    """A program, its label, and where it stands among the others."""

    name: str
    program: Program
    label: Label
    pair: int
    strange: str = ""  # the one strange value, in a grid

    @property
    def places(self) -> set[Mark]:
        """The lines that a finding may stand on: of the puts, and of the passes."""
        return {mark for kind in ("put", "pass") for mark in self.program.marks.get(kind, ())}


def fingerprint(program: Program) -> str:
    """What tells the text of a program from any other."""
    return hashlib.sha256(program.text.encode()).hexdigest()[:16]

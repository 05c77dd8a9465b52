"""`try` statements being walked: what their bodies called, and what is known in their handlers (`flow.failures`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchmemlint.flow.facts import FailureHeld
from torchmemlint.immutable import immutable
from torchmemlint.syntax.source_module import Site


@immutable()
class Work:
    """A call in a `try` body, or in a handler."""

    site: Site
    callee: str  # source text of what is called
    target: str  # what its result is assigned to, "return" where it is returned
    computes: bool  # it runs a module, or a backward
    guarded: bool  # with gradients off


@dataclass(eq=False, slots=True)
class Attempt:
    """The body of a `try`."""

    outer: Attempt | None
    calls: list[Work] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Handler:
    """An `except` clause."""

    site: Site
    attempt: Attempt
    outer: Handler | None
    exhausted: bool  # memory ran out, for all that is known where the walk is
    tests: int  # how many `if` conditions stand around the clause itself
    told: dict[str, bool] = field(default_factory=dict)  # names that hold the answer to whether memory ran out
    excluded: bool = False  # from here on, it is another error
    on_host: bool = False  # something was moved to the host: what follows need not fit on the device
    cleared: bool = False  # the traceback has let go of its frames
    stored: list[FailureHeld] = field(default_factory=list)

"""Forward passes that record a graph, and why that is waste."""

from __future__ import annotations

import enum

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain.refs import Loop, Point, Ref, Source
from torchmemlint.immutable import immutable


class Reason(enum.Enum):
    """Why a pass need not record a graph."""

    EVALUATING = "the module is in evaluation mode"
    READ = "only numbers are read from its results"
    DETACHED = "all its results are detached"
    UNTRAINED = "nothing trains the networks that it leads to"
    ROLE = "what runs it infers or evaluates"
    UNUSED = "nothing takes what it gives"


@immutable()
class Pass:
    """A forward pass that records a graph."""

    point: Point
    source: Source
    module: frozenset[Ref]
    loops: frozenset[Loop]
    differentiated: bool
    reason: Reason | None  # None: nothing shows that it is waste
    doubts: frozenset[Doubt]
    evaluating: bool  # was eval() called on its network last?
    kept: Point | None  # what lets its graph live on from iteration to iteration
    switched: Point | None  # where eval() was called on its network
    through: bool = False  # is not what it gives read or detached, but only what other networks make of that?

"""Why a forward pass is waste that records a graph."""

from __future__ import annotations

import enum


class Reason(enum.Enum):
    """Why a pass need not record a graph."""

    EVALUATING = "the module is in evaluation mode"
    READ = "only numbers are read from its results"
    DETACHED = "all its results are detached"
    UNTRAINED = "nothing trains the networks that it leads to"
    ROLE = "what runs it infers or evaluates"
    UNUSED = "nothing takes what it gives"

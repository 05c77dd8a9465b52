"""In which manner something is kept, read, reset or remarked."""

from __future__ import annotations

import enum
from typing import NamedTuple

from torchmemlint.flow.ir.ops import Call, CallMethod
from torchmemlint.flow.ir.places import Spread


class How(enum.Enum):
    """In which way a place grows or keeps."""

    SUM = "sum"  # what it held is part of what it holds next
    COLLECTION = "collection"  # elements are added
    HOOK = "hook"  # put there by a hook
    CACHE = "cache"  # the results that a decorator keeps
    OUTPUT = "output"  # what a framework keeps that its steps return
    SLOT = "slot"  # stands in an attribute or global until it is replaced


class Reset(enum.Enum):
    """How often something that grows is emptied or replaced."""

    NEVER = "never"
    SELDOM = "seldom"  # a variable of its own, and nothing says that it is after a few times
    OFTEN = "often"  # or it is not known how often


class Stored(enum.Enum):
    """What is it that a place keeps?"""

    HOLDER = "holder"  # it holds tensors that have graphs
    GRAPH = "graph"  # it has a graph itself
    TENSOR = "tensor"  # so it has, and it is a tensor on all paths


class Remark(enum.Enum):
    """What of what happens is remarkable by itself."""

    DROPPED_MODE = "a gradient mode is made, and never entered"
    PASSED_MODE = "a gradient mode stands before `and`, which gives what stands behind it"
    UNCALLED_MODE = "a block is put under the class of a gradient mode, and not under one"
    MODE_OF_CLASS = "a class is put under a gradient mode"
    VOLATILE = "a tensor is asked to record no graph in a way that has no effect"
    MODULE_ATTRIBUTE = "`requires_grad` of a module is set, as if it were a tensor"
    THREADED = "a function is run in another thread, where gradients are on"
    ASKED = "it is asked whether gradients are recorded"
    DATA = "the values of what may be a tensor are taken by way of `.data`"
    DETACHED = "what may have a graph is detached"


# By rules, or before and after a fix, which ask for more than that it happens.
TAKEN_UP = frozenset({Remark.THREADED, Remark.ASKED, Remark.DATA, Remark.DETACHED})


class Given(NamedTuple):
    """The one argument of a call that has a graph, by position."""

    position: int
    stored: Stored

    @classmethod
    def of(cls, site: object, positional: int, position: int, stored: Stored) -> Given | None:
        """Return it for what is called with so many; None where the call passes others, as `checkpoint` does."""
        given = site.arguments if isinstance(site, Call | CallMethod) else ()
        plain = sum(one.spread is Spread.PLAIN for one in given)
        return cls(position, stored) if position < positional == plain else None


class Reading(enum.Enum):
    """What became of a value's numbers."""

    NUMBER = "number"  # item, float, printed, compared
    DETACHED = "detached"
    DISCRETE = "discrete"  # argmax and the like
    ARRAY = "array"  # numpy: who reads it there is not seen
    TEXT = "text"  # as only a text can be: it has no graph
    JOINED = "joined"  # its elements became a part of a larger tensor
    USED = "used"  # it was computed with
    MET = "met"  # without a graph, it was given to what may record one
    ADOPTED = "adopted"  # it became a parameter as it is
    RERUN = "rerun"  # a backward pass through it runs once more what made it
    MEASURED = "measured"  # how much memory it takes was looked at, with its graph
    HOOKED = "hooked"  # its gradient is asked for: that fails without a graph


# What is computed of its numbers is a tensor.
GOING_ON = frozenset({Reading.JOINED, Reading.USED, Reading.MET, Reading.RERUN})

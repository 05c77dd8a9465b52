"""Owners: in which manner something other than autograd holds networks and tensors."""

from __future__ import annotations

import enum
from typing import TypeAlias

from torchmemlint.immutable import immutable


@immutable()
class Caching:
    """What the cache of a function keeps."""

    function: str
    method: bool
    parameter: str  # that is given a network
    holds: bool  # or an object that holds one?


class OnContext(enum.Enum):
    """What of an operation's tensors its context holds."""

    OUTPUT = "output"
    VIEW = "view of an output"
    INPUT = "input"


@immutable()
class Skipped:
    """What variables hold of a batch that is left out."""

    names: tuple[str, ...]
    caught: bool  # where memory has run out?
    can_go: bool  # is each of them bound there, and read nowhere before it is bound anew?


@immutable()
class Registered:
    """What a module, or its parameters, hold more and more hooks of."""

    kind: str  # the method that registers them


@immutable()
class Circling:
    """How something holds itself."""

    way: str  # "Trainer.steps['train'] → train_step() → Trainer"
    closure: bool  # is it a function that calls itself?


@immutable()
class Hoarding:
    """What still holds networks that nothing runs any more."""

    variable: str


class Left(enum.Enum):
    """Why what a hook stores stays."""

    POPPED = "only a hook of backward takes it away"
    REMOVED = "the hook is removed, and nothing else takes it away"
    GROWN = "each pass adds to it, and nothing takes anything away"


@immutable()
class Remaining:
    """What the hooks of modules leave behind."""

    holder: str  # as it is written in the hook
    left: Left


Owner: TypeAlias = Caching | OnContext | Skipped | Registered | Circling | Hoarding | Remaining

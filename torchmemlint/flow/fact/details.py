"""Details: what only the rule asks that words a case."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeAlias

from torchmemlint.flow.domain.manners import Given
from torchmemlint.flow.fact.data import Access
from torchmemlint.flow.fact.overwriting import Need
from torchmemlint.flow.fact.owners import Owner
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.services import Each
from torchmemlint.flow.fact.zeroing import Shown
from torchmemlint.immutable import immutable


class Arriving(enum.Enum):
    """What becomes of a graph at a place, or what may train there."""

    DIFFERENTIATED = "is differentiated"
    HOOKED = "is asked for a gradient"
    RETURNED = "is returned"
    STORED = "is stored"
    RERUN = "makes a backward pass run its network once more"
    GIVEN = "is given to code that was not seen"
    TRAINED = "may be trained by code that was not seen"
    ASKED = "it is asked whether gradients are recorded"
    CAST = "autocast casts the weights of a pass that is differentiated"
    DETACHED = "is detached"
    CACHED = "`parametrize.cached` keeps the weights of a pass that is differentiated"


class Graphs(enum.Enum):
    """Has what is detached a graph? The name that such an arrival begins with."""

    SEEN = "a graph"
    UNKNOWN = "perhaps a graph"
    NONE = "no graph"


Begin: TypeAlias = tuple[tuple[Place, ...], str]  # where a graph begins, with the calls that led there; a parameter


@immutable()
class Arrival:
    """A graph goes somewhere. `doubtful`: it may be a waste."""

    how: Arriving
    at: tuple[Place, ...]  # with the calls that led there, innermost first
    begin: Begin
    doubtful: bool


@immutable()
class Discarding:
    """How it comes that a pass hands backward on for nothing."""

    step: Place  # for which backward runs
    zeroed: Place  # the gradients that it leaves in the other networks
    argument: Given | None  # that can be detached
    alone: Place | None  # the pass before, if nothing else needs its graph
    spares: bool  # is the graph of the backward pass retained for nothing else?


@immutable()
class Again:
    """How a graph is differentiated again in vain."""

    step: Place | None  # that has changed its parameters by then; None: only the last iteration does so


@immutable()
class Serving:
    """Which function that manages memory or watches the program is called, and whether for every batch."""

    name: str  # qualified
    each: Each | None  # what shows that it is called for every batch
    shown: Place | None  # and where
    inside: bool  # does the call stand in the loop itself?


@immutable()
class Held:
    """A variable that still holds a large result when a loop comes round."""

    name: str
    shown: Place  # what shows that it is large
    wide: str | None  # the class of the network, where it is that


@immutable()
class Memo:
    """What keeps the samples of a data set."""

    cls: str
    attribute: str  # or empty, for a decorator
    at: Place | None  # what stores them, where that is seen
    made: Place | None  # where what holds them is made
    loader: Place | None  # whose workers end before they could ask for a sample again
    workers: int | None  # how many of these are written out


@immutable()
class Loading:
    """How tensors are read from a file without saying where they go, and what becomes of them."""

    name: str  # qualified, of the function that reads them
    copied: Place | None  # where they are copied into tensors that exist already
    module: Place | None  # or what shows that it is a whole module
    saved: Place | None  # or where it, or what is computed from it, is saved again; none of them: it is returned
    to_modules: bool  # are they copied to others than optimizers?
    alone: bool  # is nothing else done with them but that they are read as numbers?
    from_host: bool  # do these files save what they moved to the host first?
    mixed: bool  # is something computed of them and of those of another file?
    small: bool  # are they known to be copied into little?


@immutable()
class Bound:
    """What was read from a file, copied, and stays bound while the program works."""

    names: tuple[str, ...]
    on_host: bool
    as_saved: bool  # or on the device that it was saved from?
    copied: Place
    last: Place  # where one of the names is used for the last time
    work: Place  # what runs after that
    after: Place | None  # behind which the names can be deleted


@immutable()
class Precision:
    """How it comes that float64 is brought to a device."""

    array: Place  # where numpy makes it
    maker: str  # qualified
    taken: Place | None  # the call that makes a tensor of it, if it stands in what brings that to the device
    cast: bool  # is it cast to less as soon as it is there?


@immutable()
class Creating:
    """How a tensor is created on the host that is moved at once."""

    created: Place
    exact: bool  # do the same numbers come out on a device?
    same_place: bool  # does `device=` put it there as well?


@immutable()
class Casting:
    """How a tensor is created that is cast at once."""

    created: Place
    before: str  # the type that it is created as
    dtype: str  # and becomes
    exact: bool  # do the same numbers come out if it is created as that?


@immutable()
class Built:
    """A loader that runs build: what it is given by name, as far as that is known, else `...`."""

    place: Place
    qualified: str
    given: Mapping[str, object]
    more: bool  # or may it be given others?

    def merged(self, other: Built) -> Built:
        """The loader of the same place that is given what one or the other is."""
        names = self.given.keys() | other.given.keys()
        given = {name: self.get(name) if self.get(name) == other.get(name) else ... for name in names}
        return Built(self.place, self.qualified, given, self.more or other.more)

    def get(self, name: str) -> object:
        """What it is given under a name: a constant, `...` where that is not known, None where it is given nothing."""
        return self.given.get(name, ... if self.more else None)


@immutable()
class Feeding:
    """How a loader loads."""

    loader: Place
    pins: bool
    workers: int | str | None  # processes: a number, or the function that counts the CPUs
    given: bool  # is a number of workers given?
    chosen: bool  # may somebody say otherwise?
    counted: Place | None  # where the CPUs are counted
    ahead: int | None  # batches that are kept ready
    ranks: bool  # is there one in each process of a distributed program?
    iterated: Place | None
    again: Place | None  # the loop that repeats that
    moved: Place | None  # where its batches are brought to an accelerator
    beside: tuple[Place, ...]  # and other parts of these


@immutable()
class Placing:
    """How it comes that a tensor is put on an accelerator while data is loaded."""

    entry: str  # what a loader calls: a function, or a method with its class; empty for a lambda
    loader: Place | None  # whose workers call it


@immutable()
class Copied:
    """A list with Python objects for each sample, of which each worker comes to own a copy."""

    cls: Place  # the data set
    name: str  # its
    attribute: str
    what: str  # "a dict for each sample"
    entry: Place  # what is put in
    source: Place  # what there are as many of
    read: Place  # where an entry is read
    by: Feeding  # whose workers


@immutable()
class Activating:
    """How an activation is used that could work in place."""

    kind: str  # the class of torch.nn
    uses: tuple[tuple[str, Place | None, Place | None], ...]  # what makes its input, where, and where it is applied


@immutable()
class Overwriting:
    """How a tensor is overwritten that is still needed."""

    need: Need
    sign: str  # how it is written; empty for a call
    what: str  # the name of the operation that needs it
    other: Place | None  # where that is, or what reads or made it
    target: Place | None  # what it is called where it is overwritten
    built: Place | None  # where the activation is built that does so
    refused: bool  # does torch, or the backward of a function that is known to be differentiated, raise?


OfLoading: TypeAlias = Feeding | Copied | Memo | Placing
About: TypeAlias = (
    Shown
    | Serving
    | OfLoading
    | Access
    | Owner
    | Held
    | Loading
    | Creating
    | Casting
    | Precision
    | Bound
    | Discarding
    | Again
    | Activating
    | Overwriting
)

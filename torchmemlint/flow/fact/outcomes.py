"""Outcomes: what the runs of some files show, said of places in files and not of the engine's objects."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from torchmemlint.amounts import Amount
from torchmemlint.doubts import Confidence, Doubt, confidence, rank
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.domain.manners import Given, How, Remark, Stored
from torchmemlint.flow.fact.callers import Calling
from torchmemlint.flow.fact.data import Access
from torchmemlint.flow.fact.overwriting import Need
from torchmemlint.flow.fact.owners import Owner
from torchmemlint.flow.fact.reasons import Reason
from torchmemlint.flow.fact.services import Each
from torchmemlint.flow.fact.zeroing import Shown
from torchmemlint.flow.ir.ops import Span


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A stretch of a file; lines from 1, columns in bytes of UTF-8 from 0, as in `ast`."""

    path: Path
    span: Span

    def contains(self, other: Place) -> bool:
        """Does it contain another place?"""
        (first, start, last, end), (row, column, end_row, end_column) = self.span, other.span
        return self.path == other.path and (first, start) <= (row, column) and (end_row, end_column) <= (last, end)


class Arriving(enum.Enum):
    """What becomes of a graph at a place, or what may train there."""

    DIFFERENTIATED = "is differentiated"
    RETURNED = "is returned"
    STORED = "is stored"
    GIVEN = "is given to code that was not seen"
    TRAINED = "may be trained by code that was not seen"


Begin: TypeAlias = tuple[tuple[Place, ...], str]  # where a graph begins, with the calls that led there; a parameter


@dataclass(frozen=True, slots=True)
class Arrival:
    """A graph goes somewhere. `doubtful`: it may be a waste."""

    how: Arriving
    at: tuple[Place, ...]  # with the calls that led there, innermost first
    begin: Begin
    doubtful: bool


@dataclass(frozen=True, slots=True)
class Discarding:
    """How it comes that a pass hands backward on for nothing."""

    step: Place  # for which backward runs
    zeroed: Place  # the gradients that it leaves in the other networks
    argument: Given | None  # that can be detached
    alone: Place | None  # the pass before, if nothing else needs its graph
    spares: bool  # is the graph of the backward pass retained for nothing else?


@dataclass(frozen=True, slots=True)
class Again:
    """How a graph is differentiated again in vain."""

    step: Place  # that has changed its parameters by then


@dataclass(frozen=True, slots=True)
class Serving:
    """Which function that manages memory or watches the program is called, and whether for every batch."""

    name: str  # qualified
    each: Each | None  # what shows that it is called for every batch
    shown: Place | None  # and where
    inside: bool  # does the call stand in the loop itself?


@dataclass(frozen=True, slots=True)
class Held:
    """A variable that still holds a large result when a loop comes round."""

    name: str
    shown: Place  # what shows that it is large
    wide: str | None  # the class of the network, where it is that


@dataclass(frozen=True, slots=True)
class Memo:
    """What keeps the samples of a data set."""

    cls: str
    attribute: str  # or empty, for a decorator
    at: Place | None  # what stores them, where that is seen
    made: Place | None  # where what holds them is made
    loader: Place | None  # whose workers end before they could ask for a sample again
    workers: int | None  # how many of these are written out


@dataclass(frozen=True, slots=True)
class Loading:
    """How tensors are read from a file without saying where they go, and what becomes of them."""

    name: str  # qualified, of the function that reads them
    copied: Place | None  # where they are copied into tensors that exist already
    module: Place | None  # or what shows that it is a whole module
    to_modules: bool  # are they copied to others than optimizers?
    alone: bool  # is nothing else done with them but that they are read as numbers?
    from_host: bool  # do these files save what they moved to the host first?


@dataclass(frozen=True, slots=True)
class Bound:
    """What was read from a file, copied, and stays bound while the program works."""

    names: tuple[str, ...]
    on_host: bool
    as_saved: bool  # or on the device that it was saved from?
    copied: Place
    last: Place  # where one of the names is used for the last time
    work: Place  # what runs after that
    after: Place | None  # behind which the names can be deleted


@dataclass(frozen=True, slots=True)
class Precision:
    """How it comes that float64 is brought to a device."""

    array: Place  # where numpy makes it
    maker: str  # qualified
    taken: Place | None  # the call that makes a tensor of it, if it stands in what brings that to the device
    cast: bool  # is it cast to less as soon as it is there?


@dataclass(frozen=True, slots=True)
class Creating:
    """How a tensor is created on the host that is moved at once."""

    created: Place
    exact: bool  # do the same numbers come out on a device?
    same_place: bool  # does `device=` put it there as well?


@dataclass(frozen=True, slots=True)
class Casting:
    """How a tensor is created that is cast at once."""

    created: Place
    before: str  # the type that it is created as
    dtype: str  # and becomes
    exact: bool  # do the same numbers come out if it is created as that?


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Placing:
    """How it comes that a tensor is put on an accelerator while data is loaded."""

    entry: str  # what a loader calls: a function, or a method with its class; empty for a lambda
    loader: Place | None  # whose workers call it


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Activating:
    """How an activation is used that could work in place."""

    kind: str  # the class of torch.nn
    uses: tuple[tuple[str, Place | None, Place | None], ...]  # what makes its input, where, and where it is applied


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Case:
    """A fact that a rule reports."""

    place: Place
    code: str
    doubts: frozenset[Doubt]
    advice: bool = False  # one graph, not a growing number of them
    how: How | None = None  # a graph is kept that way
    reason: Reason | None = None  # or one is recorded for nothing
    loop: Place | None = None  # in which it grows
    graphs: tuple[Place, ...] = ()  # where the graphs begin that are kept
    within: Place | None = None  # where it happens, by what this place calls
    calls: tuple[Place, ...] = ()  # that led there, innermost first
    runs: tuple[Place, ...] = ()  # the forwards of networks that a wasted pass runs
    switched: Place | None = None  # where eval() was called on its network
    amount: Amount | None = None  # the bytes that it concerns, as far as sizes tell
    little: bool = False  # does its graph take next to nothing of an accelerator's memory?
    through: bool = False  # is not it read or detached, but only what other networks make of it?
    kept: Place | None = None  # by what its graph lives on from iteration to iteration
    function: Place | None = None  # around a wasted pass
    beside: tuple[Place, ...] = ()  # what may need gradients there: passes that nothing shows to be waste, and others
    spent: bool = False  # has backward run through the graphs?
    backward: Place | None = None  # where that is
    about: About | None = None  # what only the rule asks that words it
    stored: Stored = Stored.HOLDER
    unmade: bool = False  # by a method of a class that nobody makes, and that trains nothing there?
    repeated: bool = True  # or does it happen once and end with the program?
    making: bool = False  # when an object is made: once for each
    creates: bool = False  # does the backward pass which keeps its graph for nobody make one of the gradients, too?
    remark: Remark | None = None  # or something is remarkable by itself
    moves: tuple[Place, ...] = ()  # or what is kept was brought to a device, and is brought to the host later: where

    @property
    def file(self) -> str:
        """The file that it is reported in."""
        return str(self.place.path)

    @property
    def line(self) -> int:
        """The line that it is reported at."""
        return self.place.span[0]

    @property
    def is_unloaded(self) -> bool:
        """Is it a data set without a loader that loads from it, or without one that has workers?"""
        return isinstance(self.about, Memo | Placing) and self.about.loader is None

    @property
    def confidence(self) -> Confidence:
        """How sure it is."""
        return confidence(self.doubts)


@dataclass(frozen=True, slots=True)
class Forward:
    """A forward pass, in all runs that were seen of it; None where those differ, or where it is not known."""

    place: Place
    gradients: bool | None  # are they enabled?
    evaluating: bool | None  # was eval() called on the network last?
    switched: Place | None  # where
    differentiated: bool  # does a backward pass run through it?
    doubts: frozenset[Doubt]  # whether it is one

    def merged(self, other: Forward) -> Forward:
        """Return what holds of both."""
        return Forward(
            self.place,
            self.gradients if self.gradients is other.gradients else None,
            self.evaluating if self.evaluating is other.evaluating else None,
            self.switched or other.switched,
            self.differentiated or other.differentiated,
            min(self.doubts, other.doubts, key=rank),
        )


@dataclass(frozen=True, slots=True)
class Backward:
    """What differentiates, in all runs that were seen of it."""

    place: Place
    retains: bool  # does it keep the graph?
    creates: bool  # do the gradients have a graph?

    def merged(self, other: Backward) -> Backward:
        """Return what holds of one of them."""
        return Backward(self.place, self.retains or other.retains, self.creates or other.creates)


S = TypeVar("S", Forward, Backward, Built)  # what is seen


def seen_once(found: Iterable[S]) -> tuple[S, ...]:
    """Return what was seen, once for each place, in order of place."""
    known: dict[Place, S] = {}
    for one in found:
        known[one.place] = known[one.place].merged(one) if one.place in known else one
    return tuple(known[place] for place in sorted(known))


@dataclass(frozen=True, slots=True)
class Waste:
    """A pass for which nothing needs gradients, with the calls that led to it, innermost first.

    It is reported at the first of them that leads to no other pass that is differentiated.
    """

    calls: tuple[Place, ...]
    own: tuple[bool, ...]  # of each: does it stand outside of the forward of a network?
    functions: tuple[Place | None, ...]  # and in which function?
    case: Case
    entry: str = ""  # the method of a network by which the run began, where others call it by its name

    def at(self, number: int, used: Iterable[Place]) -> Case:
        """The case at one of the calls. `used` may need gradients."""
        place, function = self.calls[number], self.functions[number]
        beside = {u for u in used if u != place and u.path == place.path and (function is None or function.contains(u))}
        further = self.calls[number + 1 :]
        ordered = tuple(sorted(beside))
        return replace(self.case, place=place, calls=further, function=function, beside=ordered)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the runs of some files show."""

    kept: tuple[Case, ...] = ()
    wanted: frozenset[Place] = frozenset()  # what keeps graphs that (may) be differentiated later, and what led there
    wasted: tuple[Waste, ...] = ()
    unneeded: tuple[Case, ...] = ()  # what backwards keep or are handed, `no_grad`, and loaders without workers
    needed: frozenset[Place] = frozenset()  # those of them that something uses
    noted: tuple[Case, ...] = ()  # what is remarkable by itself, done past autograd, or kept without a graph
    built: tuple[Built, ...] = ()  # loaders
    used: frozenset[Place] = frozenset()  # calls that led to passes that are differentiated
    open: frozenset[Place] = frozenset()  # calls that led to passes which nothing shows to be waste
    cut: frozenset[tuple[Place, ...]] = frozenset()  # those of each such pass in a run that was not followed to its end
    ahead: frozenset[Place] = frozenset()  # functions that such a run may call where it was not followed
    needing: frozenset[Place] = frozenset()  # what differentiates, may do so, or computes with a graph of its caller
    arriving: frozenset[Arrival] | None = None  # None: nobody has asked for it
    forwards: tuple[Forward, ...] = ()
    backwards: tuple[Backward, ...] = ()
    called: Mapping[Place, Mode] = field(default_factory=dict)  # functions, and in which mode
    calling: Mapping[str, frozenset[Calling]] = field(default_factory=dict)  # methods, by their names alone
    left: Mapping[Place, Mode] = field(default_factory=dict)  # functions, by runs that were cut, and in which mode
    mentioned: frozenset[str] = frozenset()  # by their functions: names
    files: frozenset[Path] = frozenset()  # that were run, or might have been
    sought: frozenset[str] = frozenset()  # where it was looked for files
    whole: bool = True  # or was there more to run than they may take?
    failure: Exception | None = None  # of ours, that ended the runs
    asked: frozenset[str] = frozenset()  # names for which all files were searched

    def for_others(self) -> Outcome:
        """What the runs of other files ask for."""
        return Outcome(called=self.called, left=self.left, mentioned=self.mentioned)

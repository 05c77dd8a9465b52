"""Outcomes: what the runs of some files show, said of places in files and not of the engine's objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TypeVar

from torchmemlint.amounts import Amount
from torchmemlint.doubts import Confidence, Doubt, confidence, rank
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.domain.manners import How, Remark, Stored
from torchmemlint.flow.fact.callers import Calling
from torchmemlint.flow.fact.details import About, Arrival, Built, Memo, Placing
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.reasons import Reason
from torchmemlint.immutable import immutable


@immutable()
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
    hands_back: bool = False  # may one of these return what was there before the pass?
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


def surer(one: Case, other: Case) -> bool:
    """Does a run show something with fewer doubts than another, or with as few, but more of it?"""
    return _doubtfulness(one) < _doubtfulness(other)


def _doubtfulness(case: Case) -> tuple[tuple[int, int, list[str]], bool, bool, bool]:
    """Of the doubts; then whether nothing is known to load from it, to repeat it, and to keep its graph."""
    return rank(case.doubts), case.is_unloaded, case.making or not case.repeated, case.kept is None


@immutable()
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


@immutable()
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


@immutable()
class Waste:
    """A pass for which nothing needs gradients, with the calls that led to it, innermost first.

    It is reported at the first of them that leads to no other pass that is differentiated.
    """

    calls: tuple[Place, ...]
    own: tuple[bool, ...]  # of each: does it stand outside of the forward of a network?
    functions: tuple[Place | None, ...]  # and in which function?
    case: Case
    entry: str = ""  # the method of a network by which the run began, where others call it by its name
    kin: tuple[Place, ...] = ()  # the methods that this one overrides or is overridden by, and their other overrides

    def at(self, number: int, used: Iterable[Place]) -> Case:
        """The case at one of the calls. `used` may need gradients."""
        place, function = self.calls[number], self.functions[number]
        beside = {u for u in used if u != place and u.path == place.path and (function is None or function.contains(u))}
        further = self.calls[number + 1 :]
        ordered = tuple(sorted(beside))
        return replace(self.case, place=place, calls=further, function=function, beside=ordered)


@immutable()
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
    open: frozenset[tuple[Place, ...]] = frozenset()  # calls that led to each pass which nothing shows to be waste
    cut: frozenset[tuple[Place, ...]] = frozenset()  # those of each such pass in a run that was not followed to its end
    ahead: frozenset[Place] = frozenset()  # functions that such a run may call where it was not followed
    needing: frozenset[Place] = frozenset()  # what differentiates, may do so, or computes with a graph of its caller
    arriving: frozenset[Arrival] | None = None  # None: nobody has asked for it
    forwards: tuple[Forward, ...] = ()
    backwards: tuple[Backward, ...] = ()
    called: Mapping[Place, Mode] = field(default_factory=dict)  # functions, and in which mode
    calling: Mapping[str, frozenset[Calling]] = field(default_factory=dict)  # methods, by their names alone
    left: Mapping[Place, Mode] = field(default_factory=dict)  # functions, by runs that were cut, and in which mode
    given: Mapping[Place, Mapping[str, Place | str]] = field(default_factory=dict)  # networks, by calls not followed
    mentioned: frozenset[str] = frozenset()  # by their functions: names
    files: frozenset[Path] = frozenset()  # that were run, or might have been
    sought: frozenset[str] = frozenset()  # where it was looked for files
    whole: bool = True  # or was there more to run than they may take?
    failure: Exception | None = None  # of ours, that ended the runs
    asked: frozenset[str] = frozenset()  # names for which all files were searched

    def for_others(self) -> Outcome:
        """What the runs of other files ask for."""
        return Outcome(called=self.called, left=self.left, given=self.given, mentioned=self.mentioned)

"""Sequence: what follows what in a run, and what two events have in common, also from iteration to iteration."""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import partial
from typing import NamedTuple, TypeVar

from torchmemlint.flow.domain.refs import CONTEXT_LIMIT, Loop, Phi, Source, root
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.ir.ops import Op

T = TypeVar("T")


class Sequence:
    """The events of a run in their order."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._places = {id(event): number for number, event in enumerate(run.events)}

    def is_after(self, event: Event, first: Event) -> bool:
        """May an event follow another one in the same iteration of the loops around both?"""
        if self._places[id(event)] <= self._places[id(first)]:
            return False
        return all(event.branches.get(test, branch) is branch for test, branch in first.branches.items())

    def may_follow(self, event: Event, first: Event) -> bool:
        """May an event follow another one, in the same iteration or in a later one?"""
        return self.is_after(event, first) or not first.loops.isdisjoint(event.loops)

    def precedes(self, event: Event, other: Event) -> bool:
        """Does an event stand before another one?"""
        return self._places[id(event)] < self._places[id(other)]

    def shared(
        self,
        first: Event,
        sources: Iterable[Source],
        event: Event,
        others: Iterable[Source],
        cut: Set[Source] = frozenset(),
    ) -> set[Source]:
        """Return what sources of an event have in common with those of another one that follows it, as objects.

        What an iteration makes is another object in the next one, unless it comes round in a place. What `cut` is made
        from does not count.
        """
        ancestors = partial(self._run.provenance.ancestors, cut=cut)
        common = first.loops & event.loops
        mine, theirs = ancestors(sources, common), ancestors(others, common)
        found = mine & theirs if self.is_after(event, first) else set[Source]()
        for loop in common:
            found |= {source for source in mine & theirs if self._stays(source, loop)}
            round_ = {source for source in theirs if type(source) is Phi and source.loop is loop}
            found |= (mine & ancestors(round_)) - round_
        return found

    def _stays(self, source: Source, loop: Loop) -> bool:
        """Is it the same object in every iteration of a loop? A phi stands for what it comes from, which may be."""
        if type(source) is Phi:
            return False
        return root(source) not in self._run.provenance.made_in(loop)


class Moment(NamedTuple):
    """An event in its run."""

    sequence: Sequence
    event: Event

    def is_sure_before(self, other: Moment) -> bool:
        """Has it happened whenever the other one happens, in the same iteration of the loops around both?"""
        return self._is_beside(other) and self.sequence.precedes(self.event, other.event)

    def is_sure_after(self, other: Moment) -> bool:
        """Does it happen whenever the other one has happened, in the same iteration of the loops around both?"""
        return self._is_beside(other) and self.sequence.precedes(other.event, self.event)

    def _is_beside(self, other: Moment) -> bool:
        """Does it stand under no test that the other one does not stand under?"""
        branches = other.event.branches
        same = self.sequence is other.sequence
        return same and all(branches.get(test) is branch for test, branch in self.event.branches.items())

    def separates(self, first: Moment, last: Moment) -> bool:
        """Does every way from one moment to another lead through this one? Runs may be repeated, in any order."""
        if not (self.is_sure_before(last) or self.is_sure_after(first)):
            return False
        if first.sequence is not last.sequence:
            return True
        if not self.event.loops >= first.event.loops & last.event.loops:
            return False
        between = self.sequence.precedes(first.event, self.event) and self.sequence.precedes(self.event, last.event)
        return between or not self.sequence.is_after(last.event, first.event)


def meeting(stored: list[Op], begun: list[Op]) -> Op:
    """The operation that leads to where a graph is stored, in the function in which also what begins it is called."""
    if len(begun) > CONTEXT_LIMIT:
        return stored[0]  # who called it is not known to the end
    common = 0
    while common < min(len(stored) - 1, len(begun)) and stored[-1 - common] is begun[-1 - common]:
        common += 1
    return stored[-1 - common]


def shared_with(calls: tuple[T, ...], ways: Iterable[tuple[T, ...]]) -> int:
    """Return how many of the calls that lead somewhere, innermost first, lead there on another way, too."""
    shared = 0
    for way in ways:
        shared = max(shared, next((n for n, pair in enumerate(zip(calls, way, strict=False)) if pair[0] != pair[1]), 0))
    return shared

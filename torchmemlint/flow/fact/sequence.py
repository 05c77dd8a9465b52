"""Sequence: what follows what in a run, and what two events have in common, also from iteration to iteration."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.flow.domain.refs import Loop, Phi, Source, root
from torchmemlint.flow.fact.logs import Event, Run


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

    def shared(self, first: Event, sources: Iterable[Source], event: Event, others: Iterable[Source]) -> set[Source]:
        """Return what sources of an event have in common with those of another one that follows it, as objects.

        What an iteration makes is another object in the next one, unless it comes round in a place.
        """
        ancestors = self._run.provenance.ancestors
        common = first.loops & event.loops
        mine, theirs = ancestors(sources, common), ancestors(others, common)
        found = mine & theirs if self.is_after(event, first) else set[Source]()
        for loop in common:
            found |= {source for source in mine & theirs if self._stays(source, loop)}
            round_ = {source for source in theirs if type(source) is Phi and source.loop is loop}
            found |= (mine & ancestors(round_)) - round_
        return found

    def _stays(self, source: Source, loop: Loop) -> bool:
        """Is it the same object in every iteration of a loop?"""
        if type(source) is Phi and source.loop is loop:
            return False
        return root(source) not in self._run.provenance.made_in(loop)

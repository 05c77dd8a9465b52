"""What each source of a graph was made from, and in which loops: one graph, on which origins and proofs are queries."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from torchmemlint.closure import closure
from torchmemlint.flow.domain.refs import Bare, Behind, Derived, Graph, Loop, Phi, Place, Slot, Source, root

_NONE: frozenset[Source] = frozenset()


class Numbers(enum.Enum):
    """Which tensors without a graph are followed to what their numbers come from."""

    NONE = "none: they keep nothing"
    COPIED = "copies: their elements are the same"
    ALL = "all"


@dataclass(slots=True)
class Provenance:
    """The sources that one run of a function has met.

    A source that is not in `parents` is an origin. What lies behind a symbol comes from the symbol.
    """

    parents: dict[Source, set[Source]] = field(default_factory=dict)
    made: dict[Loop, set[Source]] = field(default_factory=dict)  # what comes into being in an iteration of a loop

    def derive(self, source: Source, parents: Iterable[Source]) -> None:
        """Record what a source is made from, in addition to what is known."""
        known = self.parents.get(source)
        if known is None:
            known = self.parents[source] = set(parents)
        else:
            known.update(parents)
        known.discard(source)

    def arise(self, source: Source, loops: Iterable[Loop]) -> None:
        """Record that a source comes into being in an iteration of each of these loops."""
        for loop in loops:
            self.made.setdefault(loop, set()).add(source)

    def made_in(self, loop: Loop) -> Set[Source]:
        """Return what comes into being in an iteration of a loop."""
        return self.made.get(loop, _NONE)

    def alone(self, sources: Iterable[Source], found: set[Source]) -> set[Source]:
        """Return what was found above some sources; a whole is left out if only a part of it was found."""
        wholes = {root(s) for s in found if type(s) is Behind}.intersection(found).difference(sources)
        for source in found if wholes else ():
            wholes.difference_update(self.parents.get(source, ()))
        return found - wholes

    def apart_from(self, sources: Iterable[Source], ways: Iterable[Source]) -> frozenset[Source]:
        """Return sources without what went through the places of some phis and slots, in whichever loop.

        Of a place that took some of it over, what else it holds stays.
        """
        places = places_of(ways)
        found: set[Source] = set()
        queue = list(sources)
        while queue:
            source = queue.pop()
            if source not in found and places_of((source,)).isdisjoint(places):
                found.add(source)
                if self._leads_to(source, places):
                    queue.extend(self.parents[source])
        return frozenset(s for s in found if not self._leads_to(s, places))

    def _leads_to(self, source: Source, places: Set[Place]) -> bool:
        """Is a source a place that took over what stood in one of some others?"""
        return isinstance(source, Phi | Slot) and not places.isdisjoint(places_of(self.ancestors((source,))))

    def computed_from(self, sources: Iterable[Source]) -> set[Source]:
        """Return sources with what they are made from by operations, not by calls or places that may hold others."""
        return closure(sources, lambda s: self.parents.get(s, _NONE) if type(s) in (Graph, Derived) else _NONE)

    def ancestors(
        self,
        sources: Iterable[Source],
        outside: frozenset[Loop] = frozenset(),
        parts: bool = True,
        cut: Set[Source] = _NONE,
        numbers: Numbers = Numbers.NONE,
    ) -> set[Source]:
        """Return the sources with all that they come from.

        Of a phi of one of the loops `outside`, what came round is not followed: it belongs to earlier iterations.
        Without `parts`, a part of something does not come from the whole. What `cut` is made from is left out.
        `numbers` says which of the tensors without a graph come from what they were made from.
        """
        seen = set(sources)
        queue = list(seen)
        known = self.parents
        while queue:
            source = queue.pop()
            if source in cut or (type(source) is Phi and source.loop in outside):
                continue
            if type(source) is Bare and numbers is not Numbers.ALL and not (source.copy and numbers is Numbers.COPIED):
                continue
            parents = known.get(source)
            if parents and not parents <= seen:
                new = parents - seen
                seen |= new
                queue.extend(new)
            if parts and type(source) is Behind and source.base not in seen:
                seen.add(source.base)
                queue.append(source.base)
        return seen


def places_of(sources: Iterable[Source]) -> set[Place]:
    """Return the places that something went through."""
    return {(s.holder, s.key) for s in sources if isinstance(s, Phi | Slot)}

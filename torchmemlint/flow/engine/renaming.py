"""The symbols of a callee as the values of its caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import BOXES, Mode, ModeOf, State, reached, renew
from torchmemlint.flow.domain.keys import key_of
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import Bare, Derived, Key, Object, Part, Phi, Point, Ref, Result, Slot, Source
from torchmemlint.flow.domain.values import LIMIT, NO_CONSTANT, NO_SOURCES, SOLE, WEAK, Value, limited
from torchmemlint.flow.engine.references import MAKERS, resting_on
from torchmemlint.flow.models import guards


class Renaming:
    """What the references, values and keys of a callee are in its caller, at one call."""

    def __init__(self, frame: Frame, state: State, bound: dict[Ref, Value], point: Point) -> None:
        self.frame, self.state, self.point = frame, state, point
        self.map: dict[Ref, Value] = dict(bound)
        self.entry_mode = state.mode
        self.calls = (point.site, *point.context)
        self.parents: Mapping[Source, Iterable[Source]] = {}
        self.edges: dict[Ref, list[tuple[Key, Value]]] = {}  # what objects that the callee made hold
        self.installed: dict[tuple[Ref, Key], Value] = {}
        self.behind: dict[Ref, list[Ref]] = {}  # what was met so far of each symbol
        self.places: list[Source] = []  # phis, slots and parts that were met just now

    def of(self, reference: Ref) -> Value:
        """Return a reference of the callee as a value of the caller."""
        found = self.map.get(reference)
        if found is None:
            found = self.map[reference] = MAKERS[type(reference)](self, reference)
            kind = type(reference)
            if kind is Phi or kind is Slot or kind is Part:
                self._met(reference)
            elif kind is Bare:
                self.frame.arise(next(iter(found.graph)))
            elif (base := resting_on(reference)) is not None:
                self.behind.setdefault(base, []).append(reference)
        return found

    def _met(self, place: Source) -> None:
        """Record what a phi, slot or part was made from; those among it follow in turn, for their chain may be long."""
        self.places.append(place)
        if len(self.places) == 1:
            for source in self.places:
                self._derive(source, self.parents.get(source, ()))
            self.places.clear()

    def value(self, value: Value) -> Value:
        """Return a value of the callee as one of the caller."""
        if not value.refs and not value.graph:
            return value
        if len(value.refs) == 1 and (value.graph == value.refs or not value.graph):
            return self._single(value)
        refs: set[Ref] = set()
        opened, constant = value.open, value.constant
        for r in value.each():
            mine = self.of(r)
            refs |= mine.refs
            opened = opened or mine.open
            if constant is SOLE and mine.constant is not SOLE:
                constant = NO_CONSTANT
            if len(value.refs) == 1 and r.symbolic:
                constant = mine.constant
        kept, more = limited(frozenset(refs))
        graph: set[Source] = set()
        for s in value.graph:
            mine = self.of(s)
            graph |= mine.graph
            if s.symbolic and mine.refs and s not in value.refs:
                graph |= reached(self.state, mine)
        return Value(kept, frozenset(graph), constant, opened or more)

    def _single(self, value: Value) -> Value:
        """Return a value that is one reference, or one symbol with its graph."""
        (r,) = value.refs
        mine = self.of(r)
        if value.constant is WEAK:
            return mine._replace(constant=WEAK)
        if mine.known and value.graph and value.constant is NO_CONSTANT:
            mine = mine._replace(constant=NO_CONSTANT)  # it is this, or something else
        if r.symbolic and value.graph and mine.open >= value.open and len(mine.refs) <= LIMIT:
            return mine
        refs, more = limited(mine.refs)
        constant = mine.constant if r.symbolic else value.constant
        return Value(refs, mine.graph if value.graph else NO_SOURCES, constant, value.open or mine.open or more)

    def sources(self, sources: Iterable[Source], kinds: frozenset[Kind] = BOXES) -> frozenset[Source]:
        """Return sources of the callee as sources of the caller; `kinds` of objects are seen through for it."""
        result: set[Source] = set()
        for s in sources:
            mine = self.of(s)
            result |= mine.graph
            if s.symbolic and mine.refs:
                result |= reached(self.state, mine, kinds)
        return frozenset(result)

    def key(self, key: Key) -> Key:
        """Return a key of the callee as a key of the caller."""
        if not isinstance(key, Ref):
            return key
        return key_of(self.of(key))

    def arguments(self, arguments: Arguments) -> Arguments:
        """Return the arguments of a call of the callee as the caller gives them."""
        for value in arguments.all():
            self._refreshed(value)
        return Arguments(
            [self.value(v) for v in arguments.positional],
            {name: self.value(v) for name, v in arguments.named.items()},
            None if arguments.star is None else self.value(arguments.star),
            None if arguments.stars is None else self.value(arguments.stars),
        )

    def _derive(self, source: Source, parents: Iterable[Source]) -> None:
        kind = type(source)
        if kind is Result or issubclass(kind, Derived):
            return  # performed again
        mine = self.of(source)
        given = self.sources(parents)
        for s in mine.graph:
            if type(s) is kind:
                self.frame.provenance.derive(s, given)

    def _install(self, edges: list[tuple[Ref, Key, Value]]) -> None:
        """Let the objects that the callee made hold what they held at its end, as far as that is known by now."""
        for holder, key, value in edges:
            if key is Special.MADE:
                for mine in self.of(holder).each():
                    if type(mine) is Object:
                        renew(self.state, mine)
            else:
                self.edges.setdefault(holder, []).append((key, value))
        for holder in self.edges:
            self._refresh(holder)

    def _refresh(self, holder: Ref) -> None:
        """Let an object hold what is known by now; what has been written to it since is kept beside that.

        So is what older objects hold: those of earlier calls are among them.
        """
        heap, installed = self.state.heap, self.installed
        for mine in self.of(holder).each():
            for callee_key, value in self.edges[holder]:
                key, new = self.key(callee_key), self.value(value)
                place = (mine, key)
                before = installed.get(place)
                among = type(mine) is Object and mine.older
                if among or (before is not None and heap.get(mine, key) is not before):
                    heap.add(mine, key, new)
                else:
                    heap.put(mine, key, new)
                installed[place] = heap.get(mine, key) or new

    def _refreshed(self, value: Value, depth: int = 3) -> None:
        """Refresh the objects that a value of the callee holds, the outer ones first, each once."""
        seen: dict[Ref, None] = {}
        level = [r for r in value.each() if r in self.edges]
        for _ in range(depth + 1):
            new = [r for r in dict.fromkeys(level) if r not in seen]
            for holder in new:
                seen[holder] = None
                self._refresh(holder)
            level = [r for holder in new for _, held in self.edges[holder] for r in held.each() if r in self.edges]

    def at(self, effect: Effect) -> Point:
        """Return where an effect happens, seen from the caller."""
        return effect.point.below(self.calls)

    def mode(self, mode: Mode | ModeOf) -> Mode | ModeOf:
        """Return the mode of an effect of the callee, as it is here."""
        if mode is Mode.CALLER:
            return self.state.mode
        if isinstance(mode, ModeOf):
            return guards.mode_within(self.frame.machine.index.contracts, self.state.mode, self.of(mode.context))
        return mode

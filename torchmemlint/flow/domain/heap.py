"""The state at a point of a program: variables, what objects hold, the gradient mode, and the graphs that are spent.

A place that nobody wrote and that lies behind a symbolic reference holds a deeper symbol, made when it is read.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import PATH_LIMIT, Behind, Bound, Code, Key, Object, Ref, Source
from torchmemlint.flow.domain.values import NO_SOURCES, NOTHING, PLAIN, UNKNOWN, Value, join, symbol

ELEMENT = Special.ELEMENT
_EMPTY: Mapping[Key, Value] = {}


class Mode(enum.Enum):
    """Whether operations record graphs."""

    ON = "on"
    WANTED = "wanted"  # on, because the program says so: enable_grad
    OFF = "off"
    CALLER = "caller"  # as where the function is called
    EITHER = "either"  # decided by a value that is not known


def joined_mode(a: Mode | ModeOf, b: Mode | ModeOf) -> Mode | ModeOf:
    """Return the mode where two paths meet."""
    return a if a is b else Mode.EITHER


class ModeOf:
    """The mode that a context sets which only a caller knows."""

    __slots__ = ("context",)

    def __init__(self, context: Ref) -> None:
        self.context = context


def by_caller(mode: Mode | ModeOf) -> bool:
    """Is the mode decided by a caller?"""
    return mode is Mode.CALLER or isinstance(mode, ModeOf)


class History:
    """The holders that a heap has written, and the heap that it is a copy of: where two heaps may differ."""

    __slots__ = ("changes", "depth", "origin", "since")

    def __init__(self, origin: History | None = None) -> None:
        self.changes: list[Ref] = []
        self.origin = origin
        self.since = 0 if origin is None else len(origin.changes)  # what the origin had written by then
        self.depth: int = 0 if origin is None else origin.depth + 1

    def differing(self, other: History) -> set[Ref] | None:
        """Return the holders that two heaps may know different things about; None where they have nothing in common."""
        found: set[Ref] = set()
        mine, theirs = self, other
        until, until_theirs = len(mine.changes), len(theirs.changes)
        while mine is not theirs:
            if mine.depth >= theirs.depth:
                found.update(mine.changes[:until])
                until = mine.since
                if mine.origin is None:
                    return None
                mine = mine.origin
            else:
                found.update(theirs.changes[:until_theirs])
                until_theirs = theirs.since
                if theirs.origin is None:
                    return None
                theirs = theirs.origin
        found.update(mine.changes[min(until, until_theirs) : max(until, until_theirs)])
        return found


class Heap:
    """Edges by holder, shared between states until one of them writes."""

    __slots__ = ("_history", "_owned", "table")

    def __init__(self, table: dict[Ref, dict[Key, Value]] | None = None, history: History | None = None) -> None:
        self.table: dict[Ref, dict[Key, Value]] = {} if table is None else table
        self._owned: set[Ref] = set()
        self._history = history or History()

    def copy(self) -> Heap:
        """Return an independent heap; neither owns what both hold."""
        self._owned = set()
        return Heap(self.table.copy(), History(self._history))

    def differing(self, other: Heap) -> Iterable[Ref]:
        """Return the holders that two heaps may know different things about."""
        found = self._history.differing(other._history)
        return found if found is not None else {*self.table, *other.table}

    def edges(self, holder: Ref) -> Mapping[Key, Value]:
        """Return what a holder holds; not to be changed."""
        return self.table.get(holder, _EMPTY)

    def get(self, holder: Ref, key: Key) -> Value | None:
        """Return what was written there; None where nothing was."""
        edges = self.table.get(holder)
        return None if edges is None else edges.get(key)

    def put(self, holder: Ref, key: Key, value: Value) -> None:
        """Replace an edge."""
        if holder in self._owned:
            self.table[holder][key] = value
        else:
            self._own(holder)[key] = value
        for r in value.refs:
            if type(r) is Object:
                r.held_by(holder)

    def add(self, holder: Ref, key: Key, value: Value) -> None:
        """Add to an edge."""
        old = self.get(holder, key)
        joined = value if old is None else join(old, value)
        if joined is not old:
            self.put(holder, key, joined)

    def remove(self, holder: Ref, key: Key) -> None:
        """Remove an edge, if it is there."""
        if key in self.table.get(holder, _EMPTY):
            del self._own(holder)[key]

    def drop(self, holder: Ref) -> Mapping[Key, Value]:
        """Remove a holder and return what it held."""
        self._owned.discard(holder)
        self._history.changes.append(holder)
        return self.table.pop(holder, _EMPTY)

    def share(self, holder: Ref, edges: dict[Key, Value]) -> None:
        """Take over another heap's edges of a holder, to be copied before either writes."""
        self._owned.discard(holder)
        self._history.changes.append(holder)
        self.table[holder] = edges

    def take(self, other: Heap) -> None:
        """Take over all that another heap holds, to be copied before either writes."""
        other._owned = set()
        for holder, edges in other.table.items():
            self.share(holder, edges)

    def _own(self, holder: Ref) -> dict[Key, Value]:
        if holder in self._owned:
            return self.table[holder]
        own = self.table[holder] = dict(self.table.get(holder, _EMPTY))
        self._owned.add(holder)
        self._history.changes.append(holder)
        return own


class State:
    """A point of a program. `dead`: no path reaches it."""

    __slots__ = ("dead", "heap", "mode", "spent", "variables")

    def __init__(self, variables: dict[str, Value], heap: Heap, mode: Mode | ModeOf, spent: frozenset[Source]) -> None:
        self.variables, self.heap, self.mode, self.spent = variables, heap, mode, spent
        self.dead = False

    def copy(self) -> State:
        """Return an independent state."""
        new = State(self.variables.copy(), self.heap.copy(), self.mode, self.spent)
        new.dead = self.dead
        return new

    def become(self, other: State) -> None:
        """Take over all of another state, which is not used any more."""
        self.variables, self.heap, self.mode = other.variables, other.heap, other.mode
        self.spent, self.dead = other.spent, other.dead

    def join(self, other: State) -> None:
        """Let the paths that lead to the other state lead here, too."""
        if other.dead:
            return
        if self.dead:
            self.become(other.copy())
            return
        for name, value in other.variables.items():
            mine = self.variables.get(name)
            if mine is None:
                self.variables[name] = value
            elif mine is not value:
                self.variables[name] = join(mine, value)
        self._join_heap(other.heap)
        self.mode = joined_mode(self.mode, other.mode)
        self.spent = self.spent & other.spent

    def _join_heap(self, other: Heap) -> None:
        heap = self.heap
        for holder in heap.differing(other):
            edges = other.table.get(holder)
            mine = heap.table.get(holder)
            if mine is edges:
                continue
            if edges is None:
                if holder.symbolic and mine is not None and Special.BODY not in mine:
                    heap.remove(holder, Special.LAST)
                    for key, value in list(heap.edges(holder).items()):
                        heap.put(holder, key, join(value, unwritten(holder, key)))
                continue
            if mine is None:
                if holder.symbolic and Special.BODY not in edges:
                    for key, value in edges.items():
                        if key is not Special.LAST:
                            heap.put(holder, key, join(unwritten(holder, key), value))
                else:
                    other._owned.discard(holder)
                    heap.share(holder, edges)
                continue
            symbolic = holder.symbolic and Special.BODY not in mine
            if (Special.LAST in mine) is not (Special.LAST in edges):
                heap.remove(holder, Special.LAST)
                edges = {key: value for key, value in edges.items() if key is not Special.LAST}
            for key, value in edges.items():
                old = mine.get(key)
                if old is None:
                    heap.put(holder, key, join(unwritten(holder, key), value) if symbolic else value)
                elif old is not value and (joined := join(old, value)) is not old:
                    heap.put(holder, key, joined)
            if symbolic:
                for key in mine.keys() - edges.keys():
                    heap.put(holder, key, join(mine[key], unwritten(holder, key)))


def unwritten(holder: Ref, key: Key) -> Value:
    """Return what a place holds that nobody wrote: a deeper symbol behind a symbolic holder."""
    if not holder.symbolic:
        return NOTHING
    if type(key) is Special and key is not ELEMENT and key is not Special.OUTER:
        return NOTHING
    if holder.depth >= PATH_LIMIT:
        return Value(graph=holder.alone, open=True)
    return symbol(Behind.of(holder, key))


def load(state: State, holder: Ref, key: Key) -> Value | None:
    """Return what stands under one key; None where a known object has no such place."""
    found = state.heap.get(holder, key)
    if found is not None:
        return found
    return unwritten(holder, key) if holder.symbolic else None


def visible(edges: Mapping[Key, Value]) -> Iterator[tuple[Key, Value]]:
    """Yield the edges that the program itself made: elements and constant keys."""
    for key, value in edges.items():
        if key is ELEMENT or key is Special.NAMED or type(key) is not Special:
            yield key, value


def elements(state: State, holder: Ref) -> Value:
    """Return all that a container holds: its elements and what stands under its constant keys."""
    result = NOTHING
    if holder.symbolic:
        result = load(state, holder, ELEMENT) or UNKNOWN
    elif type(holder) is Object and holder.kind is Kind.OPAQUE:
        result = Value(Behind.of(holder, ELEMENT).alone, open=True)
    for _, value in visible(state.heap.edges(holder)):
        result = join(result, value)
    return result


_SERIAL = attrgetter("serial")
_INTERCHANGEABLE = frozenset({Kind.TUPLE, Kind.TENSOR, Kind.LAZY})  # nothing is added to older ones


def renew(state: State, made: Object) -> None:
    """Begin a new object of a site: the one it made before becomes one of its older siblings."""
    heap = state.heap
    if heap.get(made, Special.MADE) is None or made.kind in _INTERCHANGEABLE:
        heap.drop(made)
        heap.put(made, Special.MADE, PLAIN)
        return
    older = Object.of(made.kind, made.site, made.context, made.about, True)
    kept = False
    for name, value in state.variables.items():
        if made in value.refs:
            state.variables[name] = _replaced(value, made, older)
            kept = True
    for holder in sorted(made.holders, key=_SERIAL):
        for key, value in list(heap.edges(holder).items()):
            if made in value.refs:
                heap.put(holder, key, _replaced(value, made, older))
                kept = True
    for key, value in heap.drop(made).items():
        if kept:
            heap.add(older, key, value)
    heap.put(made, Special.MADE, PLAIN)


def _replaced(value: Value, old: Ref, new: Ref) -> Value:
    return Value(value.refs - {old} | {new}, value.graph, value.constant, value.open)


STORES = frozenset({Kind.LIST, Kind.DICT, Kind.TUPLE})
BOXES = STORES | {Kind.LAZY}
_CLOSED = frozenset({Kind.PARTIAL, Kind.GENERATOR, Kind.FRAME, Kind.GUARDED})  # functions with what they hold
HOLDERS = BOXES | _CLOSED | {Kind.INSTANCE}


def behind_code(reference: Ref) -> Ref:
    """Return what a function or method holds: the frame that it closes over, or its receiver."""
    if type(reference) is Code:
        return reference.frame
    return reference.receiver if type(reference) is Bound else reference


def reached(state: State, value: Value, kinds: frozenset[Kind] = BOXES, depth: int = 4) -> frozenset[Source]:
    """Return the sources of a value and of all that it holds, through objects of these kinds."""
    if not value.refs:
        return value.graph
    sources = value.graph
    frontier: list[Ref] = []
    for r in value.refs:
        if type(r) is not Object:
            r = behind_code(r)
        if type(r) is Object and r.kind in kinds:
            frontier.append(r)
    for reference in value.refs:
        added = state.heap.get(reference, Special.GRAPH)
        if added is not None:
            sources |= added.graph
    seen: set[Ref] = set(frontier)
    while frontier and depth:
        depth -= 1
        following: list[Ref] = []
        for holder in frontier:
            for key, held in state.heap.edges(holder).items():
                if type(key) is Special and key is not ELEMENT and key is not Special.GRAPH:
                    continue
                if held.graph:
                    sources |= held.graph
                for r in held.refs:
                    if type(r) is not Object:
                        r = behind_code(r)
                    if type(r) is Object and r not in seen:
                        if r.kind in kinds:
                            seen.add(r)
                            following.append(r)
                        elif r.kind is Kind.TENSOR and (added := state.heap.get(r, Special.GRAPH)) is not None:
                            sources |= added.graph
        frontier = following
    return sources


def graph_of(state: State, value: Value) -> frozenset[Source]:
    """Return the sources of a tensor's graph, with what was added to it in place."""
    if not value.refs:
        return value.graph
    sources = value.graph
    for reference in value.refs:
        added = state.heap.get(reference, Special.GRAPH)
        if added is not None:
            sources |= added.graph
    return sources or NO_SOURCES


def contained(state: State, values: Iterable[Value]) -> set[Ref]:
    """Return the references of some values, with those that the containers among them hold."""
    seen = {r for value in values for r in value.refs}
    frontier = list(seen)
    while frontier:
        holder = frontier.pop()
        if type(holder) is Object and holder.kind in BOXES:
            new = {r for value in state.heap.edges(holder).values() for r in value.refs} - seen
            seen |= new
            frontier.extend(new)
    return seen


def reachable(state: State, roots: Any) -> set[Ref]:
    """Return all objects that can be reached from some references, through every edge."""
    seen: set[Ref] = set(roots)
    frontier = list(seen)
    while frontier:
        holder = frontier.pop()
        for value in state.heap.edges(holder).values():
            for r in value.refs:
                r = behind_code(r)
                if r not in seen:
                    seen.add(r)
                    frontier.append(r)
    return seen


def set_last(state: State, holder: Ref, value: Value) -> None:
    """Let the last element of a list be known, or not: NOTHING."""
    state.heap.remove(holder, Special.LAST)
    if value != NOTHING:
        state.heap.put(holder, Special.LAST, value)

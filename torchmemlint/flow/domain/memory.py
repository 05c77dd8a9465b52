"""Writing places: the one way into the heap, and what operations do to a graph."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.flow.domain.effects import Derive, Differentiate, Erase, Forward, Put, Renew, Slotted, Write
from torchmemlint.flow.domain.frame import Frame, Written
from torchmemlint.flow.domain.heap import BOXES, ELEMENT, HOLDERS, Mode, State, by_caller, load, reached, renew, visible
from torchmemlint.flow.domain.keys import each_key, is_listed
from torchmemlint.flow.domain.kinds import PART, Kind, Special
from torchmemlint.flow.domain.manners import How, Reading, Stored
from torchmemlint.flow.domain.provenance import places_of
from torchmemlint.flow.domain.refs import (
    Bare,
    Behind,
    Derived,
    External,
    Graph,
    Input,
    Key,
    Leaf,
    Method,
    Object,
    Parameters,
    Phi,
    Place,
    Point,
    Ref,
    Result,
    Slot,
    Source,
    is_outside,
    path,
    with_graphs,
)
from torchmemlint.flow.domain.values import NO_SOURCES, NOTHING, PLAIN, UNKNOWN, Value, join, of, with_graph

_OF_TENSORS = frozenset({"data", "grad", ELEMENT})
_INNER = frozenset({Kind.LIST, Kind.TUPLE, Kind.LAZY, Kind.DICT})
_REPLACEABLE = frozenset({Kind.LIST, Kind.DICT, Kind.TENSOR})
_RENEWED = frozenset({Kind.LIST, Kind.DICT, Kind.INSTANCE})


def begin(frame: Frame, state: State, made: Object, point: Point) -> Value:
    """Return a new object of a site; the one it made before becomes one of its older siblings."""
    if made.kind is Kind.TENSOR and state.heap.get(made, Special.MADE) is not None:
        frame.gave_up(made)  # no sibling keeps what the one before held
    renew(state, made)
    if frame.loops and not frame.entry and made.kind in _RENEWED:
        frame.log(Renew(point, made))
    return of(made)


def write(
    frame: Frame,
    state: State,
    base: Value,
    key: Key,
    value: Value,
    point: Point,
    weak: bool = False,
    item: bool = False,
) -> None:
    """Put a value under a key of all that base may be; in place of the old one only if base is one known thing.

    `item`: by `base[key] = value`, which a class may define.
    """
    single = len(base.refs) == 1 and not weak and not base.open and key is not ELEMENT
    if isinstance(key, Ref) and is_listed(state, key, base):
        key = Special.NAMED
    if not base.refs and not item:
        escape(frame, state, [value], point)
    for holder in base.each():
        if isinstance(holder, External | Method):
            escape(frame, state, [value], point)
            continue
        strong = single and not (type(holder) is Object and holder.older)
        state.heap.remove(holder, Special.LAST)
        sources = reached(state, value, HOLDERS)
        is_tensor = type(holder) is Object and holder.kind is Kind.TENSOR
        if (is_tensor or type(holder) is Parameters) and not item and key not in _OF_TENSORS:
            escape(frame, state, [value], point)
        if is_tensor:
            changed_in_place(frame, state, of(holder), sources, point)
            continue
        if is_outside(holder):
            weakly = weak if key is ELEMENT else key is Special.NAMED or not strong
            frame.log(Write(point, holder, key, value, weakly, item))
        if isinstance(key, Ref):
            frame.keys.add(key)
        if frame.loops:
            before = NO_SOURCES.union(*(held.graph for held in held_under(state, holder, key)))
            part = is_part(state, value, (holder, key))
            kind = frame.kind(value)
            written = Written(point, sources, kind, strong, before, adds=weak, part=part, spent=state.spent)
            written.boxes = frozenset(r for r in value.refs if weak and type(r) is Object and r.kind in _RENEWED)
            frame.wrote((holder, key), written)
        kept = with_graph(value, sources) if key is ELEMENT and sources is not value.graph else value
        graphs = frozenset(s for s in sources if type(s) not in (Leaf, Bare))  # those are only themselves
        if graphs and not weak and _is_slot(frame, holder):
            stored = _through_slot(frame, holder, key, kept, graphs, point, frame.kind(value))
            kept = with_graph(stored, sources - graphs)
        elif graphs and point.context and type(holder) is Object:
            frame.log(Put(point, graphs, _attributes(state, holder)))
        if key is ELEMENT and state.heap.get(holder, Special.BOUNDED) is not None:
            frame.gave_up(holder)
        if strong and key is not Special.NAMED:
            if frame.loops and value.refs and key not in frame.missing:
                _replaced(frame, load(state, holder, key), value)
            if key is each_key(holder):
                frame.gave_up(holder)
                for other, _ in list(visible(state.heap.edges(holder))):
                    state.heap.remove(holder, other)
            state.heap.put(holder, key, kept)
        else:
            old = load(state, holder, key)
            state.heap.put(holder, key, kept if old is None else join(old, kept))
            if key is Special.NAMED or key is ELEMENT or isinstance(key, Ref):
                _overwrite_constants(state, holder, kept)


def _overwrite_constants(state: State, holder: Ref, value: Value) -> None:
    """Let what is set under a name that is not known be any attribute so far known; an object only one that is None."""
    if not (holder.symbolic or (type(holder) is Object and holder.kind is Kind.INSTANCE)):
        return
    is_object = bool(value.refs) and not value.open and all(type(r) is Object for r in value.refs)
    for key, known in list(state.heap.edges(holder).items()):
        if type(key) is str and known.known and (known.constant is None or not is_object):
            state.heap.put(holder, key, join(known, UNKNOWN if value is NOTHING else value))


def _attributes(state: State, held: Object) -> frozenset[str]:
    """Return the names of the attributes that hold something."""
    edges = (edge for holder in held.holders for edge in state.heap.edges(holder).items())
    return frozenset(key for key, value in edges if type(key) is str and held in value.refs)


def held_under(state: State, holder: Ref, key: Key) -> list[Value]:
    """Return what a holder has under a key. What it had under one that is another each time is an element by now."""
    keys = (key, ELEMENT) if isinstance(key, Ref) else (key,)
    return [held for k in keys if (held := state.heap.get(holder, k)) is not None]


def escape(frame: Frame, state: State, values: Iterable[Value], point: Point, kinds: frozenset[Kind] = BOXES) -> None:
    """Log that something goes where it is not followed: with an exception, say, or onto an attribute of a tensor."""
    sources = frozenset(s for value in values for s in reached(state, value, kinds) if type(s) not in (Leaf, Bare))
    if sources:
        frame.log(Put(point, sources, frozenset(), True))


def unsettle(state: State, handed: Value) -> None:
    """Let go of the constants in what code that is not seen has filled, as a configuration is from a file."""
    todo, seen = list(handed.refs), set(handed.refs)
    while todo:
        holder = todo.pop()
        if holder.symbolic or (type(holder) is Object and holder.kind is Kind.OPAQUE):
            for key, value in list(state.heap.edges(holder).items()):
                if value.known and type(key) is not Special:
                    state.heap.put(holder, key, join(value, UNKNOWN))
                todo += value.refs - seen
                seen |= value.refs


def _replaced(frame: Frame, old: Value | None, new: Value) -> None:
    """Note that a place holds another container from now on."""
    for r in old.refs if old is not None else ():
        if r not in new.refs and (r.symbolic or (type(r) is Object and r.kind in _REPLACEABLE)):
            frame.gave_up(r)
            if type(r) is Object and r.older:
                frame.gave_up(Object.of(r.kind, r.site, r.context, r.about))


def is_part(state: State, value: Value, place: Place) -> bool:
    """Is it a list of only some elements of the one that a place held before?"""
    wholes = [state.heap.get(r, Special.PART) for r in value.refs if type(r) is Object and r.about == PART]
    return bool(wholes) and all(whole is not None and place in places_of(whole.graph) for whole in wholes)


def shadowed(frame: Frame, state: State, old: Value, new: Value, point: Point) -> None:
    """Note that who asks for a container by its place is given another one from now on, though something holds it."""
    for r in old.each():
        if r not in new.refs and (r.symbolic or (type(r) is Object and r.kind in _REPLACEABLE)):
            erase(frame, state, of(r), ELEMENT, point)


def _is_slot(frame: Frame, holder: Ref) -> bool:
    """Is it an object with attributes that outlive a statement, not a container or the frame of a call that lasts?"""
    if type(holder) is Object:
        if holder.kind is Kind.FRAME:  # a closure keeps it when the call is over
            return holder.site is not frame.function and holder.site not in frame.machine.active
        return holder.kind not in _INNER or (frame.hooks > 0 and holder.kind is Kind.DICT)
    by_itself = frame.function.parent is None and frame.machine.active[-1:] == [frame.function]
    return not (holder is frame.own and by_itself)  # the variables of a script


def _through_slot(
    frame: Frame, holder: Ref, key: Key, value: Value, sources: frozenset[Source], point: Point, stored: Stored
) -> Value:
    slot = Slot.of(holder, key)
    frame.provenance.derive(slot, sources)
    how = How.HOOK if frame.hooks else How.SLOT
    if frame.entry or not is_outside(holder):  # else the caller's own write says so
        frame.log(Slotted(point, slot, sources, how, bool(frame.loops) or frame.hooks > 0, stored))
    return Value(value.refs, slot.alone, value.constant, value.open)


def lies_behind(reference: Ref, base: Ref) -> bool:
    """Does the path to something lead through something else?"""
    return any(part.base is base for part in path(reference))


def forget(state: State, gone: Ref) -> None:
    """Drop what is known of a symbol that stands for another object from now on, and of what lies behind it."""
    for holder in [h for h in state.heap.table if h is gone or lies_behind(h, gone)]:
        state.heap.drop(holder)


def renew_keys(frame: Frame, state: State, item: Ref) -> None:
    """Begin with another item: what was stored under the last one becomes one of many elements."""
    for key in frame.keys:
        if key is not item and not lies_behind(key, item):
            continue
        for holder, edges in list(state.heap.table.items()):
            held = edges.get(key)
            if held is not None:
                state.heap.add(holder, ELEMENT, held)
                state.heap.remove(holder, key)


def write_variable(frame: Frame, state: State, name: str, value: Value, point: Point) -> None:
    """Bind a local variable."""
    if frame.loops:
        if value.refs and name not in frame.missing:
            _replaced(frame, state.variables.get(name), value)
        sources = reached(state, value)
        part = is_part(state, value, (None, name))
        frame.wrote((None, name), Written(point, sources, frame.kind(value), True, part=part, spent=state.spent))
    state.variables[name] = value


def erase(frame: Frame, state: State, base: Value, key: Key | None, point: Point) -> None:
    """Let base give up all that it holds, or one element of it (`key` ELEMENT: which one is not known)."""
    for holder in base.each():
        frame.gave_up(holder)
        state.heap.remove(holder, Special.LAST)
        if key is None and frame.loops:  # and the containers among what it loses
            for value in state.heap.edges(holder).values():
                for r in value.refs:
                    if type(r) is Object and r.kind in _REPLACEABLE:
                        frame.gave_up(r)
        if holder.symbolic:
            frame.log(Erase(point, key, holder))
        if len(base.refs) > 1 or base.open:
            continue
        if key is None:
            for name in [k for k, _ in visible(state.heap.edges(holder))]:
                state.heap.put(holder, name, NOTHING)
            if holder.symbolic:
                state.heap.put(holder, ELEMENT, NOTHING)
        elif key is not ELEMENT and state.heap.get(holder, key) is not None:
            state.heap.put(holder, key, NOTHING)


def is_raw(source: Source) -> bool:
    """Does only the caller know whether this source has a graph?"""
    return type(source) in (Input, Result, Behind)


def computed(
    frame: Frame,
    state: State,
    sources: frozenset[Source],
    point: Point,
    copies: bool = False,
    joins: bool = False,
    sums: bool = False,
) -> frozenset[Source]:
    """Return the sources of an operation's result: none with a graph without gradients; a leaf begins a graph here.

    `copies`: the result is a copy or view, for which nothing is saved: that of a leaf is as good as the leaf.
    `joins`: it consists of what it is computed from.
    `sums`: it is a weighted sum.
    """
    if not sources:
        return NO_SOURCES
    moves = copies or joins
    if not moves:
        handled = frozenset(s for s in sources if type(s) in (Bare, Phi))
        frame.read(handled, Reading.USED)
        if state.mode is not Mode.OFF:
            frame.read(handled, Reading.MET)
    if state.mode is Mode.OFF:
        frame.read(with_graphs(sources), Reading.DETACHED)
        on_host = [s.host for s in sources if type(s) is Bare]
        return bare(frame, sources, point, moves, bool(on_host) and all(on_host))
    frame.compute(sources, point)
    if not moves:
        sources = with_graphs(sources)
    if not (moves or sums):
        frame.bend(sources)
    leaves = frozenset(s for s in sources if type(s) is Leaf) if not copies else NO_SOURCES
    if leaves and frame.inside:  # part of a forward pass, which has begun a graph
        outer = frame.inside[-1]
        if outer is None:
            return sources - leaves
        frame.provenance.derive(outer, sources - leaves)
        return outer.alone
    if leaves:
        graph = Graph.of(point.site, point.context)
        frame.provenance.derive(graph, sources)
        frame.arise(graph)
        frame.log(Forward(point, NOTHING, sources, state.mode, graph))
        return graph.alone
    if by_caller(state.mode):
        raw = frozenset(s for s in sources if is_raw(s))
        if raw:
            node = Derived.of(point.site, point.context)
            frame.provenance.derive(node, raw)
            frame.arise(node)
            frame.log(Derive(point, raw, state.mode, node, copies, sums))
            return (sources - raw) | {node}
    return sources


def discrete(frame: Frame, state: State, sources: frozenset[Source], point: Point) -> Value:
    """Return what is computed without a graph in any mode; that it is a tensor matters where gradients are off."""
    return Value(graph=bare(frame, sources, point)) if sources and state.mode is Mode.OFF else PLAIN


def bare(
    frame: Frame, sources: frozenset[Source], point: Point, copy: bool = False, host: bool = False
) -> frozenset[Source]:
    """Return the source of a new tensor without a graph, and record what it is made from."""
    made = Bare.of(point.site, point.context, copy, host)
    frame.provenance.derive(made, sources)
    frame.arise(made)
    return made.alone


def changed_in_place(
    frame: Frame,
    state: State,
    base: Value,
    sources: frozenset[Source],
    point: Point,
    stored: Stored = Stored.GRAPH,
) -> None:
    """Add sources to the tensors that base may be, for all who hold them."""
    for holder in base.each():
        if holder.symbolic or (type(holder) is Object and holder.kind is Kind.TENSOR):
            new = sources - {holder}
            if new:
                added = Value(graph=new)
                if holder.symbolic:
                    frame.log(Write(point, holder, Special.GRAPH, added, True))
                if frame.loops:
                    held = state.heap.get(holder, Special.GRAPH) or NOTHING
                    written = Written(point, new | base.graph, stored, False, held.graph, spent=state.spent)
                    frame.wrote((holder, Special.GRAPH), written)
                state.heap.add(holder, Special.GRAPH, added)


def differentiate(
    frame: Frame,
    state: State,
    sources: frozenset[Source],
    point: Point,
    retains: bool,
    creates: bool = False,
    asked: bool = False,
    named: bool = True,
    ends: frozenset[Source] = NO_SOURCES,
) -> None:
    """A backward pass through sources: all that they come from is spent unless it is retained."""
    sources = with_graphs(sources)
    if not sources:
        return
    through = frame.provenance.ancestors(sources)
    frame.log(Differentiate(point, frozenset(sources), retains, creates, asked, named, ends))
    if not retains:
        state.spent = state.spent | through


def sources_of(state: State, values: list[Value]) -> frozenset[Source]:
    """Return the sources of tensors, also of those in containers."""
    sources = NO_SOURCES
    for value in values:
        sources |= reached(state, value)
    return sources

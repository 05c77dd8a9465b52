"""Loops to a fixpoint, with a phi for every place that they write and that may hold a graph.

A place grows if what comes round to the head contains the phi of the place itself and something made in this iteration.
A phi knows what it was made from: what the place held before the loop, and what came round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torchmemlint.flow.domain.effects import Effect, Hold, Keep, Repeat, each
from torchmemlint.flow.domain.frame import Frame, Written
from torchmemlint.flow.domain.heap import ELEMENT, HOLDERS, State, behind_code, load, reachable, reached
from torchmemlint.flow.domain.keys import each_key
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.manners import How, Reset
from torchmemlint.flow.domain.memory import held_under, lies_behind
from torchmemlint.flow.domain.refs import (
    Bare,
    Behind,
    Derived,
    Graph,
    Loop,
    Object,
    Passed,
    Phi,
    Place,
    Point,
    Ref,
    Result,
    Source,
    is_outside,
    root,
    with_graphs,
)
from torchmemlint.flow.domain.values import NO_CONSTANT, NO_SOURCES, NOTHING, Value, with_graph
from torchmemlint.flow.ir.control import For, While
from torchmemlint.flow.ir.filling import is_counted_within, is_filled_once
from torchmemlint.flow.ir.ops import Op
from torchmemlint.flow.ir.reaching import reaching

ROUNDS = 4


def run_loop(
    frame: Frame, state: State, loop: Loop, body: Callable[[State], None], places: tuple[Place, ...] = ()
) -> None:
    """Run a body until the loop's head is stable, and leave the state after the loop.

    The loop is taken to run at least once. `places` are known to be written in it. The first round of a loop surveys
    what it writes: the loops in it are run once, as all is done again with what was found.
    """
    outer, frame.effects = frame.effects, []
    known = frame.known.setdefault(loop, {})  # also from the last time that it was run, in a loop around it
    known.update(dict.fromkeys(place for place in places if not _is_of_item(frame, loop, place)))
    around, new = frame.surveying, not known
    before = state.copy()
    head = state
    breaks: list[State] = []
    back = state
    for number in range(ROUNDS):
        frame.effects = []
        frame.writes[loop], frame.erased[loop] = {}, set()
        frame.loops.append(loop)
        frame.breaks.append([])
        frame.continues.append([])
        inside = head.copy()
        marked = [place for place in known if _mark(frame, inside, loop, place)]
        begun = dict(inside.variables)
        outside, frame.shortened = frame.shortened, False
        frame.surveying = around or (new and not number)
        body(inside)
        shortened, frame.shortened = frame.shortened, outside
        frame.surveying = around
        for other in frame.continues.pop():
            inside.join(other)
        _fill(frame, inside, loop)
        breaks = frame.breaks.pop()
        frame.loops.pop()
        back = inside
        for place in marked:
            frame.provenance.derive(Phi.of(loop, *place), _held(back, place))
        found = [
            place
            for place, notes in frame.writes[loop].items()
            if place not in known and any(map(_comes_round, notes)) and not _is_of_item(frame, loop, place)
        ]
        if back.dead:
            break
        following = before.copy()
        following.join(back)
        stable = not found and not shortened and _same_objects(head, following)
        known.update(dict.fromkeys(found))
        if stable:
            break
        if around:
            frame.shortened = True
            break
        if number and frame.machine.is_exhausted():  # what the first round wrote has its phis by now
            frame.cut = True
            break
        head = following
    if isinstance(loop.site, For | While) and loop.site.owner is frame.function and not back.dead:
        _hold(frame, back, loop)
    inner, frame.effects = frame.effects, outer
    _log(frame, loop, inner, tuple(known))
    if loop not in frame.bounded and not back.dead:
        _keeps(frame, before, back, loop)
    state.become(back if not back.dead else _dead(before))
    for other in breaks:
        if not back.dead:  # what an iteration leaves as it began is what came round
            unchanged = (name for name, value in begun.items() if other.variables.get(name) is value)
            other.variables.update({name: back.variables[name] for name in unchanged if name in back.variables})
        state.join(other)


def note_loop(frame: Frame, loop: Loop, body: Callable[[], None]) -> None:
    """Run a loop that leaves the state as it is: once, for what it notes."""
    outer, frame.effects = frame.effects, []
    frame.writes.setdefault(loop, {})
    frame.erased.setdefault(loop, set())
    frame.loops.append(loop)
    body()
    frame.loops.pop()
    inner, frame.effects = frame.effects, outer
    _log(frame, loop, inner, ())


def _log(frame: Frame, loop: Loop, inner: list[Effect], places: tuple[Place, ...]) -> None:
    over = frame.over.get(loop, NOTHING)
    if inner or over.refs:
        point = inner[0].point if inner else Point(loop.site, loop.context)
        frame.log(Repeat(point, loop, over, inner, places, loop in frame.bounded))


def _fill(frame: Frame, state: State, loop: Loop) -> None:
    """Add to what an iteration has added what was put into it afterwards, unless a loop within lets that grow."""
    growing = {holder for other, places in frame.known.items() if other not in frame.loops for holder, _ in places}
    growing.update(effect.place[0] for effect in each(frame.effects) if type(effect) is Keep)  # of a called function
    for (holder, key), notes in frame.writes[loop].items():
        for note in notes:
            if not note.boxes or getattr(note.point.site, "name", None) == "setdefault":  # mostly, it is there already
                continue
            later = reached(state, Value(note.boxes), HOLDERS) - note.sources
            if later and growing.isdisjoint(reachable(state, note.boxes)):
                note.sources |= later
                if holder is not None and (held := state.heap.get(holder, key)) is not None:
                    state.heap.put(holder, key, with_graph(held, later))


def _comes_round(written: Written) -> bool:
    """May what is written bring a graph to the next iteration, or add one more tensor without one?"""
    return bool(written.sources if written.adds else with_graphs(written.sources))


def _dead(state: State) -> State:
    gone = state.copy()
    gone.dead = True
    return gone


def _same_objects(a: State, b: State) -> bool:
    """Do two heads differ in nothing but sources (the phis' concern) and in what only the loop itself has made?

    What is not bound before a loop cannot be read in it before it is bound.
    """
    for name, value in b.variables.items():
        mine = a.variables.get(name)
        if mine is value:
            continue
        if mine is not None and (mine.refs != value.refs or mine.open != value.open or _constant_differs(mine, value)):
            return False
    for holder in a.heap.differing(b.heap):
        edges, held = b.heap.table.get(holder), a.heap.table.get(holder)
        if held is edges or held is None or edges is None:
            continue
        for key, value in edges.items():
            mine = held.get(key, NOTHING)
            if mine is value:
                continue
            if mine.refs != value.refs or mine.open != value.open or _constant_differs(mine, value):
                return False
    return True


def _constant_differs(a: Value, b: Value) -> bool:
    if a.constant is b.constant or (a.constant is NOTHING.constant and b.constant is NO_CONSTANT):
        return False
    return type(a.constant) is not type(b.constant) or a.constant != b.constant


def _is_of_item(frame: Frame, loop: Loop, place: Place) -> bool:
    """Is it a place in an item that a loop runs over? The next iteration has another item."""
    holder = place[0]
    return holder is not None and any(r is holder or lies_behind(holder, r) for r in frame.items.get(loop, ()))


def _mark(frame: Frame, state: State, loop: Loop, place: Place) -> bool:
    """Let a place hold its phi in place of the sources it held, which the phi comes from."""
    holder, key = place
    phi = Phi.of(loop, holder, key)
    if holder is None:
        old = state.variables.get(str(key))
        if old is None:
            return False  # bound anew in every iteration
        frame.provenance.derive(phi, old.graph)
        state.variables[str(key)] = Value(old.refs, phi.alone, NO_CONSTANT, old.open)
    else:
        old = load(state, holder, key) or NOTHING
        frame.provenance.derive(phi, old.graph)
        graph = phi.alone
        state.heap.put(holder, key, Value(old.refs, graph, old.constant, old.open))
    return True


def _held(state: State, place: Place) -> frozenset[Source]:
    holder, key = place
    held = held_under(state, holder, key) if holder is not None else [state.variables.get(str(key)) or NOTHING]
    return NO_SOURCES.union(*(reached(state, value) for value in held))


def _hold(frame: Frame, back: State, loop: Loop) -> None:
    """Log what variables of a loop's function hold that an iteration has made, if nothing else keeps it anyway."""
    written, made = frame.writes[loop], frame.provenance.made_in(loop)
    held: dict[str, frozenset[Source]] = {}
    for holder, key in written if made else ():
        if _is_own(frame, holder) and isinstance(key, str):
            value = back.variables.get(key) if holder is None else back.heap.get(holder, key)
            sources = value.graph if value is not None else NO_SOURCES
            if frame.entry:  # else it is not known whether gradients are off
                sources -= with_graphs(sources)
            if sources := frozenset(s for s in sources if root(s) in made):
                held[key] = sources
    if held:
        elsewhere = [
            note.sources for (holder, _), notes in written.items() if not _is_own(frame, holder) for note in notes
        ]
        kept = reached(back, frame.yielded).union(*elsewhere)
        found = tuple((name, sources - kept) for name, sources in held.items() if not sources <= kept)
        if found:
            frame.log(Hold(Point(loop.site, loop.context), found))


def skipped(frame: Frame, state: State, point: Point) -> None:
    """Log what variables hold with a graph that the iteration has made, and no backward has run through, where it ends
    before its end."""
    loop = frame.loops[-1]
    made, kept, held = frame.provenance.made_in(loop), NO_SOURCES, dict[str, frozenset[Source]]()
    for (holder, key), notes in frame.writes[loop].items():
        if not _is_own(frame, holder):
            kept = kept.union(*(note.sources for note in notes))
        elif isinstance(key, str):
            value = state.variables.get(key) if holder is None else state.heap.get(holder, key)
            sources = with_graphs(reached(state, value)) - state.spent if value is not None else NO_SOURCES
            if sources := frozenset(s for s in sources if root(s) in made or type(s) is Phi):
                held[key] = sources
    found = tuple((name, sources) for name, sources in held.items() if sources.isdisjoint(kept))
    if found:
        frame.log(Hold(point, found))


def _is_own(frame: Frame, holder: Ref | None) -> bool:
    """Does a place belong to a variable of the function itself?"""
    return holder is None or holder is frame.own


def _keeps(frame: Frame, before: State, back: State, loop: Loop) -> None:
    """Log the places that grow."""
    provenance, around = frame.provenance, frozenset((*frame.loops, loop))
    made = provenance.made_in(loop)
    if not made:
        return
    followed: dict[frozenset[Source], set[Source]] = {}

    def ancestors(sources: frozenset[Source]) -> set[Source]:
        found = followed.get(sources)
        if found is None:
            found = followed[sources] = provenance.ancestors(sources, around)
        return found

    read = ancestors(frozenset(frame.read_in.get(loop, ())))
    alive: set[Ref] | None = None
    for place, notes in frame.writes[loop].items():
        if place not in frame.known[loop]:
            continue  # it holds no graph, or has not come round
        holder, key = place
        if holder is not None and (_is_passing(back, holder) or (type(key) is Special and key not in _HELD)):
            continue
        if key is Special.NAMED and all(note.adds for note in notes):
            continue  # an attribute whose name is not known: each has its own
        if holder is not None and root(holder) in made:
            continue  # what a call of this iteration gave: another object in each
        replaced = type(holder) is Object and (holder.kind is Kind.TENSOR or _is_made(before, back, holder))
        if replaced and not frame.applying:
            alive = _alive(frame, back) if alive is None else alive
            if holder not in alive:
                continue  # nothing leads to it any more
        phi = Phi.of(loop, holder, key)
        if phi not in provenance.parents:
            continue  # it has not come round
        held = _held(back, place)
        came_round = ancestors(held)
        if phi not in came_round:
            continue
        events = {s for s in provenance.alone(held, came_round) if root(s) in made and _is_event(s)}
        last = [note for note in _last(notes) if _survives(frame, loop, note)] if events else []
        stores = [(note, ancestors(note.sources)) for note in last]
        for kept in _apart(events):
            erased = holder is not None and holder in frame.erased[loop]
            replacing = [n for n, stored in stores if n.strong and (n.part or not (phi in stored or kept & stored))]
            if _is_of_other(place):
                replacing += [n for n, stored in stores if n.strong and phi not in stored]
            often = holder not in (None, frame.own) or any(n.often or n.part for n in replacing)
            reset = Reset.NEVER if not (erased or replacing) else Reset.OFTEN if often else Reset.SELDOM
            adding = [(note, stored, kept & stored - ancestors(note.before)) for note, stored in stores]
            if not any(fresh for *_, fresh in adding):
                adding = [(note, stored, kept & stored) for note, stored in stores]
            for note, stored, fresh in adding:  # what only changes what another write has added is no second cause
                how = _how(place, note, phi, stored)
                if how is How.COLLECTION and phi not in ancestors(note.before):
                    continue  # added to what this iteration has made; what is kept on another path is another object
                if how is How.COLLECTION and is_counted_within(note.point.site, loop.site, frame.machine.index.stored):
                    continue  # put under the keys that the iteration before had, too
                if fresh and how is not None and not is_filled_once(note.point.site):
                    spent = fresh & (back.spent | note.spent)
                    flags = reset, is_among(phi, fresh, read), note.stored
                    frame.log(Keep(note.point, place, note.sources, fresh, held, phi, spent, how, loop, *flags))


def _survives(frame: Frame, loop: Loop, written: Written) -> bool:
    """May a variable still hold what was written when the iteration ends?"""
    op, context = written.point
    if context != frame.context or not isinstance(op, Op) or op.owner is not frame.function:
        return True
    return not isinstance(loop.site, Op) or reaching(frame.function).comes_round(loop.site, op)


def _apart(events: set[Source]) -> Iterator[frozenset[Source]]:
    """Yield what may have a graph, and what has none: that is kept for other reasons."""
    graphs = with_graphs(frozenset(events))
    yield from (kept for kept in (graphs, frozenset(events - graphs)) if kept)


def is_among(phi: Phi, events: frozenset[Source], read: set[Source]) -> bool:
    """Is what an iteration makes of a place, or what the place held before, among some sources?"""
    return phi in read or not {root(s) for s in read}.isdisjoint(map(root, events))


def _is_made(before: State, back: State, holder: Object) -> bool:
    """Has an iteration made it?"""
    return back.heap.get(holder, Special.MADE) is not None and before.heap.get(holder, Special.MADE) is None


def _alive(frame: Frame, state: State) -> set[Ref]:
    """Return what the next iteration may still reach."""
    roots = {behind_code(r) for value in state.variables.values() for r in value.refs}
    roots |= {holder for holder in state.heap.table if is_outside(holder)}
    return reachable(state, [*roots, frame.own])


_FIXED = frozenset({"_parameters", "_buffers", "_modules"})  # dicts of a module whose keys stay the same
_KEPT = {Special.CACHED: How.CACHE, Special.OUTPUTS: How.OUTPUT}  # of calls, one beside the other
_HELD = frozenset({ELEMENT, Special.GRAPH, Special.NAMED, *_KEPT})


def _is_of_other(place: Place) -> bool:
    """Does a key run over those of another dict? It may have the same ones each time."""
    holder, key = place
    return type(key) is Behind and key is each_key(key.base) and key.base is not holder


def _is_passing(state: State, holder: Ref) -> bool:
    """Does it hold its elements only until they are consumed, or until nothing else does?"""
    return type(holder) is Object and (holder.kind is Kind.LAZY or state.heap.get(holder, Special.WEAK) is not None)


def _is_event(source: Source) -> bool:
    kind = type(source)
    return kind in (Graph, Derived, Passed, Bare) or type(root(source)) is Result


def _how(place: Place, note: Written, phi: Phi, stored: set[Source]) -> How | None:
    holder, key = place
    if note.hook:
        return How.HOOK
    if type(key) is Special and key in _KEPT:
        return _KEPT[key]
    if phi in stored and not (key is ELEMENT and note.adds):
        return How.SUM
    if type(holder) is Behind and holder.key in _FIXED:
        return None
    if key is ELEMENT or isinstance(key, Ref) or (holder is not None and key is Special.GRAPH):
        return How.COLLECTION
    return None  # a place of its own in each of several objects: what it held is replaced


def _last(notes: list[Written]) -> list[Written]:
    return list({note.point: note for note in notes}.values())

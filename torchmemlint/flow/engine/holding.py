"""What holds what when a function ends: objects in a circle, and older ones that are still held.

Python frees an object when the last reference to it goes. One that holds itself, by way of others, goes only when the
garbage collector finds it, with all that it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeGuard

from torchmemlint.flow.domain.effects import Circle, Hoard
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import ELEMENT, STORES, State
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import Bound, Code, Key, Method, Object, Point, Ref, is_outside
from torchmemlint.flow.domain.values import NO_SOURCES, NOTHING, WEAK, Value, limited, of
from torchmemlint.flow.ir.blocks import is_inside, layout_of
from torchmemlint.flow.ir.ops import Function, Op
from torchmemlint.flow.models import bareness
from torchmemlint.flow.models.hooks import is_hook

_HOLDING = frozenset({Kind.INSTANCE, Kind.MODULE, Kind.OPTIMIZER})
_OF_PROGRAM = frozenset({ELEMENT, Special.NAMED, Special.FUNCTION})
_MOST = 1_000  # references that are looked at for one object
Step = tuple[Ref, Key, Value]  # who holds what, under which name


def note(frame: Frame, state: State) -> None:
    """Log the circles among what a function has made, and the networks of earlier iterations that are still held."""
    objects = [r for r in state.heap.table if type(r) is Object and r.kind in _HOLDING]
    made_here = sorted((made for made in objects if _begun_by(frame, made) is frame.function), key=lambda r: r.serial)
    in_circles: set[Ref] = set()
    for made in made_here:
        if made.kind is Kind.INSTANCE and not made.older and made.context == frame.context and made not in in_circles:
            in_circles |= _note_circle(frame, state, made, Point(made.site, made.context))
    _note_hoards(frame, state, made_here)
    for name in sorted(frame.function.shared) if type(frame.own) is Object else ():
        for code in (state.heap.get(frame.own, name) or NOTHING).each():
            if type(code) is Code and code.frame is frame.own and name in code.function.mentions:
                _note_circle(frame, state, code, Point(code.function, frame.context))


def _begun(frame: Frame, made: Object) -> Op | None:
    """Return the operation, or the call, that has led to an object, as seen from the frame."""
    chain = (made.site, *made.context)
    number = len(chain) - len(frame.context) - 1
    begun = chain[number] if number >= 0 else None
    return begun if isinstance(begun, Op) else None


def _begun_by(frame: Frame, made: Object) -> Function | None:
    begun = _begun(frame, made)
    return begun.owner if begun is not None else None


def _loop(frame: Frame, made: Object) -> Op | None:
    """Return the loop of the frame's function that makes something again and again."""
    begun = _begun(frame, made)
    return next(layout_of(frame.function).loops(begun), None) if begun is not None else None


def _is_in_rows(frame: Frame, loop: Op | None, holders: list[Ref]) -> bool:
    """Is it in a tuple of the same iteration, in a container that was there before? There are older ones, then."""
    boxes = [holder for holder in holders if type(holder) is Object and holder.kind in STORES]
    inside = [(box.kind is Kind.TUPLE, is_inside([_begun(frame, box)], loop)) for box in boxes if loop is not None]
    return (True, True) in inside and (False, False) in inside


def is_network(frame: Frame, reference: Ref) -> bool:
    """Is it a module of a library with parameters, or an optimizer: what holds most of the memory of a device?"""
    if type(reference) is not Object:
        return False
    is_plain = reference.kind is Kind.MODULE and bareness.is_bare_class(str(reference.about))
    return reference.kind in (Kind.OPTIMIZER, Kind.MODULE) and not is_plain


def _note_circle(frame: Frame, state: State, start: Ref, point: Point) -> set[Ref]:
    """Log the shortest way by which something holds itself, and the networks that it holds. Return who is on it."""
    met, came_by, back = _reached(state, [start], start)
    if back is None:
        return set()
    way = _way(came_by, back)
    heavy = tuple(Point(r.site, r.context) for r in met if type(r) is Object and is_network(frame, r))
    symbols = Value(limited(frozenset(r for r in met if r.symbolic))[0])
    sources = NO_SOURCES
    if type(start) is Code:
        sources = sources.union(*(value.graph for _, _, value in _held(state, start)))
    if (heavy or symbols.refs or sources) and not _is_kept(frame, state, start):
        sole = all(map(_is_sole, (value for _, _, value in way)))
        frame.log(Circle(point, tuple((holder, key) for holder, key, _ in way), heavy, symbols, sources, sole))
    return {holder for holder, _, _ in way}


def _is_sole(value: Value) -> bool:
    """Is it one thing alone? What a library makes is open in what it can do, not in what it is."""
    one, *more = value.refs or (None,)
    return one is not None and not more and (not value.open or (type(one) is Object and one.kind is Kind.OPAQUE))


def _is_kept(frame: Frame, state: State, made: Ref) -> bool:
    """Is what was made in earlier iterations still held by something else?"""
    if type(made) is not Object:
        return False
    older = Object.of(made.kind, made.site, made.context, made.about, True)
    outside = [r for r in state.heap.table if is_outside(r)]
    roots = [r for value in (*_variables(frame, state).values(), frame.returned) for r in value.each()]
    met, came_by, back = _reached(state, [*roots, *outside], older)
    loop = _loop(frame, made)
    if back is not None or loop is None:
        return back is not None
    before = {one for one in met if _is_container(one) and not is_inside([_begun(frame, one)], loop)}
    if any((items := state.heap.get(one, ELEMENT)) is not None and items.is_short for one in before):
        return True  # not all that it holds is known
    holders = _way(came_by, came_by[made]) if made in came_by else []
    return any(holder in before for holder, _, _ in holders)


def _note_hoards(frame: Frame, state: State, made_here: list[Object]) -> None:
    """Log which networks of earlier iterations containers of variables still hold on a device."""
    loops = {made: _loop(frame, made) for made in made_here}
    some = [made for made in made_here if made.older or loops[made] is not None]
    heavy = {made: [r for r in _reached(state, [made], made)[0] if is_network(frame, r)] for made in some}
    heavy = {made: found for made, found in heavy.items() if found and not _is_on_host(state, made)}
    if heavy:
        roots = [] if frame.function.parent is None else [r for r in state.heap.table if is_outside(r)]
        elsewhere = _reached(state, [*roots, *frame.returned.refs], None)[0]  # who is given it says what becomes of it
        heavy = {made: found for made, found in heavy.items() if made not in elsewhere}
    ways: list[tuple[str, Object, list[Step]]] = []
    for name, value in _variables(frame, state).items() if heavy else ():
        if not name.isidentifier():
            continue  # of the caller that this is inlined in: to be judged when that ends
        own = [r for r in value.each() if not is_outside(r)]  # an imported file, or a class, is no variable's alone
        came_by = _reached(state, own, None)[1]
        ways += [(name, made, _way(came_by, came_by[made])) for made in heavy if made in came_by]
    parts = {made for _, made, way in ways if any(_is_module(frame, holder) for holder, _, _ in way)}
    for name, made, way in ways:
        if made in heavy and made not in parts:
            holders = [holder for holder, _, _ in way]
            if not made.older and not _is_in_rows(frame, loops[made], holders):
                continue
            if any(is_hook(key) for _, key, _ in way):
                continue  # see TML802
            shortened = _is_cut_short(frame, name) or any(_is_shortened(frame, state, one) for one in holders)
            if any(map(_is_container, holders)) and not shortened:
                points = tuple(Point(r.site, r.context) for r in heavy.pop(made) if type(r) is Object)
                frame.log(Hoard(Point(made.site, made.context), points, name))


def _is_shortened(frame: Frame, state: State, holder: Ref) -> bool:
    """Does a loop remove what a container holds, or does that push older elements out?"""
    return state.heap.get(holder, Special.BOUNDED) is not None or any(holder in gone for gone in frame.erased.values())


def _is_cut_short(frame: Frame, name: str) -> bool:
    """Does a loop put a part of a list in the place of it?"""
    return any(note.part for places in frame.writes.values() for note in places.get((None, name), ()))


def _is_container(holder: Ref) -> TypeGuard[Object]:
    return type(holder) is Object and holder.kind in (Kind.LIST, Kind.DICT)


def _is_module(frame: Frame, holder: Ref) -> bool:
    """Is it a network, which holds its parts?"""
    if type(holder) is not Object:
        return False
    is_own = holder.kind is Kind.INSTANCE and frame.machine.index.is_network(holder.about.cls)
    return is_own or holder.kind is Kind.MODULE


def _is_on_host(state: State, made: Object) -> bool:
    host = state.heap.get(made, Special.HOST)
    return host is not None and host.constant is True


def _variables(frame: Frame, state: State) -> dict[str, Value]:
    """Return the variables of a function, also those that nested functions share."""
    shared = state.heap.edges(frame.own)
    return state.variables | {name: value for name, value in shared.items() if isinstance(name, str)}


def _reached(state: State, roots: Iterable[Ref], end: Ref | None) -> tuple[list[Ref], dict[Ref, Step], Step | None]:
    """Return what some objects hold, each with who does so, and who holds the one that is looked for."""
    met = list(roots)
    came_by: dict[Ref, Step] = {}
    back: Step | None = None
    for holder in met:
        for step in _held(state, holder):
            for reference in step[2].each():
                if reference is end:
                    back = back or step
                elif reference not in came_by and len(met) < _MOST:
                    came_by[reference] = step
                    met.append(reference)
    return met, came_by, back


def _way(came_by: dict[Ref, Step], back: Step) -> list[Step]:
    way = [back]
    while (before := came_by.get(way[0][0])) is not None and before not in way:
        way.insert(0, before)
    return way


def _held(state: State, holder: Ref) -> Iterator[Step]:
    """Yield what something holds by itself."""
    match holder:
        case Bound(code=code, receiver=receiver):
            yield holder, Special.FUNCTION, of(code)
            yield holder, Special.FUNCTION, of(receiver)
        case Method(receiver=receiver):
            yield holder, Special.FUNCTION, of(receiver)
        case Code(function=function, frame=frame):
            around: Ref | None = frame
            while type(around) is Object and around.kind is Kind.FRAME:
                for name, value in state.heap.edges(around).items():
                    if name in function.mentions:
                        yield holder, name, value
                outer = state.heap.get(around, Special.OUTER)
                around = next(iter(outer.refs), None) if outer is not None else None
    if type(holder) is Object and holder.kind is Kind.FRAME:
        return  # it is the functions that hold its variables: each those that it mentions
    for key, value in state.heap.edges(holder).items():
        if (type(key) is not Special or key in _OF_PROGRAM) and value.constant is not WEAK:
            yield holder, key, value

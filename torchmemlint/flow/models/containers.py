"""Lists, dictionaries, tuples and streams: every method is reads and writes of edges."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from functools import partial

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Write
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import ELEMENT, State, elements, load, renew, set_last, visible
from torchmemlint.flow.domain.keys import key_of
from torchmemlint.flow.domain.kinds import PART, Kind, Special
from torchmemlint.flow.domain.memory import begin, erase, write
from torchmemlint.flow.domain.refs import Bare, External, Key, Object, Phi, Point, Ref, Slot, Source
from torchmemlint.flow.domain.values import NOTHING, PLAIN, UNKNOWN, Value, chosen, join, join_all, of, with_graph
from torchmemlint.flow.ir.ops import FIRST, Call, Make
from torchmemlint.flow.ir.places import ConstantKey, SliceKey
from torchmemlint.flow.models import columns

METHODS = frozenset(
    "append extend setdefault get items values keys pop popleft popitem clear appendleft extendleft insert remove sort "
    "copy add update most_common discard index count reverse put put_nowait get_nowait union push "
    "__setitem__ __getitem__ __delitem__".split()
)
ON_SYMBOLS = frozenset(
    "append extend setdefault items values keys pop popleft clear appendleft insert get "
    "__setitem__ __getitem__ __delitem__".split()
)
ADDING = frozenset({"append", "appendleft", "add", "put", "put_nowait", "push"})
INNER = {"queue": ("queue", "_queue")}  # by what is about: attributes under which it gives what it keeps its items in
_TAKING = frozenset({"pop", "popleft", "popitem", "get_nowait"})


def through(value: Value | frozenset[Source]) -> frozenset[Source]:
    """Return the places that a container went through, and the files that it was read from."""
    graph = value.graph if isinstance(value, Value) else value
    return frozenset(s for s in graph if isinstance(s, Phi | Slot | Bare)) if graph else graph


def marked(value: Value, sources: frozenset[Source]) -> Value:
    """Return what is read from a container, which went through the same places."""
    return with_graph(value, sources) if sources and (value.graph or value.refs) else value


def all_values(state: State, box: Value) -> Value:
    """Return all that containers hold."""
    if not box.refs:
        return Value(graph=box.graph, open=True)
    result = NOTHING
    for holder in box.each():
        result = join(result, elements(state, holder))
    return marked(result, through(box))


def written_out(state: State, value: Value) -> list[Value] | None:
    """Return the items of a tuple or list of which each is known, or of rows of such turned round; None for others."""
    if len(value.refs) != 1 or value.open:
        return None
    holder = next(iter(value.each()))
    if type(holder) is Object and holder.about == columns.COLUMNS:
        rows = [written_out(state, of(row)) for row in columns.part(state, holder, 0).each()]
        known = [row for row in rows if row is not None]
        if not known or len(known) < len(rows) or len({len(row) for row in known}) > 1:
            return None
        return [
            columns.column(state, holder, number, join_all(items))
            for number, items in enumerate(zip(*known, strict=True))
        ]
    if type(holder) is not Object or holder.kind not in (Kind.TUPLE, Kind.LIST):
        return None
    edges = state.heap.edges(holder)
    if ELEMENT in edges:
        return None
    numbers = [key for key in edges if type(key) is int]
    return [edges[n] for n in range(len(numbers))] if sorted(numbers) == list(range(len(numbers))) else None


def made(site: CallSite, kind: Kind, about: object = None) -> Value:
    """Return a new container of this site."""
    box = Object.of(kind, site.point.site, site.point.context, about)
    return begin(site.frame, site.state, box, site.point)


def row(site: CallSite, about: object, values: Iterable[Value]) -> Value:
    """Return a new tuple."""
    box = made(site, Kind.TUPLE, about)
    for holder in box.each():
        for number, value in enumerate(values):
            site.state.heap.put(holder, number, value)
    return box


def record(site: CallSite, about: object, fields: Mapping[str, Value]) -> Value:
    """Return a new tuple whose items have names, too."""
    box = row(site, about, fields.values())
    for holder in box.each():
        for name, value in fields.items():
            site.state.heap.put(holder, name, value)
    return box


def lazy(site: CallSite, how: str, parts: Iterable[Value]) -> Value:
    """Return an iterator that does its work when it is consumed."""
    box = Object.of(Kind.LAZY, site.point.site, site.point.context, how)
    for number, part in enumerate(parts):
        site.state.heap.put(box, ("part", number), part)
    return of(box)


def item(frame: Frame, state: State, holder: Object, key: Key, marks: frozenset[Source], point: Point) -> Value:
    """Return one item of a container."""
    if key == -1 and (last := state.heap.get(holder, Special.LAST)) is not None:
        return last
    if key is ELEMENT or (type(key) is int and key < 0):
        found = elements(state, holder)
    else:
        own, rest = state.heap.get(holder, key), _under_any_key(state, holder, key)
        ordered = holder.kind in (Kind.TUPLE, Kind.LIST) and state.heap.get(holder, Special.MIXED) is None
        if own is not None and (rest is None or ordered):
            found = own
            if holder.kind is Kind.TUPLE:  # it is what was put there: what else went through a place with it is not
                marks = frozenset(s for s in marks if type(s) is not Phi)
        else:
            found = join(own if own is not None else NOTHING, rest if rest is not None else NOTHING)
    factory = state.heap.get(holder, Special.FACTORY)
    if factory is not None and not found.refs and not found.graph:
        site = CallSite(frame, state, point, Arguments())
        found = join(found, site.call(factory))
        state.heap.put(holder, key, found)  # one object stands for those of all keys that are not known
    if found is NOTHING and not state.heap.edges(holder):
        found = PLAIN
    return marked(found, marks)


def _under_any_key(state: State, holder: Object, key: Key) -> Value | None:
    """Return what may stand under a key because it was stored under one that is not known."""
    found = state.heap.get(holder, ELEMENT)
    named = state.heap.get(holder, Special.NAMED)
    if named is not None:
        found = named if found is None else join(found, named)
    for other, held in state.heap.edges(holder).items():
        if other is not key and (isinstance(other, Ref) or (isinstance(key, Ref) and type(other) is not Special)):
            found = held if found is None else join(found, held)
    return found


def part_of(frame: Frame, state: State, base: Value, point: Point, key: SliceKey) -> Value:
    """Return `base[a:b]`: a list of the same elements, or a view of the tensor."""
    boxes = [r for r in base.refs if type(r) is Object and r.kind in (Kind.LIST, Kind.TUPLE)]
    if not boxes:
        return base
    new = Object.of(Kind.LIST, point.site, point.context, PART if key.limited or key.start else "slice")
    renew(state, new)
    held = NOTHING
    for holder in boxes:
        for name, value in visible(state.heap.edges(holder)):
            if not (type(name) is int and 0 <= name < key.start):
                held = join(held, value)
    own = through(base)
    if own:
        state.heap.put(new, Special.PART, Value(graph=own))
    if key.limited:  # a part does not grow with the whole: it may be the last few
        rest = frame.provenance.apart_from(held.graph - own, own)
        state.heap.put(new, ELEMENT, Value(held.refs, rest, open=held.open))
        return of(new)
    state.heap.put(new, ELEMENT, held)
    return Value(new.alone, own)


def _key(site: CallSite, index: int, name: str) -> Key:
    return key_of(site.value(index, name))


def method(site: CallSite, target: Ref, name: str, graph: frozenset[Source]) -> Value:
    """Return the value of a container's method."""
    state, arguments, marks = site.state, site.arguments, through(graph)
    box = Value(target.alone, marks | {target} if target in graph else marks)
    if name in ADDING:
        return _added(site, target, box, name)
    if name in _TAKING:
        key = _key(site, 0, "key") if name == "pop" else ELEMENT
        value = site.item(box, key if not (type(key) is int and key <= 0) else ELEMENT)
        erase(site.frame, site.state, of(target), key if type(key) is str else ELEMENT, site.point)
        return join(value, arguments.positional[1]) if len(arguments.positional) > 1 else value
    match name:
        case "insert":
            site.write(box, ELEMENT, site.value(1, "object"), True)
        case "extend" | "extendleft":
            site.consume(site.value(0), box)
            _pushed_out(site, target)
        case "update" | "union":
            for value in arguments.positional:
                merge(site, box, value)
            for key, value in arguments.named.items():
                site.write(box, key, value)
            if arguments.stars is not None:
                merge(site, box, arguments.stars)
        case "setdefault":
            key = _key(site, 0, "key")
            old, new = site.item(box, key), site.value(1, "default")
            site.write(of(target), key, new, True)
            return join(old, new)
        case "get" | "__getitem__":
            value = site.item(box, _key(site, 0, "key"))
            return join(value, arguments.positional[1]) if len(arguments.positional) > 1 else value
        case "__setitem__":
            write(site.frame, state, box, _key(site, 0, "key"), site.value(1), site.point, item=True)
        case "clear":
            erase(site.frame, site.state, of(target), None, site.point)
        case "sort" | "reverse":
            put_last(site.frame, state, target, NOTHING, site.point)
        case "remove" | "discard" | "__delitem__":
            erase(site.frame, site.state, of(target), ELEMENT, site.point)
        case "items" | "most_common":
            return lazy(site, "items", [box])
        case "values":
            return lazy(site, "values", [box])
        case "keys":
            return lazy(site, "keys", [box])
        case "copy":
            kind = target.kind if type(target) is Object else Kind.LIST
            new = made(site, kind, "copy")
            for holder in new.each():
                for key, value in visible(state.heap.edges(target)):
                    state.heap.put(holder, key, value)
                if target.symbolic:
                    state.heap.put(holder, ELEMENT, load(state, target, ELEMENT) or UNKNOWN)
            return new
    return PLAIN


def _added(site: CallSite, target: Ref, box: Value, name: str) -> Value:
    if site.arguments.positional:
        site.write(box, ELEMENT, site.arguments.positional[0], True)
        if name == "append" and not (type(target) is Object and target.older):
            put_last(site.frame, site.state, target, site.arguments.positional[0], site.point)
    elif site.arguments.star is not None:
        site.write(box, ELEMENT, site.iterate(site.arguments.star), True)
    _pushed_out(site, target)
    return PLAIN


def put_last(frame: Frame, state: State, target: Ref, value: Value, point: Point) -> None:
    """Note what is the last of a list, NOTHING where that is not known; what a caller gave is the caller's, too."""
    set_last(state, target, value)
    if target.symbolic:
        frame.log(Write(point, target, Special.LAST, value, weak=False))


def _pushed_out(site: CallSite, target: Ref) -> None:
    if site.state.heap.get(target, Special.BOUNDED) is not None:
        erase(site.frame, site.state, of(target), ELEMENT, site.point)


def consumed(site: CallSite) -> CallSite:
    """Return a call of what is not modelled: the generator expressions that it is given are consumed by it."""
    given = site.arguments
    if not any(_is_expression(site.state, value) for value in given.all()):
        return site
    more = Arguments(
        [_drained(site, value) for value in given.positional],
        {name: _drained(site, value) for name, value in given.named.items()},
        None if given.star is None else _drained(site, given.star),
        given.stars,
    )
    return CallSite(site.frame, site.state, site.point, more)


def _is_expression(state: State, value: Value) -> bool:
    return any(
        type(r) is Object and r.kind is Kind.GENERATOR and state.heap.get(r, FIRST) is not None for r in value.refs
    )


def _drained(site: CallSite, value: Value) -> Value:
    if not _is_expression(site.state, value):
        return value
    item = site.consume(value)  # whether all items are kept until the end is not seen
    box = made(site, Kind.LIST, "consumed")
    for holder in box.each():
        site.state.heap.put(holder, ELEMENT, item)
    return box


def on_unknown(site: CallSite, name: str) -> Value:
    """Return the value of a container's method where nothing is known of the container."""
    if name in ("get", "pop", "setdefault"):
        given = site.arguments.joined()
        return Value(given.refs, given.graph, open=True)
    return UNKNOWN


def merge(site: CallSite, box: Value, other: Value) -> None:
    """`box.update(other)` and `{**other}`, key by key."""
    for holder in other.each():
        if type(holder) is Object and holder.kind in (Kind.LAZY, Kind.GENERATOR, Kind.LIST, Kind.TUPLE):
            pair = site.iterate(of(holder))
            if any(type(r) is Object and r.kind is Kind.TUPLE for r in pair.refs):
                site.write(box, ELEMENT, site.item(pair, 1), True)
            else:
                site.write(box, ELEMENT, pair, True)
            continue
        for key, value in list(visible(site.state.heap.edges(holder))):
            site.write(box, key, value, type(key) is Special)
        if type(holder) is External:
            site.write(box, ELEMENT, UNKNOWN, True)
        unseen = holder.symbolic or (type(holder) is Object and holder.kind is Kind.OPAQUE)
        if unseen and site.state.heap.get(holder, ELEMENT) is None:
            site.write(box, ELEMENT, marked(elements(site.state, holder), through(other)), True)


def merged(site: CallSite, values: list[Value], in_place: bool) -> Value:
    """`a | b` and `a |= b` of dicts and sets."""
    if in_place:
        merge(site, values[0], values[1])
        return values[0]
    new = made(site, Kind.DICT, "merged")
    for value in values:
        merge(site, new, value)
    return new


def concatenated(frame: Frame, state: State, values: list[Value], in_place: bool, point: Point) -> Value:
    """`a + b` and `a += b` of sequences."""
    if in_place and not any(type(r) is Object and r.kind is Kind.TUPLE for r in values[0].refs):
        frame.machine.consume(frame, state, values[1], values[0], point)
        return values[0]
    known = [written_out(state, value) for value in values]
    new = Object.of(Kind.LIST, point.site, point.context, "sum")
    renew(state, new)
    marks: frozenset[Source] = through(values[0]) | through(values[1])
    begun = list(itertools.takewhile(lambda items: items is not None, known)) if not marks and not frame.loops else []
    for number, value in enumerate(value for items in begun for value in items or ()):
        state.heap.put(new, number, value)
    rest = [all_values(state, value) for value in values[len(begun) :]]
    if rest:  # what follows a part of unknown length stands anywhere behind the beginning
        held = join_all(rest)
        state.heap.put(new, ELEMENT, Value(held.refs, held.graph | marks, open=held.open))
    return Value(new.alone, marks)


def partially(site: CallSite) -> Value:
    """Return a function, or what names a method, with the other arguments of a call."""
    made = Object.of(Kind.PARTIAL, site.point.site, site.point.context)
    renew(site.state, made)
    heap = site.state.heap
    heap.put(made, Special.FUNCTION, site.value(0))
    for number, value in enumerate(site.arguments.positional[1:]):
        heap.put(made, ("part", number), value)
    for name, value in site.arguments.named.items():
        heap.put(made, name, value)
    return of(made)


def kept_arguments(state: State, partial: Object) -> Arguments:
    """Return the arguments that a partial keeps."""
    edges = state.heap.edges(partial).items()
    named = {key: value for key, value in edges if type(key) is str}
    return Arguments([value for key, value in edges if type(key) is tuple], named)


def spread(state: State, arguments: Arguments) -> Arguments:
    """Return the arguments of a call with those one by one that are spread, as far as they are known.

    What is put into a dict later, or is not in all that may be spread, is what somebody may choose.
    """
    items = written_out(state, arguments.star) if arguments.star is not None else []
    positional = [*arguments.positional, *(items or ())]
    if arguments.stars is None:
        return Arguments(positional, arguments.named, arguments.star if items is None else None)
    boxes = [r for r in arguments.stars.each() if type(r) is Object and r.kind is Kind.DICT]
    named: dict[str, Value] = {}
    edges = [dict(visible(state.heap.edges(box))) for box in boxes]
    known = len(boxes) == len(arguments.stars.refs) and not arguments.stars.open and boxes
    for key in dict.fromkeys(key for held in edges for key in held if type(key) is str):
        value = join_all(held[key] for held in edges if key in held)
        if any(type(other) is not str for held in edges for other in held):
            value = Value(value.refs, value.graph, open=True)  # what else is put into it may replace that
        certain = all(map(partial(_is_written, key), boxes)) and all(key in held for held in edges)
        named[key] = chosen(value) if value.known and not certain else value
    rest = None if known and all(type(key) is str for held in edges for key in held) else arguments.stars
    return Arguments(positional, {**named, **arguments.named}, arguments.star if items is None else None, rest)


def _is_written(key: str, box: Object) -> bool:
    """Does a dict have a key from the beginning?"""
    if type(box.site) is Make:
        return any(type(entry.key) is ConstantKey and entry.key.value == key for entry in box.site.entries)
    return type(box.site) is not Call or any(argument.name == key for argument in box.site.arguments)


def shorten(state: State, box: Value) -> None:
    """Note that a new container has been filled from a few things."""
    for holder in box.refs:
        state.heap.put(holder, Special.SHORT, PLAIN)

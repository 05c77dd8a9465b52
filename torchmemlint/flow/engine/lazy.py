"""Iterators that do their work when they are consumed: map, zip, enumerate, dict views, and wrappers such as tqdm."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import ELEMENT, State, visible
from torchmemlint.flow.domain.keys import each_key
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.memory import escape, renew_keys
from torchmemlint.flow.domain.refs import PATH_LIMIT, Object, Parameters, Point, Ref
from torchmemlint.flow.domain.values import PLAIN, UNKNOWN, Value, constant, join, of
from torchmemlint.flow.ir.control import For
from torchmemlint.flow.ir.ops import FIRST
from torchmemlint.flow.models import columns, containers, modules, workers


def following(frame: Frame, state: State, holder: Object, point: Point) -> Value:
    """Return the next item of a lazy iterator. Its `about` says how it makes them, its parts from what."""
    parts: list[Value] = []
    while (part := state.heap.get(holder, ("part", len(parts)))) is not None:
        parts.append(part)
    if not parts:
        return UNKNOWN
    iterate = frame.machine.iterate
    match holder.about:
        case "through":
            return iterate(frame, state, parts[0], point)
        case "cycle" | "tee":  # they give an item again
            found = iterate(frame, state, parts[0], point)
            escape(frame, state, [found], point)
            return found
        case "values":
            return _value_of(frame, state, parts[0], point)
        case "keys":
            return keys_of(frame, state, parts[0])
        case "items":
            key = keys_of(frame, state, parts[0])
            return _row(state, holder, [key, _value_of(frame, state, parts[0], point)])
        case "enumerate":
            return _row(state, holder, [PLAIN, iterate(frame, state, parts[0], point)])
        case "map":
            given = [iterate(frame, state, part, point) for part in parts[1:]]
            return frame.machine.call(frame, state, parts[0], Arguments(given), point)
        case "thread map" | "thread starmap" | "process map" | "process starmap" as how:
            given = [iterate(frame, state, part, point) for part in parts[1:]]
            spread = Arguments(star=given[0] if given else None) if how.endswith("starmap") else Arguments(given)
            run = workers.in_thread if how.startswith("thread") else workers.in_process
            return run(CallSite(frame, state, point, spread), parts[0], spread)
        case "starmap":
            given = [iterate(frame, state, part, point) for part in parts[1:]]
            return frame.machine.call(frame, state, parts[0], Arguments(star=given[0] if given else UNKNOWN), point)
        case "filter":
            return iterate(frame, state, parts[-1], point)
        case "call":  # iter(callable, sentinel)
            return frame.machine.call(frame, state, parts[0], Arguments(), point)
        case "chain":
            result = UNKNOWN
            for part in parts:
                found = iterate(frame, state, part, point)
                result = found if result is UNKNOWN else join(result, found)
            return result
        case columns.COLUMNS:
            return columns.column(state, holder, "any", iterate(frame, state, parts[0], point))
        case _:  # zip
            return _row(state, holder, [iterate(frame, state, part, point) for part in parts])


def _value_of(frame: Frame, state: State, box: Value, point: Point) -> Value:
    """Return one value of a dict; of one that is not known, a caller may know what calls have put into it.

    What a `for` asks a caller for is the next item: of a dict, a key.
    """
    if any(r.symbolic for r in box.refs) and not isinstance(point.site, For):
        return frame.machine.item(frame, state, box, ELEMENT, point)
    return containers.all_values(state, box)


def keys_of(frame: Frame, state: State, box: Value) -> Value:
    """Return one key of a dict: the same for all that is stored under it until the next is taken.

    Where it is not known which dict it is, it is one of each.
    """
    keys = [key_of(frame, state, holder) for holder in box.each()]
    return Value(frozenset().union(*(key.refs for key in keys))) if keys and all(key.refs for key in keys) else PLAIN


def key_of(frame: Frame, state: State, holder: Ref) -> Value:
    """Return one key of a dict."""
    if (only := only_key(state, holder)) is not None:
        return only
    if holder.depth >= PATH_LIMIT:
        return PLAIN
    key = each_key(holder)
    renew_keys(frame, state, key)
    return Value(key.alone)


def only_key(state: State, holder: Ref) -> Value | None:
    """Return the key of a dict that has just one."""
    if type(holder) is not Object or holder.kind is not Kind.DICT:
        return None
    keys = [key for key, _ in visible(state.heap.edges(holder))]
    return constant(keys[0]) if len(keys) == 1 and isinstance(keys[0], str | int) else None


def _row(state: State, holder: Object, values: list[Value]) -> Value:
    row = Object.of(Kind.TUPLE, holder.site, holder.context, "row")
    state.heap.drop(row)
    for index, value in enumerate(values):
        state.heap.put(row, index, value)
    return of(row)


def is_short(state: State, source: Value) -> bool:
    """Is it surely a few things that are written out, or the parts of a module?"""
    return bool(source.refs) and all(_is_short(state, r) for r in source.refs)


def _is_short(state: State, reference: Ref) -> bool:
    """Is it a few things that are written out, or the parts of a module?"""
    if type(reference) is Parameters:
        return True
    if type(reference) is not Object:
        return False
    if reference.kind is Kind.MODULE or reference.about in modules.OF_PARAMETERS:
        return True
    if reference.kind is Kind.GENERATOR:  # a generator expression gives one for each of its first iterable
        first = state.heap.get(reference, FIRST)
        return first is not None and is_short(state, first)
    if reference.kind is Kind.LAZY:
        parts = [state.heap.get(reference, ("part", i)) for i in range(3)]
        given = [part for part in parts if part is not None]
        short = [is_short(state, part) for part in given]
        if reference.about in ("cycle", "chain"):
            return reference.about == "chain" and all(short)
        return any(short)
    if reference.kind not in (Kind.TUPLE, Kind.LIST):
        return False
    few = state.heap.get(reference, ELEMENT) is None and state.heap.get(reference, 0) is not None
    return few or state.heap.get(reference, Special.SHORT) is not None

"""Reading attributes and items, and iterating."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Renew
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import BOXES, ELEMENT, Mode, State, elements, load, reached
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.memory import differentiate, forget, renew_keys, write
from torchmemlint.flow.domain.refs import (
    NO_PATH,
    PATH_LIMIT,
    Bare,
    Behind,
    Bound,
    ClassRef,
    Code,
    Derived,
    External,
    Globals,
    Graph,
    Input,
    Key,
    Loop,
    Method,
    Object,
    Parameters,
    Part,
    Passed,
    Phi,
    Point,
    Ref,
    Result,
    Slot,
    Source,
    SuperRef,
    root,
)
from torchmemlint.flow.domain.values import (
    NOTHING,
    PLAIN,
    UNKNOWN,
    Value,
    join,
    join_all,
    of,
    symbol,
    tensor,
    with_graph,
    without_graph,
)
from torchmemlint.flow.engine import instances, lazy
from torchmemlint.flow.engine.lazy import is_short
from torchmemlint.flow.engine.loops import run_loop
from torchmemlint.flow.ir.places import SOME_PART, SliceKey
from torchmemlint.flow.models import containers, contracted, gradients, handing, modules, namespaces, tensors
from torchmemlint.flow.models.parameters import parameter

_CARRIERS = (Graph, Bare, Part, Result, Derived, Passed, Phi, Slot)


def attribute(frame: Frame, state: State, base: Value, name: Key, point: Point) -> Value:
    """Return `base.name`; for symbolic paths the name may be a constant key or the element."""
    if name is ELEMENT or type(name) is int:
        return item(frame, state, base, name, point)
    if name is Special.OTHER:
        return no_module(frame, base)
    if type(name) is Special:
        return _special(state, base, name)
    if type(name) is tuple:
        only = lazy.only_key(state, next(iter(base.refs))) if name[0] == "key" and len(base.refs) == 1 else None
        if only is not None:
            return only
        return Value(frozenset(Behind.of(holder, name) for holder in base.refs if holder.depth < NO_PATH))
    if not base.refs:
        if name in tensors.NO_GRAPH_ATTRIBUTES:
            return tensors.without_graph(frame, state, base, str(name), point)
        return Value(graph=base.graph, open=True) if base.graph and name != "grad" else UNKNOWN
    result = NOTHING
    for holder in base.each():
        result = join(result, _attribute_of(frame, state, holder, base, str(name), point))
    return result


def loaded(state: State, value: Value) -> Value:
    """Return what a name of a module holds by now, where that is known."""
    for r in value.refs:
        if type(r) is Behind and type(r.base) is Globals:
            held = state.heap.get(r.base, r.key)
            if held is not None:
                return held
    return value


def no_module(frame: Frame, value: Value) -> Value:
    """Return what is left of a value that is no module; what a symbol stands for, only the caller knows."""
    refs = frozenset(r for r in value.refs if type(r) is not Object or r.kind is not Kind.MODULE)
    if not frame.entry:
        refs = frozenset(Behind.of(r, Special.OTHER) if r.symbolic and r.depth < PATH_LIMIT else r for r in refs)
    return value if refs == value.refs else Value(refs, value.graph, open=value.open or not refs)


def _special(state: State, base: Value, name: Special) -> Value:
    result = NOTHING
    for holder in base.each():
        result = join(result, load(state, holder, name) or NOTHING)
    return result


def _attribute_of(frame: Frame, state: State, holder: Ref, base: Value, name: str, point: Point) -> Value:
    if type(holder) is Globals and name == "__dict__":
        return namespaces.namespace(CallSite(frame, state, point, Arguments()), holder)
    if type(holder) is Globals and state.heap.get(holder, name) is None:
        known = frame.machine.index.attribute(holder.module, name)
        if known is not None and known.refs != Behind.of(holder, name).alone:
            return loaded(state, known)
    if contracted.is_call(frame.machine.index.contracts, holder, name) and state.heap.get(holder, name) is None:
        return of(Method.of(holder, name))
    if holder.symbolic:
        return _behind(frame, state, holder, base, name, point, item=False)
    if type(holder) is External:
        qualified = f"{holder.qualified}.{name}"
        known = frame.machine.index.resolve(qualified)
        return loaded(state, known) if known is not None else of(External.of(qualified))
    if type(holder) is Object:
        edges = state.heap.edges(holder)
        own = edges.get(name)
        if holder.kind in BOXES:
            if own is not None:
                return containers.marked(own, containers.through(base))
            if name in containers.METHODS:
                return of(Method.of(holder, name))
            if name in containers.INNER.get(holder.about, ()):
                return base
            if holder.kind is Kind.DICT:
                found = containers.item(frame, state, holder, name, containers.through(base), point)
                return UNKNOWN if found is NOTHING else found
            if name in tensors.NO_GRAPH_ATTRIBUTES:
                return UNKNOWN  # no sequence has it: something else is meant
            return containers.marked(elements(state, holder), containers.through(base))
        if own is not None:
            return handing.read(frame, state, holder, name, own, point) if Special.HANDED in edges else own
        if holder.kind is Kind.INSTANCE:
            return instances.attribute(frame, state, holder, name, point)
        if holder.kind is Kind.MODULE:
            return modules.attribute(frame, state, holder, name, point)
        if holder.kind is Kind.TENSOR:
            if name == "grad":
                gradients.read(frame, state, holder, point)
                return UNKNOWN
            if name in tensors.NO_GRAPH_ATTRIBUTES:
                return tensors.without_graph(frame, state, base, name, point)
            return of(Method.of(holder, name))
        if holder.kind is Kind.OPAQUE:
            if name in tensors.NO_GRAPH_ATTRIBUTES:  # as a tensor of a library's own class has them
                return tensors.without_graph(frame, state, base, name, point)
            return base if name == "__dict__" else instances.elsewhere(holder, name, base.graph)
        if holder.kind is Kind.PARTIAL and name in ("args", "keywords"):
            return base  # its items are the arguments that it keeps
        return of(Method.of(holder, name))
    if type(holder) is Parameters:
        if name == "grad":
            gradients.read(frame, state, holder, point)
            return UNKNOWN
        return PLAIN if name in tensors.NO_GRAPH_ATTRIBUTES else of(Method.of(holder, name))
    if type(holder) in (ClassRef, Code, Bound, SuperRef):
        return instances.attribute(frame, state, holder, name, point)
    return UNKNOWN


def _is_read_by_caller(frame: Frame, state: State, holder: Ref, key: Key, item: bool) -> bool:
    """Does only the caller know what lies behind a symbol: what calls wrote or make there, or if it is a tensor?"""
    if key == "data" and not item:
        return not frame.entry and type(holder) is not Globals
    if frame.entry or not (frame.calls or frame.loops or state.mode is Mode.OFF) or type(root(holder)) is Result:
        return False
    return item or key in frame.machine.index.stored


def _behind(frame: Frame, state: State, holder: Ref, base: Value, name: Key, point: Point, item: bool) -> Value:
    """Return an attribute or item of something symbolic, with the graph that came along with it."""
    own = state.heap.get(holder, name)
    if name == gradients.TRAINING:
        known = gradients.training(state, holder)
        if known.known:
            return known
    if name == "grad" and not item:
        gradients.read(frame, state, holder, point)
    if name == "grad_fn" and base.graph:
        differentiate(frame, state, base.graph, point, True)  # who walks through the graph needs it
    if own is None and _is_read_by_caller(frame, state, holder, name, item):
        own = handing.asked(frame, state, symbol(holder), name, item, point, holder)
        if not item and name in tensors.NO_GRAPH_ATTRIBUTES:
            return own  # without the graph of what it is read from
    if own is None and not item and name in tensors.NO_GRAPH_ATTRIBUTES and type(holder) is not Globals:
        is_self = type(holder) is Input and holder.name == holder.function.receiver
        if (name == "device" or is_self) and not frame.entry and holder.depth < PATH_LIMIT:  # a caller may know which
            return Value(Behind.of(holder, name).alone, open=True)
        return tensors.without_graph(frame, state, base, str(name), point)
    found = own if own is not None else load(state, holder, name) or UNKNOWN
    if own is None and found.graph and type(root(holder)) is Result and holder not in base.graph:
        found = without_graph(found)  # it has no graph here: neither has what it holds
    rest = frozenset(s for s in base.graph if s is not holder and isinstance(s, _CARRIERS))
    return with_graph(found, rest) if rest else found


def slice_of(frame: Frame, state: State, base: Value, point: Point, key: SliceKey) -> Value:
    """Return a slice. Of something symbolic, only a caller knows whether that is a list.

    That of a tensor comes from where the whole has been; a list of some of the elements does not.
    """
    if frame.entry or not base.refs or not all(holder.symbolic for holder in base.refs):
        return containers.part_of(frame, state, base, point, key)
    part = handing.asked(frame, state, base, Special.PART, True, point)
    for result in part.refs:
        frame.provenance.derive(result, (s for s in base.graph if s not in base.refs and isinstance(s, _CARRIERS)))
    return part


def rest_of(frame: Frame, state: State, base: Value, point: Point, start: int) -> Value:
    """Return what a call gives beside its first results. If nobody has seen it, it is another result than the first."""
    if not frame.entry:
        return handing.asked(frame, state, base, Special.REST, True, point)
    if base.refs and all(type(r) is Result for r in base.refs):
        return item(frame, state, base, start, point)
    return containers.part_of(frame, state, base, point, SliceKey(start=start))


def item(frame: Frame, state: State, base: Value, key: Key, point: Point) -> Value:
    """Return `base[key]`; the key is a constant, or the element where it is computed."""
    key = ELEMENT if key is Special.NAMED else key
    if key is Special.PART:
        return slice_of(frame, state, base, point, SOME_PART)
    if key is Special.REST:
        return rest_of(frame, state, base, point, 1)
    if not base.refs:
        beside = type(key) is int and key > 0
        return Value(graph=_parts_of(frame, base.graph, key) if beside else base.graph, open=base.open)
    result = NOTHING
    for holder in base.each():
        result = join(result, _item_of(frame, state, holder, base, key, point))
    return result


def _parts_of(frame: Frame, graph: frozenset[Source], key: Key) -> frozenset[Source]:
    """Return the sources of what networks gave beside their first results."""
    parts: dict[Source, Source] = {s: Part.of(s, key) for s in graph if type(s) is Graph}
    for whole, part in parts.items():
        frame.provenance.derive(part, (whole,))
    return frozenset(parts.get(s, s) for s in graph)


def _item_of(frame: Frame, state: State, holder: Ref, base: Value, key: Key, point: Point) -> Value:
    if holder.symbolic:
        if key == -1 and (last := state.heap.get(holder, Special.LAST)) is not None:
            return last
        found = _behind(frame, state, holder, base, key, point, item=True)
        if key is not ELEMENT:
            rest = state.heap.get(holder, ELEMENT)
            found = join(found, rest) if rest is not None else found
        return found
    if type(holder) is Object:
        if holder.kind in (Kind.LAZY, Kind.GENERATOR):
            return _next_of(frame, state, holder, base, point)
        if holder.kind in BOXES:
            return containers.item(frame, state, holder, key, containers.through(base), point)
        if holder.kind is Kind.INSTANCE:
            method, own = instances.member(frame, state, holder, "__getitem__"), state.heap.get(holder, key)
            if method is None and own is None:
                method = instances.member(frame, state, holder, "__missing__")
            if method is not None:
                return frame.machine.call(frame, state, method, Arguments([PLAIN]), point)
            if own is not None:
                return own
            if instances.is_module(frame, holder):
                return modules.part(frame, state, holder, key)
            found = containers.item(frame, state, holder, key, containers.through(base), point)
            return UNKNOWN if found is NOTHING else found
        if holder.kind is Kind.MODULE:
            return modules.part(frame, state, holder, key)
        if holder.kind is Kind.TENSOR:
            return tensor(reached(state, Value(holder.alone, base.graph)))
        if holder.kind is Kind.PARTIAL:
            kept = containers.kept_arguments(state, holder)
            return kept.value(key) if type(key) is int and key >= 0 else join_all(kept.all())
        if holder.kind is Kind.OPAQUE:
            own = state.heap.get(holder, key)
            return own if own is not None else instances.elsewhere(holder, key, base.graph)
    if type(holder) is Parameters:  # or groups of an optimizer: all but "params" are numbers
        return UNKNOWN if type(key) is str and key != "params" else parameter(frame, state, holder, point)
    return Value(graph=base.graph, open=True)


def iterate(frame: Frame, state: State, source: Value, point: Point) -> Value:
    """Return one item of an iterable, made now: generators run here, lazy iterators call their functions here."""
    if not source.refs:
        return Value(graph=source.graph, open=True)
    result = NOTHING
    for holder in source.each():
        result = join(result, _next_of(frame, state, holder, source, point))
    return result


def advance(frame: Frame, state: State, source: Value, point: Point) -> Value:
    """Return the item of one round of the innermost loop; a few things that are written out bound that loop."""
    if source.refs and frame.loops:
        if is_short(state, source):
            frame.bounded.add(frame.loops[-1])
        else:
            frame.over[frame.loops[-1]] = source
    return iterate(frame, state, source, point)


def _next_of(frame: Frame, state: State, holder: Ref, source: Value, point: Point) -> Value:
    if holder.symbolic:
        found = _behind(frame, state, holder, source, ELEMENT, point, item=True)
        for r in found.each():
            renew_keys(frame, state, r)
        take(frame, state, found, point)
        return found
    if type(holder) is Parameters:
        found = parameter(frame, state, holder, point)
        return found._replace(open=True) if source.is_short else found
    if type(holder) is not Object:
        return UNKNOWN
    if holder.kind is Kind.GENERATOR:
        return frame.machine.call_method(frame, state, of(holder), "__next__", Arguments(), point)
    if holder.kind is Kind.LAZY:
        return containers.marked(lazy.following(frame, state, holder, point), containers.through(source))
    if holder.kind is Kind.DICT:
        return lazy.key_of(frame, state, holder)
    if holder.kind in (Kind.LIST, Kind.TUPLE):
        return containers.marked(elements(state, holder), containers.through(source))
    if holder.kind is Kind.INSTANCE:
        return _instance_next(frame, state, holder, point)
    if holder.kind is Kind.MODULE:
        return modules.part(frame, state, holder, ELEMENT)
    if holder.kind is Kind.TENSOR:
        return tensor(reached(state, Value(holder.alone, source.graph)))
    if holder.kind is Kind.OPAQUE:
        found = instances.elsewhere(holder, ELEMENT, source.graph)
        take(frame, state, found, point)
        return found
    return UNKNOWN


def take(frame: Frame, state: State, items: Value, point: Point) -> None:
    """Note that an iteration has another item of what is not known. What a loader gives is made for it."""
    if not frame.loops:
        return
    for r in items.each():
        base = r.base if type(r) is Behind else r
        if type(base) is Object and str(base.about) in frame.machine.index.contracts.names("loaders"):
            forget(state, r)
        frame.items.setdefault(frame.loops[-1], set()).add(r)
        if not frame.entry and base is not r:
            frame.log(Renew(point, r, state.mode))


def _instance_next(frame: Frame, state: State, holder: Object, point: Point) -> Value:
    method = instances.member(frame, state, holder, "__iter__")
    if method is not None:
        got = frame.machine.call(frame, state, method, Arguments(), point)
        if got.refs == holder.alone:
            following = instances.member(frame, state, holder, "__next__")
            return UNKNOWN if following is None else frame.machine.call(frame, state, following, Arguments(), point)
        return iterate(frame, state, got, point)
    method = instances.member(frame, state, holder, "__getitem__")
    if method is not None:
        return frame.machine.call(frame, state, method, Arguments([PLAIN]), point)
    if instances.is_module(frame, holder):
        return modules.part(frame, state, holder, ELEMENT)
    return elements(state, holder) if state.heap.edges(holder) else UNKNOWN


def consume(frame: Frame, state: State, source: Value, box: Value, point: Point) -> Value:
    """Put every item of an iterable into a box, as the loop that it is. Return any of them."""
    items = containers.written_out(state, source)
    if items:  # one by one
        for value in items if box.refs else ():
            write(frame, state, box, ELEMENT, containers.marked(value, containers.through(source)), point, True)
        containers.shorten(state, box)
        return containers.all_values(state, source)
    seen = [NOTHING]

    def body(inner: State) -> None:
        element = advance(frame, inner, source, point)
        seen[0] = join(seen[0], element)
        if box.refs:
            write(frame, inner, box, ELEMENT, element, point, True)

    loop = Loop.of(point.site, point.context)
    run_loop(frame, state, loop, body)
    if loop in frame.bounded:
        containers.shorten(state, box)
    return seen[0]

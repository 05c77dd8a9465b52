"""Transfer functions of names and places: loading, binding, attributes, items."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.domain import keys
from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Evidence, Note, Use
from torchmemlint.flow.domain.frame import Frame, Transfer
from torchmemlint.flow.domain.heap import BOXES, ELEMENT, Mode, State, graph_of, reached
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.manners import Reading, Remark
from torchmemlint.flow.domain.memory import changed_in_place, computed, erase, escape, write, write_variable
from torchmemlint.flow.domain.refs import PATH_LIMIT, External, Globals, Key, Object, Point, Ref, Result
from torchmemlint.flow.domain.values import NO_SOURCES, NONE, PLAIN, UNKNOWN, Value, constant, of
from torchmemlint.flow.engine import access, calls, instances
from torchmemlint.flow.engine.narrowing import narrowed
from torchmemlint.flow.ir import ops, places
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.places import AttributePlace, ConstantKey, Name, Place, Scope, SliceKey, Temp
from torchmemlint.flow.models import containers, gradients, tensors
from torchmemlint.flow.models.parameters import assign_requires_grad

MODULE_NAME = "__name__"  # every module has it

# Names.


def lookup(frame: Frame, state: State, name: Name, point: Point) -> Value:
    """Return what a name is bound to."""
    if name.scope is Scope.LOCAL:
        return state.variables.get(name.text, UNKNOWN)
    if name.scope is Scope.CELL:
        return access.attribute(frame, state, _frame_at(frame, state, name.hops, point), name.text, point)
    if name.scope is Scope.BUILTIN:
        unit = frame.function.unit
        found = frame.machine.index.in_unit(unit, name.text) if unit.stars else None
        if name.text == MODULE_NAME and frame.function.parent is None:
            found = state.heap.get(frame.own, MODULE_NAME)
        return found if found is not None else of(External.of(name.text))
    unit = frame.function.unit
    own = frame.own if frame.function.parent is None else Globals.of(unit.name)
    written = state.heap.get(own, name.text)
    if name.text in unit.once or name.text in unit.imports:
        found = frame.machine.index.in_unit(unit, name.text)
        if found is None and name.text in unit.imports:
            found = of(External.of(frame.machine.index.absolute(unit, unit.imports[name.text])))
        if found is not None and (written is None or not written.refs or not found.refs.isdisjoint(written.refs)):
            return access.loaded(state, found)  # else it is bound to something else by now: `net = net.Net()`
    return written if written is not None else access.attribute(frame, state, of(own), name.text, point)


def _frame_at(frame: Frame, state: State, hops: int, point: Point) -> Value:
    holder = of(frame.own)
    for _ in range(hops):
        holder = access.attribute(frame, state, holder, Special.OUTER, point)
    return holder


def bind_name(frame: Frame, state: State, name: Name, value: Value, point: Point) -> None:
    """Bind a name to a value."""
    if name.scope is Scope.LOCAL:
        write_variable(frame, state, name.text, value, point)
    elif name.scope is Scope.CELL:
        write(frame, state, _frame_at(frame, state, name.hops, point), name.text, value, point)
    else:
        write(frame, state, of(Globals.of(frame.function.unit.name)), name.text, value, point)


def _constant(frame: Frame, state: State, op: ops.Constant) -> None:
    frame.temps[op.dst] = constant(op.value)


def _load(frame: Frame, state: State, op: ops.Load) -> None:
    name = op.name
    if name.scope is Scope.LOCAL:  # most of them are
        frame.temps[op.dst] = state.variables.get(name.text, UNKNOWN)
    else:
        frame.temps[op.dst] = lookup(frame, state, name, frame.at(op))


def _bind(frame: Frame, state: State, op: ops.Bind) -> None:
    bind_name(frame, state, op.name, frame.temps[op.src], frame.at(op))


def _unbind(frame: Frame, state: State, op: ops.Unbind) -> None:
    bind_name(frame, state, op.name, NONE, frame.at(op))


def _move(frame: Frame, state: State, op: ops.Move) -> None:
    value = frame.temps[op.src]
    for kind in op.lacks:
        value = narrowed(frame, value, kind)
    frame.temps[op.dst] = value


def _import(frame: Frame, state: State, op: ops.Import) -> None:
    qualified = frame.machine.index.absolute(frame.function.unit, op.qualified, op.relative)
    found = frame.machine.index.resolve(qualified)
    frame.temps[op.dst] = access.loaded(state, found) if found is not None else of(External.of(qualified))


# Places.


def key_of(frame: Frame, key: places.Key) -> Key:
    """Return the key that an index stands for; the element where it is computed or a slice."""
    if isinstance(key, ConstantKey):
        return keys.key_of(constant(key.value))
    return ELEMENT if isinstance(key, SliceKey) else keys.key_of(frame.temps[key.temp])


def _get_attribute(frame: Frame, state: State, op: ops.GetAttribute) -> None:
    base = frame.temps[op.base]
    if op.name == "data" and (base.refs or base.graph):
        frame.log(Note(frame.at(op), Remark.DATA, of=base, mode=state.mode))
    frame.temps[op.dst] = access.attribute(frame, state, base, op.name, frame.at(op))


def _set_attribute(frame: Frame, state: State, op: ops.SetAttribute) -> None:
    base, value = frame.temps[op.base], frame.temps[op.src]
    if op.name == "requires_grad":
        assign_requires_grad(frame, state, base, value, frame.at(op))
        ask_for_gradients(frame, state, op.place, base, value, frame.at(op))
    elif op.name == "grad" and not any(type(r) is Object and r.kind is Kind.INSTANCE for r in base.refs):
        tensors.set_gradient(frame, state, base, value, frame.at(op))
    elif op.name == gradients.TRAINING:
        for r in base.each():
            frame.log(Use(frame.at(op), r, Evidence.TRAINING))
    else:
        instances.set_attribute(frame, state, base, op.name, value, frame.at(op))


def ask_for_gradients(frame: Frame, state: State, place: Place | None, base: Value, flag: Value, point: Point) -> None:
    """Let a name hold a tensor whose gradients are wanted from now on, or are not; what a symbol is, is not known."""
    tensor = all(type(r) is Object and r.kind is Kind.TENSOR for r in base.refs)
    if isinstance(place, Name) and flag.known and tensor and not base.known:
        asked = tensors.asked(base, flag, point)
        changed_in_place(frame, state, base, asked.graph - base.graph, point)
        bind_name(frame, state, place, asked, point)


def _get_item(frame: Frame, state: State, op: ops.GetItem) -> None:
    base = frame.temps[op.base]
    if type(op.key) is SliceKey:
        frame.temps[op.dst] = _part_of(frame, state, base, op.key, frame.at(op))
        return
    frame.temps[op.dst] = access.item(frame, state, base, key_of(frame, op.key), frame.at(op))


def _part_of(frame: Frame, state: State, base: Value, key: SliceKey, point: Point) -> Value:
    """Return a slice; where it may bound what grows, a caller is asked whether that is a list."""
    if key.start and base.refs and all(type(r) is Result for r in base.refs):
        return access.rest_of(frame, state, base, point, key.start)
    if key.limited and (frame.loops or key.put):
        return access.slice_of(frame, state, base, point, key)
    return containers.part_of(frame, state, base, point, key)


def _set_item(frame: Frame, state: State, op: ops.SetItem) -> None:
    base, value, point = frame.temps[op.base], frame.temps[op.src], frame.at(op)
    holders = [r for r in base.refs if not (type(r) is Object and r.kind is Kind.TENSOR)]
    if any(type(r) is Globals for r in holders):  # `globals()[name]`: who reads the name is not known
        escape(frame, state, [value], point)
    if holders:
        setter = instances.item_setter(frame, state, base)
        if setter is not None:
            calls.call(frame, state, setter, Arguments([_index(frame, op.key), value]), point)
            return
        if type(op.key) is SliceKey:
            if not op.key.parts:  # `box[:] = ...`
                erase(frame, state, base, None, point)
            if any(type(r) is Object for r in holders) or any(type(r) is Object for r in value.refs):
                access.consume(frame, state, value, base, point)
                return
        else:
            key = key_of(frame, op.key)
            if type(key) is int and key < 0:  # the element that was added last, or near it
                for r in holders:
                    frame.gave_up(r)
                key = ELEMENT
            for r in holders:
                if type(r) is Object and r.kind is Kind.LIST and isinstance(key, Ref | Special):
                    state.heap.put(r, Special.MIXED, PLAIN)
            for target, own in _targets(frame, base, op.key, key):
                write(frame, state, target, own, value, point, item=True)
            return
    if state.mode is Mode.OFF:
        return
    if _takes_numbers(frame, op):
        frame.read(reached(state, value), Reading.NUMBER)
        return
    sources = computed(frame, state, reached(state, value), point)
    if sources:
        changed_in_place(frame, state, base, sources, point)
        if op.place is not None and not base.refs:
            store(frame, state, op.place, Value(graph=graph_of(state, base) | sources, open=base.open), point)


def _takes_numbers(frame: Frame, op: ops.SetItem) -> bool:
    """Is something put into an array of numpy's? It takes the number, unless it is an array of objects."""
    if not isinstance(op.place, Name):
        return False
    flow = definitions(frame.function)
    made = [flow.made.get(temp) for temp in flow.bound.get(op.place.text, ())]
    return bool(made) and all(
        isinstance(one, ops.Call | ops.CallMethod)
        and flow.called(one).startswith("numpy.")
        and not any(flow.path(given.temp) == "object" for given in one.arguments)
        for one in made
    )


def _targets(frame: Frame, base: Value, written: places.Key, key: Key) -> Iterator[tuple[Value, Key]]:
    """Yield what an item is put into, and under which key. Each of several dicts has its own where a loop has one."""
    indices = frame.temps[written.temp].refs if isinstance(written, places.ComputedKey) else frozenset()
    if len(indices) > 1 and indices == {keys.each_key(r) for r in base.refs if r.depth < PATH_LIMIT}:
        yield from ((of(r), keys.each_key(r)) for r in base.each())
    else:
        yield base, key


def _index(frame: Frame, key: places.Key) -> Value:
    """Return an index as the value that a method is given."""
    if isinstance(key, SliceKey):
        return PLAIN
    return constant(key.value) if isinstance(key, ConstantKey) else frame.temps[key.temp]


def store(frame: Frame, state: State, place: Place, value: Value, point: Point) -> None:
    """Write a value back to the place that an operation in place took it from."""
    if isinstance(place, Name):
        bind_name(frame, state, place, value, point)
    elif isinstance(place, AttributePlace):
        instances.set_attribute(frame, state, frame.temps[place.base], place.name, value, point)
    else:
        write(frame, state, frame.temps[place.base], key_of(frame, place.key), value, point)


def detach_around(frame: Frame, state: State, base: Temp, point: Point, every: bool = False) -> None:
    """An item was detached in place: a view of a tensor cannot be, so what it is of holds tensors, and no graph itself.

    `every`: was each item? Whether all are is not seen of what holds none in view.
    """
    value, made = frame.temps[base], definitions(frame.function).made.get(base)
    for box in value.each() if every else ():
        for key, held in list(state.heap.edges(box).items()):
            if held.graph and isinstance(box, Object) and box.kind in BOXES:
                state.heap.put(box, key, held._replace(graph=NO_SOURCES))
    if value.graph and isinstance(made, ops.Load):
        bind_name(frame, state, made.name, value._replace(graph=NO_SOURCES), point)


def _remove(frame: Frame, state: State, op: ops.Remove) -> None:
    base = frame.temps[op.base]
    if op.attribute and isinstance(op.key, ConstantKey):
        write(frame, state, base, str(op.key.value), NONE, frame.at(op))
    else:
        erase(frame, state, base, key_of(frame, op.key), frame.at(op))


PLACES: dict[type[ops.Op], Transfer] = {
    ops.Constant: _constant,
    ops.Load: _load,
    ops.Bind: _bind,
    ops.Unbind: _unbind,
    ops.Move: _move,
    ops.Import: _import,
    ops.GetAttribute: _get_attribute,
    ops.SetAttribute: _set_attribute,
    ops.GetItem: _get_item,
    ops.SetItem: _set_item,
    ops.Remove: _remove,
}

"""Walks: what each operation of a function makes of tensors, and which others take that.

A function is walked through and not run: what unknown code gives is a version like any other, and only what shows in
the function itself counts as having a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torchmemlint.flow.fact.layers import (
    PARAMETER,
    UNKNOWN,
    Builders,
    Layer,
    Layers,
    entered_in_place,
    has_parameters,
    kind_of,
    last,
    name_of,
)
from torchmemlint.flow.fact.reading import Building
from torchmemlint.flow.fact.ways import NOTHING, Application, Maker, Value, Version, Ways
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import Await, Check, For, Raise, Return, Yield
from torchmemlint.flow.ir.defuse import operands
from torchmemlint.flow.ir.ops import Function, Op
from torchmemlint.flow.ir.places import NO_TEMP, ItemPlace, Name, Scope, Spread, Temp
from torchmemlint.knowledge import activations, operations, saved_tensors, torch_api

_TAKEN = "taken"
_LOOKING = frozenset("isinstance len type id hasattr".split())
_IDENTITY = frozenset({"is", "is not"})
_METADATA = torch_api.METADATA | torch_api.METADATA_ATTRIBUTES | {"grad_fn", "grad"}
_VIEWS = frozenset("T mT H mH real imag".split())
_FREEZING = frozenset({"requires_grad", "requires_grad_"})
_NO_OPERANDS = frozenset("dim dtype device reduction".split())


class Watch:
    """Sees what happens to versions while a function is walked through. This one does nothing about it."""

    def given(self, walk: Walk, op: Op, name: str, layers: Layers, values: Sequence[Value]) -> None:
        """A known operation, or a call of layers, takes values."""

    def reads(self, walk: Walk, op: Op, value: Value, name: str) -> None:
        """An operation reads a value; `name` is empty where it is not known what it does."""

    def overwrites(self, walk: Walk, op: Op, target: Temp, value: Value, by: Layer | None) -> None:
        """An operation overwrites a value, which `target` holds; an activation that was built to do so."""


class Walk(Ways):
    """A function, walked through."""

    def __init__(
        self, builders: Builders, function: Function, watch: Watch | None = None, live: Value = NOTHING
    ) -> None:
        """`live` are versions that are known to have a graph, for what happens to them later."""
        super().__init__(builders.reading(function), builders.index.contracts)
        self.builders, self.function = builders, function
        self.makers: dict[Version, Maker] = {}
        self.takers: dict[Version, dict[Op, str]] = {}
        self.beside: set[tuple[Version, Op]] = set()  # what takes a version on the same way as something else
        self.later: set[tuple[Version, Op]] = set()  # of these, what is not the last
        self.applied: dict[tuple[Op, Layer], Application] = {}
        self.differentiated: set[Version] = set()
        self._watch, self._live = watch or Watch(), live
        self._temps: dict[Temp, Value] = {}  # each is written before it is read: branches need none of their own
        self._named: set[Version] = set()  # versions that names were bound to: others are taken where they are made
        for parameter in function.parameters:
            self.makers[parameter.name] = Maker()
            self.state.held[parameter.name] = frozenset({parameter.name})
            self._named.add(parameter.name)
        cls = self.reading.cls
        around = [m for base in builders.index.order(cls) for m in base.methods.values()] if cls is not None else []
        self._freezes = any(not _FREEZING.isdisjoint(f.mentions) for f in (function, *around))
        self.run(function.body)

    def step(self, op: Op) -> None:
        """Go past an operation without blocks."""
        step = _STEPS.get(type(op))
        if step is not None:
            step(self, op)

    def iterate(self, op: For) -> None:
        """Go through a loop over something."""
        source = self.value(op.source)
        self.take(op, source, "iterate")

        def begin() -> None:
            self._make(op, Maker(live=self.is_live(source), loops=self.loops, of=source))
            self._put(op.item, frozenset({op}))

        self.repeat(op, begin, op.body, op.orelse)

    def _end(self, op: Return | Raise) -> None:
        self.take(op, self.value(op.src), "")

    # Names and temporaries.

    def value(self, temp: Temp) -> Value:
        """Return the versions that a temporary may hold."""
        held = self.state.held if temp in self.reading.moved else self._temps
        return held.get(temp, NOTHING)

    def _put(self, temp: Temp, value: Value) -> None:
        self._temps[temp] = value

    def _load(self, op: ops.Load) -> None:
        text = op.name.text
        held = self.state.held.get(text)
        if held is None:
            inside = op.name.scope in (Scope.LOCAL, Scope.CELL)
            held = frozenset({text}) if inside else NOTHING
            if inside:
                self.makers.setdefault(text, Maker())
        self._put(op.dst, held)

    def _bind(self, op: ops.Bind) -> None:
        self.bind(op, op.name, self.value(op.src))

    def bind(self, op: Op, name: Name, value: Value) -> None:
        """Bind a name; who knows nothing of what it stood for any more cannot come upon it again."""
        if name.scope is Scope.GLOBAL or name.text in self.function.shared:
            self.take(op, value, "")
        gone = self.state.held.get(name.text, NOTHING) - value
        self.state.held[name.text] = value
        self._named |= value
        if gone and not gone.isdisjoint(self.state.marks):
            self.state.forget(gone.difference(*self.state.held.values()))

    def _move(self, op: ops.Move) -> None:
        self.state.held[op.dst] = self.value(op.src)

    def _choose(self, op: ops.Choose) -> None:
        self._put(op.dst, self._all(op.operands))

    def _all(self, temps: Iterable[Temp]) -> Value:
        return NOTHING.union(*map(self.value, temps))

    def _gather(self, op: ops.Make) -> None:
        self._put(op.dst, self._all(entry.temp for entry in op.entries))
        if any(type(taker) is not ops.Unpack for taker in self.reading.taken.get(op.dst, ())):
            for entry in op.entries:
                self._watch.reads(self, op, self.value(entry.temp), "")

    def _collect(self, op: ops.Collect) -> None:
        self._put(op.box, self.value(op.box) | self.value(op.src))

    def _unpack(self, op: ops.Unpack) -> None:
        made = self.reading.made.get(op.src)
        entries = made.entries if isinstance(made, ops.Make) else ()
        if len(entries) == len(op.targets) and op.star < 0 and all(e.spread is Spread.PLAIN for e in entries):
            for target, entry in zip(op.targets, entries, strict=True):
                self._put(target, self.value(entry.temp))
            return
        value = self.value(op.src)
        self.take(op, value, "")
        for number, target in enumerate(op.targets):
            self._make((op, number), Maker(live=self.is_live(value), loops=self.loops, of=value))
            self._put(target, frozenset({(op, number)}))

    # What makes versions, and takes them.

    def is_live(self, value: Value) -> bool:
        """Has one of the versions a graph?"""
        return any(v in self._live or self.makers[v].live for v in value)

    def take(self, op: Op, value: Value, name: str) -> None:
        """Note that an operation takes a value."""
        for version in value:
            self.takers.setdefault(version, {})[op] = name
            if version not in self._named:
                continue
            others = [other for other in self.state.marked(version, _TAKEN) if other is not op]
            if others:
                known = {(version, other) for other in others}
                self.beside |= {*known, (version, op)}
                self.later |= known
                self.state.unmark(version, _TAKEN)  # nothing more can be found out of those
            self.state.mark(version, _TAKEN, op)
        self._watch.reads(self, op, value, name)

    def _make(self, version: Version, maker: Maker) -> None:
        self.makers[version] = maker
        self.state.forget(frozenset({version}))

    def _result(self, op: Op, dst: Temp, maker: Maker) -> None:
        self._make(op, maker)
        self._put(dst, frozenset({op}))

    def _attribute(self, op: ops.GetAttribute) -> None:
        if op.name in _METADATA or self.reading.name(op.dst):
            return
        if self.reading.is_self(op.base):
            cls = self.reading.cls
            layers = self.builders.attribute(cls, op.name) if cls is not None else UNKNOWN
            is_parameter = all(layer.kind == PARAMETER for layer in layers)
            live = is_parameter and not self._freezes and not self.state.off
            names = (PARAMETER,) if is_parameter else ("",)
            self._result(op, op.dst, Maker(names, layers, live, self.loops))
            return
        value = self.value(op.base)
        self.take(op, value, op.name)
        live = op.name in _VIEWS and self.is_live(value)
        self._result(op, op.dst, Maker((op.name,), live=live, loops=self.loops, of=value))

    def _item(self, op: ops.GetItem) -> None:
        value = self.value(op.base)
        self.take(op, value, "")
        self._result(op, op.dst, Maker(live=self.is_live(value), loops=self.loops, of=value))

    def _set_attribute(self, op: ops.SetAttribute) -> None:
        self.take(op, self.value(op.src), "")

    def _set_item(self, op: ops.SetItem) -> None:
        self.take(op, self.value(op.src), "")
        self._watch.overwrites(self, op, op.base, self.value(op.base), None)

    def _operate(self, op: ops.Operate) -> None:
        values = [self.value(operand) for operand in op.operands]
        self._operands(op, op.operator, values, values)
        over = values[0] if isinstance(op.place, Name) else NOTHING
        live = self._has_graph(op.operator, values)
        maker = Maker((op.operator,), (), live, self.loops, NOTHING.union(*values), over)
        place = op.place
        if place is not None:
            base = place.base if isinstance(place, ItemPlace) else op.operands[0]
            self._watch.overwrites(self, op, base, self.value(base), None)
        self._result(op, op.dst, maker)
        if isinstance(place, Name):
            self.bind(op, place, frozenset({op}))

    def _operands(self, op: Op, name: str, values: Sequence[Value], taken: Sequence[Value]) -> None:
        """Take the operands of a known operation."""
        scaled = saved_tensors.short(name) in saved_tensors.PRODUCTS and sum(map(self.is_live, values)) < 2
        for value in taken:
            self.take(op, value, saved_tensors.SCALED if scaled else name)
        self._watch.given(self, op, name, (), values)

    def _has_graph(self, name: str, values: Sequence[Value]) -> bool:
        if self.state.off or not any(map(self.is_live, values)):
            return False
        known = operations.function(name) if "." in name else operations.method(name)
        if name in saved_tensors.OPERATORS:
            return True
        return known is not None and (known.graph if isinstance(known.graph, bool) else known.graph[0])

    def _read(self, op: ops.Compare | ops.Format | Yield | Await | Check) -> None:
        if isinstance(op, ops.Compare) and op.operator in _IDENTITY:
            return
        for temp in operands(op):
            self.take(op, self.value(temp), "" if isinstance(op, Yield | Await) else "read")
        if isinstance(op, Yield | Await):
            self._result(op, op.dst, Maker(loops=self.loops))

    def _call(self, op: Building) -> None:
        name = self.reading.called(op)
        given = [self.value(a.temp) for a in op.arguments if a.name not in _NO_OPERANDS]
        if name in _LOOKING:
            return
        method = isinstance(op, ops.CallMethod) and not name
        layers = self._layers(op, name)
        if layers:
            self._apply(op, layers, given)
        elif kind_of(name) == PARAMETER:
            said, asks = self.reading.flag(op, "requires_grad", 1)
            live = (asks is True or not said) and not self.state.off and not self._freezes
            self._result(op, op.dst, Maker((PARAMETER,), live=live, loops=self.loops))
        elif method and isinstance(op, ops.CallMethod) and not self.reading.is_self(op.base):
            self._by_method(op, given)
        elif name.startswith("torch.") and not name.startswith(torch_api.NOT_COMPUTING):
            self._function(op, name, given)
        else:
            self._unknown(op, given)

    def _layers(self, op: Building, name: str) -> Layers:
        """Return the layers that a call applies; none where it does something else."""
        if isinstance(op, ops.Call):
            if name and "." in name:
                return ()
            found = self.builders.layers(self.function, op.callee)
        elif not name and self.reading.is_self(op.base) and self.reading.cls is not None:
            found = self.builders.attribute(self.reading.cls, op.name)
        else:
            return ()
        return found if any(layer.kind and layer.kind != PARAMETER for layer in found) else ()

    def _apply(self, op: Building, layers: Layers, given: list[Value]) -> None:
        first = given[0] if given else NOTHING
        target = op.arguments[0].temp if op.arguments else NO_TEMP
        for layer in layers:
            if activations.module_kind(layer.kind) is not None:
                self.applied[op, layer] = Application(op, layer, first, self.loops)
        for value in given:
            self.take(op, value, name_of(layers))
        self._watch.given(self, op, "", layers, given)
        entering = next(filter(None, map(entered_in_place, layers)), None)
        if entering is not None:
            self._watch.overwrites(self, op, target, first, entering)
        trained = not self._freezes and any(has_parameters(layer) for layer in layers)
        live = not self.state.off and (trained or self.is_live(first))
        names = tuple(last(layer).kind for layer in layers)
        self._result(op, op.dst, Maker(names, layers, live, self.loops, first))

    def trains(self, layers: Layers) -> bool:
        """Has each of some layers weights that are trained, as far as is seen?"""
        return not self._freezes and all(map(has_parameters, layers))

    def _function(self, op: Building, name: str, given: list[Value]) -> None:
        kind = activations.functional(name)
        in_place: bool | None = name.endswith("_")
        if kind is not None and not in_place:
            position = activations.function_inplace_position(kind.rpartition(".")[2])
            said, in_place = self.reading.flag(op, "inplace", position)
            layer = Layer(kind, op, named=True, in_place=in_place, said=said)
            if given:
                self.applied[op, layer] = Application(op, layer, given[0], self.loops)
        self._operands(op, name, given, given)
        maker = Maker((name,), (), self._has_graph(name.rstrip("_"), given), self.loops, NOTHING.union(*given))
        if in_place and given:
            by = Layer(kind, op, named=True, in_place=True) if kind is not None else None
            self._watch.overwrites(self, op, op.arguments[0].temp, given[0], by)
        if name.rpartition(".")[2] not in _METADATA:
            self._result(op, op.dst, maker)

    def _by_method(self, op: ops.CallMethod, given: list[Value]) -> None:
        base = self.value(op.base)
        if op.name in _METADATA:
            return
        values = [base, *given]
        self._operands(op, op.name, values, values)
        if op.name == "backward":
            self.differentiated |= base
        maker = Maker((op.name,), (), self._has_graph(op.name.rstrip("_"), values), self.loops, NOTHING.union(*values))
        if op.place is not None:
            self._watch.overwrites(self, op, op.base, base, None)
        self._result(op, op.dst, maker)

    def _unknown(self, op: Building, given: list[Value]) -> None:
        for value in given:
            self.take(op, value, "")
        self._result(op, op.dst, Maker(loops=self.loops))


_STEPS: dict[type[Op], Callable[[Walk, Any], None]] = {
    Return: Walk._end,
    Raise: Walk._end,
    ops.Load: Walk._load,
    ops.Bind: Walk._bind,
    ops.Move: Walk._move,
    ops.Choose: Walk._choose,
    ops.Make: Walk._gather,
    ops.Collect: Walk._collect,
    ops.Unpack: Walk._unpack,
    ops.GetAttribute: Walk._attribute,
    ops.GetItem: Walk._item,
    ops.SetAttribute: Walk._set_attribute,
    ops.SetItem: Walk._set_item,
    ops.Operate: Walk._operate,
    ops.Compare: Walk._read,
    ops.Format: Walk._read,
    Check: Walk._read,
    Yield: Walk._read,
    Await: Walk._read,
    ops.Call: Walk._call,
    ops.CallMethod: Walk._call,
}

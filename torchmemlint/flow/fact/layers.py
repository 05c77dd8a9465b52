"""Layers: which modules an expression builds, as far as it can be read without running it.

What a name or an attribute may hold is read without regard to order, and the functions of the project that build layers
are followed with the layers that they are given. Where a parameter says which class is built, its default counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from torchmemlint.flow.domain.refs import ClassRef, Code
from torchmemlint.flow.fact.reading import Building, Reading
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import For
from torchmemlint.flow.ir.defuse import default_of
from torchmemlint.flow.ir.places import ConstantKey, Scope, Spread, Temp
from torchmemlint.flow.names.index import Index
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import activations, operations
from torchmemlint.knowledge.behaviour import RETURNS_ITSELF

_DEPTH = 5  # calls that are followed
SEQUENTIAL = "torch.nn.Sequential"
LISTS = frozenset({"torch.nn.ModuleList", "torch.nn.ModuleDict"})
PARAMETER = "torch.nn.Parameter"
_ORDERED = "collections.OrderedDict"
_ITSELF = RETURNS_ITSELF | {"eval", "train", "requires_grad_"}


@immutable(eq=False)
class Layer:
    """A module, or a parameter, that something builds."""

    kind: str = ""  # qualified; empty where it is not known
    made: Building | None = None  # the call that builds it
    named: bool = False  # by the name of its class
    in_place: bool | None = None  # does an activation work in place? None where that is not known
    said: bool = False  # or is it given how it works?
    children: tuple[Layers, ...] | None = None  # of a Sequential in order, or of a list; None where that is not known


Layers = tuple[Layer, ...]  # what may stand in one place
UNKNOWN: Layers = (Layer(),)


def last(layer: Layer) -> Layer:
    """Return the layer that makes the output."""
    while layer.kind == SEQUENTIAL and layer.children and len(layer.children[-1]) == 1:
        layer = layer.children[-1][0]
    return layer


def first(layer: Layer) -> Layer:
    """Return the layer that takes the input."""
    while layer.kind == SEQUENTIAL and layer.children and len(layer.children[0]) == 1:
        layer = layer.children[0][0]
    return layer


def name_of(layers: Layers) -> str:
    """Return the name of what takes an input, where all layers agree."""
    names = {first(layer).kind for layer in layers}
    return names.pop() if len(names) == 1 else ""


def entered_in_place(layer: Layer) -> Layer | None:
    """Return the activation that overwrites what a layer is given."""
    found = first(layer)
    return found if found.in_place else None


def has_parameters(layer: Layer) -> bool:
    """Has a layer of torch parameters, as far as is seen?"""
    if layer.kind == SEQUENTIAL:
        return any(has_parameters(child) for children in layer.children or () for child in children)
    known = operations.layer(layer.kind.rpartition(".")[2]) if layer.kind else None
    return known is not None and known.parameters


class Builders:
    """Reads what is built in some files."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._readings: dict[ops.Function, Reading] = {}
        self._attributes: dict[tuple[ops.Class, str], Layers] = {}

    def reading(self, function: ops.Function) -> Reading:
        """Return a function, read for what makes and takes its temporaries."""
        found = self._readings.get(function)
        if found is None:
            found = self._readings[function] = Reading(function)
        return found

    def layers(self, function: ops.Function, temp: Temp) -> Layers:
        """Return what a temporary of a function may hold; none if it is None."""
        return _Reader(self, function, {}, 0).layers(temp)

    def children(self, function: ops.Function, call: Building) -> tuple[Layers, ...] | None:
        """Return what a Sequential or list is built of, in order."""
        return _Reader(self, function, {}, 0).children(call)

    def listed(self, function: ops.Function, temp: Temp) -> tuple[Layers, ...] | None:
        """Return what a list holds that is written out."""
        return _Reader(self, function, {}, 0).listed(temp)

    def attribute(self, cls: ops.Class, name: str) -> Layers:
        """Return what the methods of a class make of an attribute."""
        key = (cls, name)
        if key not in self._attributes:
            self._attributes[key] = UNKNOWN  # while it is looked for
            found: dict[Layer, None] = {}
            grows = False  # is it added to after it was made?
            for base in self.index.order(cls):
                for method in (*base.methods.values(), *base.setters.values()):
                    if name in method.mentions:
                        reading = self.reading(method)
                        grows = grows or name in reading.growing
                        for src in reading.stored.get(name, ()):
                            found.update(dict.fromkeys(self.layers(method, src)))
            if grows:
                found = dict.fromkeys(replace(layer, children=None) for layer in found)
            self._attributes[key] = tuple(found) or UNKNOWN
        return self._attributes[key]

    def project(self, function: ops.Function, name: str) -> ops.Function | ops.Class | None:
        """Return the function or class of the project that a dotted name of a file stands for."""
        unit = function.unit
        found = self.index.in_unit(unit, name) if "." not in name else None
        found = found or self.index.resolve(self.index.absolute(unit, name))
        for ref in found.refs if found is not None else ():
            if type(ref) is Code:
                return ref.function
            if type(ref) is ClassRef:
                return ref.cls
        return None


class _Reader:
    """Reads one function, with what its parameters are given."""

    def __init__(self, builders: Builders, function: ops.Function, given: dict[str, Layers], depth: int) -> None:
        self._builders, self._function, self._given, self._depth = builders, function, given, depth
        self._reading = builders.reading(function)
        self._open: set[Temp] = set()  # what is being looked for

    def layers(self, temp: Temp) -> Layers:
        """Return what a temporary may hold."""
        if temp in self._open:
            return ()
        self._open.add(temp)
        found = dict.fromkeys(layer for layer in self._layers(temp))
        self._open.discard(temp)
        return tuple(found)

    def _layers(self, temp: Temp) -> Iterable[Layer]:
        moved = self._reading.moved.get(temp)
        if moved:
            return [layer for src in moved for layer in self.layers(src)]
        op = self._reading.made.get(temp)
        match op:
            case ops.Constant(value=None):
                return ()
            case ops.Load(name=name):
                return self._named(name.text, name.scope)
            case ops.GetAttribute(base=base, name=name) if self._reading.is_self(base):
                cls = self._reading.cls
                return self._builders.attribute(cls, name) if cls is not None else UNKNOWN
            case ops.GetItem(base=base, key=key):
                return _item(self.layers(base), key.value if isinstance(key, ConstantKey) else None)
            case ops.Choose(operands=operands):
                return [layer for operand in operands for layer in self.layers(operand)]
            case For(source=source):
                return [layer for whole in self.layers(source) for layer in _each(whole)]
            case ops.Call() | ops.CallMethod():
                return self._built(op)
        return UNKNOWN

    def _named(self, text: str, scope: Scope) -> Iterable[Layer]:
        if scope is Scope.GLOBAL:
            module = self._function.unit.module
            known = text in module.bound and module is not self._function and text not in self._function.unit.imports
            if known:
                reader = _Reader(self._builders, module, {}, self._depth)
                return [
                    layer for src in self._builders.reading(module).bound.get(text, ()) for layer in reader.layers(src)
                ]
        sources = self._reading.bound.get(text, ())
        found = [layer for src in sources for layer in self.layers(src)]
        parameter = next((p for p in self._function.parameters if p.name == text), None)
        if parameter is not None:
            annotated = kind_of(parameter.annotation)
            found += self._given.get(text) or ((Layer(annotated),) if annotated else UNKNOWN)
        return found or UNKNOWN

    def _built(self, op: Building) -> Iterable[Layer]:
        name = self._reading.called(op)
        kind = kind_of(name)
        if kind:
            return [self._layer(op, kind, named=True)]
        given = [argument.temp for argument in op.arguments if argument.spread is Spread.PLAIN]
        if name in self._builders.index.contracts.names("wrappers") and given:
            return self.layers(given[0])
        if isinstance(op, ops.CallMethod) and not name:
            return self._by_method(op)
        found = self._builders.project(self._function, name) if name else None
        if isinstance(found, ops.Function):
            return self._followed(found, op)
        if isinstance(found, ops.Class):
            return [self._own(found, op)]
        kinds = self._classes(op.callee) if isinstance(op, ops.Call) else []
        return [self._layer(op, kind) if kind else Layer(made=op) for kind in kinds] or UNKNOWN

    def _by_method(self, op: ops.CallMethod) -> Iterable[Layer]:
        cls = self._reading.cls if self._reading.is_self(op.base) else None
        method = self._builders.index.method(cls, op.name) if cls is not None else None
        if method is not None:
            return self._followed(method, op, 0 if method.is_static else 1)
        return self.layers(op.base) if op.name in _ITSELF else UNKNOWN

    def _layer(self, op: Building, kind: str, *, named: bool = False) -> Layer:
        short = kind.rpartition(".")[2]
        layer = Layer(kind, op, named)
        if kind == SEQUENTIAL or kind in LISTS:
            return replace(layer, children=self.children(op))
        if short in activations.INPLACE_POSITION:
            said, flag = self._reading.flag(op, "inplace", activations.INPLACE_POSITION[short])
            return replace(layer, in_place=flag, said=said)
        return layer

    def _own(self, cls: ops.Class, op: Building) -> Layer:
        """Return a module of a class of the project: of a Sequential that is given its layers they are known."""
        init = self._builders.index.method(cls, "__init__")
        if init is not None and SEQUENTIAL in self._builders.index.libraries(cls):
            for call in self._builders.reading(init).calls:
                if isinstance(call, ops.CallMethod) and call.name == "__init__" and call.arguments:
                    reader = _Reader(self._builders, init, {}, self._depth + 1)
                    return Layer(SEQUENTIAL, op, children=reader.children(call))
        return Layer(made=op)

    def _followed(self, function: ops.Function, op: Building, first: int = 0) -> Iterable[Layer]:
        """Return what a function of the project gives, with what its parameters are given from one of them on."""
        if self._depth >= _DEPTH or function.generator or function.coroutine:
            return UNKNOWN
        given = dict.fromkeys((p.name for p in function.parameters), UNKNOWN)
        for name, temp in _arguments(function.parameters[first:], op):
            given[name] = self.layers(temp)
        reader = _Reader(self._builders, function, given, self._depth + 1)
        returned = self._builders.reading(function).returned
        return [layer for src in returned for layer in reader.layers(src)] or UNKNOWN

    def _classes(self, temp: Temp, depth: int = 0) -> list[str]:
        """Return which classes of torch a temporary may hold: "" for another, or where it is not known."""
        reading = self._reading
        moved = reading.moved.get(temp)
        if moved:
            return [kind for src in moved for kind in self._classes(src, depth + 1)]
        op = reading.made.get(temp)
        match op:
            case ops.Constant(value=None):
                return []
            case ops.Choose(operands=operands) if depth < _DEPTH:
                return [kind for operand in operands for kind in self._classes(operand, depth + 1)]
            case ops.Load(name=name) if name.scope in (Scope.LOCAL, Scope.CELL) and depth < _DEPTH:
                found = [kind for src in reading.bound.get(name.text, ()) for kind in self._classes(src, depth + 1)]
                if any(p.name == name.text for p in self._function.parameters):
                    default = default_of(self._function, name.text)
                    if name.text in self._given or default is None:
                        return [*found, ""]
                    found += _Reader(self._builders, default[0], {}, 0)._classes(default[1], depth + 1)
                return found or [""]
        return [kind_of(reading.name(temp))]

    def children(self, op: Building) -> tuple[Layers, ...] | None:
        """Return what a Sequential or list is built of, in order."""
        if any(argument.spread is Spread.STARS for argument in op.arguments):
            return None
        if len(op.arguments) == 1 and op.arguments[0].spread is Spread.PLAIN:
            found = self.listed(op.arguments[0].temp)
            if found is not None:
                return found
        parts: list[Layers] = []
        for argument in op.arguments:
            listed = self.listed(argument.temp) if argument.spread is Spread.STAR else None
            if argument.spread is Spread.STAR:
                parts += listed if listed is not None else (UNKNOWN,)
            else:
                parts.append(self.layers(argument.temp))
        return tuple(parts)

    def listed(self, temp: Temp, depth: int = 0) -> tuple[Layers, ...] | None:
        """Return what a list holds that is written out; what holds pairs of names and layers, too."""
        op = self._reading.made.get(temp)
        match op:
            case ops.Make(kind="list" | "tuple" | "dict", entries=entries) if temp not in self._reading.collected:
                parts: list[Layers] = []
                for entry in entries:
                    if entry.spread is Spread.PLAIN:
                        pair = self._reading.made.get(entry.temp)
                        is_pair = isinstance(pair, ops.Make) and pair.kind == "tuple" and len(pair.entries) == 2
                        parts.append(
                            self.layers(pair.entries[1].temp if isinstance(pair, ops.Make) and is_pair else entry.temp)
                        )
                    else:
                        parts += self.listed(entry.temp, depth + 1) or (UNKNOWN,)
                return tuple(parts)
            case ops.Call(arguments=(argument,)) if self._reading.called(op) in (_ORDERED, "list", "tuple", "dict"):
                return self.listed(argument.temp, depth + 1)
            case ops.Load(name=name) if depth < _DEPTH and name.text not in self._reading.grown:
                sources = self._reading.bound.get(name.text, ())
                return (
                    self.listed(sources[0], depth + 1) if len(sources) == 1 and name.scope is not Scope.CELL else None
                )
        return None


def kind_of(name: str) -> str:
    """Return the class of torch.nn that a qualified name stands for; "" for others."""
    last = name.rpartition(".")[2]
    return f"torch.nn.{last}" if name.startswith("torch.nn.") and last[:1].isupper() else ""


def _each(layer: Layer) -> Iterable[Layer]:
    """Return what a list of layers holds."""
    if layer.children is None or not (layer.kind == SEQUENTIAL or layer.kind in LISTS):
        return UNKNOWN
    return [child for alternatives in layer.children for child in alternatives]


def _item(layers: Layers, key: object) -> Iterable[Layer]:
    found: list[Layer] = []
    for layer in layers:
        known = layer.children
        if isinstance(key, int) and known is not None and -len(known) <= key < len(known):
            found += known[key]
        else:
            found += _each(layer)
    return found


def _arguments(parameters: Sequence[ops.Parameter], op: Building) -> Iterator[tuple[str, Temp]]:
    """Yield what parameters are given by a call, as far as that is plain."""
    for number, argument in enumerate(op.arguments):
        if argument.spread is Spread.NAMED:
            yield argument.name, argument.temp
        elif argument.spread is Spread.PLAIN and number < len(parameters):
            yield parameters[number].name, argument.temp
        elif argument.spread is not Spread.PLAIN:
            return

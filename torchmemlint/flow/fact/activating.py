"""Activating: activations that make a new tensor, where they could overwrite the one that they are given."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.fact.layers import LISTS, SEQUENTIAL, Builders, Layer, Layers, first, last
from torchmemlint.flow.fact.numbers import Numbers, argument
from torchmemlint.flow.fact.reading import GROWING, Building, Reading
from torchmemlint.flow.fact.stacks import Stacks
from torchmemlint.flow.fact.walks import Walk
from torchmemlint.flow.fact.ways import Application, Version, in_order
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import Check, For, If
from torchmemlint.flow.ir.defuse import default_of
from torchmemlint.flow.ir.ops import Call, CallMethod, Class, Function, Load, Op, Operate, Super, Unit
from torchmemlint.flow.ir.places import Name, Scope, Temp
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import activations, autograd, saved_tensors
from torchmemlint.knowledge.behaviour import RETURNS_ITSELF

_GAINING = activations.SAVES_ONE | activations.TRANSIENT
_FUNCTIONS = frozenset(
    name for name in activations.FUNCTIONS if (activations.functional(f"torch.{name}") or "")[9:] in _GAINING
)
_HOOKS = autograd.names("forward-hooks") | autograd.names("module-hooks")
_EXTRACTING = frozenset("symbolic_trace Interpreter create_feature_extractor IntermediateLayerGetter".split())
_WATCHING = _HOOKS | _EXTRACTING  # they get, or mark, what is computed between two layers
_ROWS = frozenset({"torch.nn.Linear", "torch.nn.Conv1d"})  # no pixels
_NARROW = 512  # features: 2 KiB for each row
_COMPILING = frozenset({"torch.jit.script", "torch.jit.script_method"})


@immutable()
class Use:
    """A place where an activation gets its input: may it overwrite that, and would that gain anything?"""

    safe: bool
    gains: bool
    producer: str = ""  # the name of what makes the input
    made: Op | None = None  # and where that is built, or called
    applied: Op | None = None  # where the activation is called; None in a Sequential
    narrow: bool = False  # are there so few features that only very many rows of them are large?


@immutable()
class OutOfPlace:
    """An activation that could work in place wherever it is used."""

    kind: str  # the class of torch.nn, by its last name
    built: Building  # where that is built, or the function called
    uses: tuple[Use, ...]

    @property
    def narrow(self) -> bool:
        """Are there only few features, wherever it is used?"""
        return all(use.narrow for use in self.uses)


def out_of_place(builders: Builders, unit: Unit) -> Iterator[OutOfPlace]:
    """Yield the activations of a file that could work in place, those first that keep something for backward."""
    mentioned = frozenset().union(*(function.mentions for function in unit.functions))
    if (mentioned.isdisjoint(_GAINING) and mentioned.isdisjoint(_FUNCTIONS)) or not mentioned.isdisjoint(_WATCHING):
        return
    found = _Uses(builders, unit)
    for made, uses in sorted(found.of.items(), key=lambda item: found.kinds[item[0]] not in activations.SAVES_ONE):
        if not all(use.safe for use in uses) or not any(use.gains for use in uses):
            continue
        if all(use.applied is made for use in uses) or not escapes(builders, made):  # a function, or a layer
            yield OutOfPlace(found.kinds[made], made, tuple(uses))


class _Uses:
    """Where the activations of a file are used."""

    def __init__(self, builders: Builders, unit: Unit) -> None:
        self._builders, self._unit = builders, unit
        self.of: dict[Building, dict[Use, None]] = {}
        self.kinds: dict[Building, str] = {}
        for function in unit.functions:
            if not function.mentions.isdisjoint(_GAINING):
                self._stacked(function)
        for function in unit.functions[1:]:
            if not function.mentions.isdisjoint(_FUNCTIONS) or self._applies(function):
                walk = Walk(builders, function)
                for application in walk.applied.values():
                    self._applied(walk, application)

    def _add(self, layer: Layer, use: Use) -> None:
        kind, made = layer.kind.rpartition(".")[2], layer.made
        if made is None or made.owner.unit is not self._unit or self._is_negative(made):
            return
        if layer.named and not layer.said and kind in _GAINING:
            self.kinds[made] = kind
            self.of.setdefault(made, {})[use] = None

    def _is_negative(self, made: Building) -> bool:
        """Is an activation given a slope that is, or may be, negative? In place, its backward would raise."""
        flow = self._builders.reading(made.owner)
        is_function = activations.functional(flow.called(made)) is not None  # its first argument is the input
        given = (flow.made.get(argument.temp) for argument in made.arguments[is_function:])
        return any(
            isinstance(op, Call | CallMethod)
            or (isinstance(op, Operate) and op.operator == "-" and len(op.operands) == 1)
            for op in given
        )

    # In a Sequential.

    def _stacked(self, function: Function) -> None:
        reading = self._builders.reading(function)
        for call in reading.calls:
            stacked = reading.called(call) == SEQUENTIAL and not is_taken_apart(self._builders, call)
            if stacked or self._is_base(function.cls, call):
                children = self._builders.children(function, call) or ()
                for number, layers in enumerate(children):
                    after = children[number + 1] if number + 1 < len(children) else ()
                    for layer in layers:
                        self._add(layer, self._between(children[number - 1] if number else (), layer, after))
        stacks = Stacks(self._builders, function)
        for layer, before in stacks.pairs:
            after = tuple(behind for behind, one in stacks.pairs if one is not None and one is layer.made)
            self._add(layer, self._between((stacks.layer(before),), layer, after))

    def _between(self, before: Layers, layer: Layer, after: Layers) -> Use:
        """Return how an activation is used between others in a Sequential."""
        ends = [last(one) for one in before]
        safe = bool(ends) and all(saved_tensors.output_is_free(one.kind) for one in ends)
        unkept = bool(after) and all(saved_tensors.keeps_nothing(first(one).kind) for one in after)
        gains = layer.kind.rpartition(".")[2] not in activations.SAVES_ONE or not unkept
        if not ends:
            return Use(safe, gains)
        return Use(safe, gains, ends[0].kind, ends[0].made, narrow=all(map(self._is_narrow, ends)))

    def _is_narrow(self, layer: Layer) -> bool:
        """Are there few features in a row, or is it not known how many?"""
        if layer.kind not in _ROWS or layer.made is None:
            return False
        function, width = layer.made.owner, argument(layer.made, 1, "out_features", "out_channels")
        made = self._builders.reading(function).made.get(width)
        if isinstance(made, Load) and (default := default_of(function, made.name.text)) is not None:
            function, width = default
        features = Numbers(function, self._builders.reading(function)).at_most(width)
        return features is None or features <= _NARROW

    def _is_base(self, cls: Class | None, call: Building) -> bool:
        """Is it the constructor of Sequential that a class calls which derives from it?"""
        if cls is None or not isinstance(call, CallMethod) or call.name != "__init__":
            return False
        is_super = isinstance(self._builders.reading(call.owner).made.get(call.base), Super)
        return is_super and SEQUENTIAL in self._builders.index.libraries(cls)

    # Where it is called.

    def _applies(self, function: Function) -> bool:
        """Does a method call an attribute that is such an activation, or a list or Sequential of these?"""
        reading = self._builders.reading(function) if function.cls is not None else None
        if reading is None or reading.cls is None:
            return False
        around = (m for base in self._builders.index.order(reading.cls) for m in base.methods.values())
        if all(method.mentions.isdisjoint(_GAINING) for method in around):
            return False
        called = {call.name for call in reading.calls if isinstance(call, CallMethod) and reading.is_self(call.base)}
        layers = (layer for name in called for layer in self._builders.attribute(reading.cls, name))
        return any(layer.kind.rpartition(".")[2] in _GAINING for layer in layers)

    def _applied(self, walk: Walk, application: Application) -> None:
        layer, kind = application.layer, application.layer.kind.rpartition(".")[2]
        versions = in_order(application.given)
        safe = bool(versions) and all(_is_fresh(walk, application, version) for version in versions)
        names = [name for version in versions for name in walk.makers[version].names]
        made = next((version for version in versions if isinstance(version, Op)), None)
        gains = kind not in activations.SAVES_ONE or _is_kept(walk, application.op)
        safe = safe and not self._is_compiled(walk.function)
        before = [walk.makers[version].layers for version in versions]
        narrow = bool(before) and all(layers and all(map(self._is_narrow, map(last, layers))) for layers in before)
        self._add(layer, Use(safe, gains, names[0] if names else "", made, application.op, narrow))

    def _is_compiled(self, function: Function | None) -> bool:
        """Is a function, or one around it, one of TorchScript, or may it be one (`compiled = torch.jit.script`)?"""
        if function is None or function.parent is None:
            return False
        module = self._builders.reading(function.unit.module)
        for decorator in function.decorators:
            names = {decorator.name, *(module.name(temp) for temp in module.bound.get(decorator.name, ()))}
            if not names.isdisjoint(_COMPILING):
                return True
        return self._is_compiled(function.parent)


def _is_fresh(walk: Walk, application: Application, version: Version) -> bool:
    """Was it made by an operation that does not need it, for the activation alone, and anew each time?"""
    if (version, application.op) in walk.beside or not {*application.loops} <= {*walk.makers[version].loops}:
        return False
    made, chain = {version}, [version]  # with what it was before it was overwritten
    for one in chain:
        maker = walk.makers[one]
        if isinstance(one, str) or not all(map(saved_tensors.output_is_free, maker.names)):
            return False
        if any((before, one) in walk.later for before in maker.over if isinstance(one, Op)):
            return False
        chain += maker.over - made
        made |= maker.over
    return True


def _is_kept(walk: Walk, op: Op) -> bool:
    """Does what follows keep the activation's output? Where it is not seen what follows, it is taken to."""
    names = walk.takers.get(op, {}).values()
    return not names or not all(map(saved_tensors.keeps_nothing, names))


# Where else a module may be used than by the class, or the Sequential, that it is put into.

_TAKING = frozenset("children named_children enumerate list tuple zip iter reversed".split())  # one by one
_HOLDING = frozenset({SEQUENTIAL, "collections.OrderedDict"}) | LISTS


def escapes(builders: Builders, made: Building) -> bool:
    """May a module be used elsewhere than where its class, or the Sequential that it is put into, uses it?"""
    return _Search(builders).leaves(builders.reading(made.owner), made.dst)


def is_taken_apart(builders: Builders, made: Building) -> bool:
    """Are the parts of a Sequential taken one by one, so that what comes between them may be kept?"""
    return _Parts(builders).leaves(builders.reading(made.owner), made.dst)


class _Search:
    def __init__(self, builders: Builders) -> None:
        self._builders = builders
        self._seen: set[tuple[Reading, Temp]] = set()

    def leaves(self, reading: Reading, temp: Temp) -> bool:
        """Does what a temporary holds get to code that is not seen?"""
        if (reading, temp) in self._seen:
            return False
        self._seen.add((reading, temp))
        return any(self._by(reading, temp, op) for op in reading.taken.get(temp, ()))

    def _by(self, reading: Reading, temp: Temp, op: Op) -> bool:
        """Does an operation that takes it let it out?"""
        match op:
            case ops.Bind(name=name):
                if name.scope is Scope.GLOBAL or name.text in reading.function.shared:
                    return True
                return self._named(reading, name.text)
            case ops.Operate(place=Name(text=text)):
                return self._named(reading, text)
            case (
                ops.Move(dst=dst)
                | ops.Choose(dst=dst)
                | ops.Make(dst=dst)
                | ops.Operate(dst=dst)
                | ops.Collect(box=dst)
            ):
                return self.leaves(reading, dst)
            case ops.SetAttribute(base=base, name=name) if base != temp and reading.is_self(base):
                return reading.cls is None or self._attribute(reading.cls, name)
            case If() | ops.Compare() | Check():
                return False
            case ops.Call() | ops.CallMethod():
                return self._call(reading, temp, op)
        return True

    def _call(self, reading: Reading, temp: Temp, op: Building) -> bool:
        if isinstance(op, ops.Call) and op.callee == temp:
            return False
        name = reading.called(op)
        if isinstance(op, ops.CallMethod) and op.base == temp:
            return self.leaves(reading, op.dst) if op.name in RETURNS_ITSELF else op.name not in GROWING
        if name in self._builders.index.contracts.names("wrappers"):
            return self.leaves(reading, op.dst)
        is_base = isinstance(op, ops.CallMethod) and isinstance(reading.made.get(op.base), ops.Super)
        is_put = isinstance(op, ops.CallMethod) and op.name in GROWING
        return not (name in _HOLDING or is_base or is_put)

    def _named(self, reading: Reading, text: str) -> bool:
        return any(self.leaves(reading, load.dst) for load in reading.loads.get(text, ()))

    def _attribute(self, cls: Class, name: str) -> bool:
        for base in self._builders.index.order(cls):
            for method in base.methods.values():
                if name in method.mentions:
                    reading = self._builders.reading(method)
                    for temp, op in reading.made.items():
                        if isinstance(op, ops.GetAttribute) and op.name == name and self.leaves(reading, temp):
                            return True
        return False


class _Parts(_Search):
    """Looks for what takes parts out of a Sequential."""

    def _by(self, reading: Reading, temp: Temp, op: Op) -> bool:
        match op:
            case For(source=taken) | ops.GetItem(base=taken):
                return taken == temp
            case ops.GetAttribute(name=name):
                return name == "_modules"
            case ops.Bind(name=name):
                return self._named(reading, name.text)
            case ops.CallMethod(base=base, name=name) if base == temp:
                return name in _TAKING
            case ops.Call():
                return op.callee != temp and reading.called(op) in _TAKING
            case ops.Move() | ops.Choose() | ops.SetAttribute():
                return super()._by(reading, temp, op)
        return False

"""Recording: how many bytes a forward pass keeps for backward, where its layers and its input say how large they are.

A network is gone through layer by layer, with the shape of what each gives. Whatever is not known of one of them makes
the whole unknown: nothing is taken for small.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torchmemlint.amounts import FLOAT, Amount
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Object
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.layers import SEQUENTIAL, Builders, Layer
from torchmemlint.flow.fact.numbers import Numbers, argument
from torchmemlint.flow.fact.reasons import Pass
from torchmemlint.flow.fact.rows import given_one_row
from torchmemlint.flow.fact.shapes import (
    MEASURING,
    SAME_BY_FUNCTION,
    UNKNOWN,
    Shape,
    Tensors,
    after_layer,
    flattened,
    viewed,
)
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import If, Return
from torchmemlint.flow.ir.places import Name, Spread, Temp
from torchmemlint.knowledge import saved_tensors

_DEPTH = 5
_BY_NUMBERS = saved_tensors.OPERATORS - {"@"}
_RESHAPING = frozenset({"view", "reshape"})


class _UnknownError(Exception):
    """Something is not known."""


@dataclass(eq=False, slots=True)
class _Storage:
    """The numbers of a tensor, and of all views of it."""

    numbers: int | None
    kept: bool = False


class _Tensor(NamedTuple):
    """What a layer takes and gives."""

    shape: Shape
    storage: _Storage


class Recording:
    """The passes of some files."""

    def __init__(self, engine: Engine, builders: Builders) -> None:
        self._engine, self._builders = engine, builders

    def amount(self, one: Pass) -> Amount | None:
        """Return what a pass keeps for backward."""
        chain = one.point.chain()
        call = chain[0] if chain else None
        network = next(iter(one.module)) if len(one.module) == 1 else None
        if not isinstance(call, ops.Call | ops.CallMethod) or type(network) is not Object:
            return None
        others = self._engine.imported([call.owner.unit])
        row = call in given_one_row([chain])
        shape = Shape((1, None)) if row else UNKNOWN
        plain = [a.temp for a in call.arguments if a.spread is Spread.PLAIN]
        if not row and len(plain) == len(call.arguments) == 1:
            shape = Tensors(self._engine.index.contracts, call.owner, chain[1:], others).shape(plain[0])
        if not shape.sizes or shape.sizes[0] is None:
            return None
        keeping = _Keeping(self._builders, others)
        try:
            keeping.network(network, _Tensor(shape, _Storage(0)))
            nbytes = FLOAT * sum(keeping.numbers())
        except _UnknownError:
            return None
        return Amount(nbytes, f"batch of {shape.sizes[0]}" if shape.sizes[0] > 1 else "")


class _Keeping:
    """What one pass keeps."""

    def __init__(self, builders: Builders, others: Collection[ops.Unit]) -> None:
        self._builders, self._others = builders, others
        self._made: list[_Storage] = []

    def numbers(self) -> list[int]:
        """Return how many numbers each tensor has that is kept."""
        found = [one.numbers for one in self._made if one.kept]
        known = [number for number in found if number is not None]
        if len(known) < len(found):
            raise _UnknownError
        return known

    def network(self, network: Object, given: _Tensor) -> _Tensor:
        """Run a network that was made somewhere."""
        site = network.site
        if network.kind is Kind.INSTANCE and isinstance(site, ops.Call | ops.CallMethod):
            return self._instance(network.about.cls, [site, *network.context], given, 0)
        if network.kind is Kind.MODULE and isinstance(site, ops.Call | ops.CallMethod):
            return self._one(self._builders.layers(site.owner, site.dst), list(network.context), given, 0)
        raise _UnknownError

    def _instance(self, cls: ops.Class, calls: Sequence[object], given: _Tensor, depth: int) -> _Tensor:
        forward = self._builders.index.method(cls, "forward")
        if forward is None or depth > _DEPTH or len(forward.parameters) != 2 or forward.generator:
            raise _UnknownError
        run = _Forward(self, cls, forward, calls, given, depth)
        run.go(forward.body)
        if run.returned is None:
            raise _UnknownError
        return run.returned

    def _one(self, layers: Sequence[Layer], calls: Sequence[object], given: _Tensor, depth: int) -> _Tensor:
        if len(layers) != 1 or depth > _DEPTH:
            raise _UnknownError
        layer = layers[0]
        if layer.kind == SEQUENTIAL and layer.children is not None:
            for children in layer.children:
                given = self._one(children, calls, given, depth + 1)
            return given
        made = layer.made
        if made is None:
            raise _UnknownError
        owner = made.owner
        reached = calls if owner.cls is not None or owner.parent is None else ()
        if not layer.kind:
            found = self._builders.project(owner, self._builders.reading(owner).called(made))
            if not isinstance(found, ops.Class):
                raise _UnknownError
            return self._instance(found, [made, *reached], given, depth + 1)
        numbers = Numbers(owner, calls=reached, others=self._others)
        return self.applied(layer.kind, given, after_layer(numbers, made, layer.kind, given.shape))

    def applied(self, kind: str, given: _Tensor, shape: Shape | None) -> _Tensor:
        """Note what a layer or function keeps, and return what it gives."""
        if shape is None:
            raise _UnknownError
        short = saved_tensors.short(kind)
        given.storage.kept |= short in saved_tensors.INPUT_KEPT or short in saved_tensors.INPUT_KEPT_FOR_WEIGHTS
        made = _Tensor(shape, _Storage(shape.numbers, saved_tensors.output_is_kept(kind)))
        self._made.append(made.storage)
        return made

    def attribute(self, cls: ops.Class, name: str, calls: Sequence[object], given: _Tensor, depth: int) -> _Tensor:
        """Run a layer that an attribute holds."""
        return self._one(self._builders.attribute(cls, name), calls, given, depth + 1)

    def reading(self, function: ops.Function) -> Numbers:
        """Return what tells of the numbers of a function."""
        return Numbers(function, self._builders.reading(function), others=self._others)


class _Forward:
    """A forward that goes from its input to its result without loops."""

    def __init__(
        self,
        keeping: _Keeping,
        cls: ops.Class,
        function: ops.Function,
        calls: Sequence[object],
        given: _Tensor,
        depth: int,
    ) -> None:
        self._keeping, self._cls, self._calls, self._depth = keeping, cls, calls, depth
        self._numbers = keeping.reading(function)
        self._flow = self._numbers.flow
        self._held: dict[Temp, _Tensor] = {}
        self._named = {function.parameters[1].name: given}
        self.returned: _Tensor | None = None

    def go(self, body: Sequence[ops.Op]) -> None:
        """Run some operations."""
        for op in body:
            match op:
                case If(then=then, orelse=orelse):
                    self._either(then, orelse)
                case ops.Load(dst=dst, name=name):
                    if name.text in self._named:
                        self._held[dst] = self._named[name.text]
                case ops.Bind(name=name, src=src):
                    if src in self._held:
                        self._named[name.text] = self._held[src]
                    else:
                        self._named.pop(name.text, None)
                case ops.Operate():
                    self._computed(op)
                case ops.Call() | ops.CallMethod():
                    self._called(op)
                case Return(src=src):
                    self.returned = self._held.get(src, self.returned)
                case ops.GetAttribute() | ops.Constant() | ops.Compare() | ops.Choose() | ops.Make() | ops.GetItem():
                    pass
                case _:
                    raise _UnknownError

    def _either(self, then: Sequence[ops.Op], orelse: Sequence[ops.Op]) -> None:
        """Run what a test decides about, both ways as far as they are known; one of them has to be."""
        known = [self._is_known(block) for block in (then, orelse)]
        if not any(known) or (not all(known) and not (then and orelse)):
            raise _UnknownError

    def _is_known(self, block: Sequence[ops.Op]) -> bool:
        try:
            self.go(block)
        except _UnknownError:
            return False
        return True

    def _computed(self, op: ops.Operate) -> None:
        held = [self._held[one] for one in op.operands if one in self._held]
        if held and op.operator not in _BY_NUMBERS:
            raise _UnknownError
        for one in held if op.operator in saved_tensors.PRODUCTS else ():
            one.storage.kept = True
        if held:
            self._held[op.dst] = self._keeping.applied("", held[0], held[0].shape)
            if isinstance(op.place, Name):
                self._named[op.place.text] = self._held[op.dst]

    def _called(self, op: ops.Call | ops.CallMethod) -> None:
        given = [one.temp for one in op.arguments if one.temp in self._held]
        if isinstance(op, ops.CallMethod) and self._flow.is_self(op.base):
            if len(given) != 1 or len(op.arguments) != 1:
                raise _UnknownError
            made = self._keeping.attribute(self._cls, op.name, self._calls, self._held[given[0]], self._depth)
            self._held[op.dst] = made
            return
        base = op.base if isinstance(op, ops.CallMethod) and op.base in self._held else None
        name = op.name if base is not None and isinstance(op, ops.CallMethod) else self._flow.called(op)
        source = base if base is not None else given[0] if given else None
        if source is None:
            return
        tensor, short = self._held[source], saved_tensors.short(name)
        if short in MEASURING:
            return
        if base is not None and short in _RESHAPING:
            sizes = [self._size(one.temp) for one in op.arguments]
            self._held[op.dst] = _moved(tensor, viewed(tensor.shape, sizes))
        elif short == "flatten":
            after = [self._numbers.at_most(one.temp) for one in op.arguments if one.temp != source]
            self._held[op.dst] = _moved(tensor, flattened(tensor.shape, (after[0] or 0) if after else 0))
        elif short in SAME_BY_FUNCTION:
            self._held[op.dst] = self._keeping.applied(short, tensor, tensor.shape)
        else:
            raise _UnknownError

    def _size(self, temp: Temp) -> int | None:
        """Return one size of a view, that of the batch where it is asked of a tensor."""
        made = self._flow.made.get(temp)
        if isinstance(made, ops.CallMethod) and made.name == "size" and made.base in self._held:
            axis = self._numbers.at_most(argument(made, 0, "dim"))
            sizes = self._held[made.base].shape.sizes
            return sizes[axis] if axis is not None and axis < len(sizes) else None
        if isinstance(made, ops.GetItem):
            return self._batch(made)
        return self._numbers.view_size(temp)

    def _batch(self, item: ops.GetItem) -> int | None:
        """`x.shape[0]`."""
        shape = self._flow.made.get(item.base)
        first = getattr(item.key, "value", None) == 0
        if first and isinstance(shape, ops.GetAttribute) and shape.name == "shape" and shape.base in self._held:
            sizes = self._held[shape.base].shape.sizes
            return sizes[0] if sizes else None
        return None


def _moved(tensor: _Tensor, shape: Shape | None) -> _Tensor:
    """Return a view of a tensor."""
    if shape is None:
        raise _UnknownError
    return _Tensor(shape, tensor.storage)

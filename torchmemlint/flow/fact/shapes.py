"""Shapes: how large the tensors are that a program makes or loads, and what layers make of that."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import NamedTuple

from torchmemlint.flow.fact.numbers import DEPTH, Numbers, actual, argument
from torchmemlint.flow.fact.reading import Building
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import For
from torchmemlint.flow.ir.places import NO_TEMP, Scope, Spread, Temp
from torchmemlint.knowledge import activations, data_sets, operations
from torchmemlint.knowledge.contracts import Contracts

_MAKING = frozenset(f"torch.{name}" for name in "empty ones rand randn zeros".split())
_LIKE = frozenset(f"torch.{name}" for name in "empty_like ones_like rand_like randn_like zeros_like".split())
_KEEPING = frozenset("clone contiguous cpu cuda detach double float half requires_grad_ to".split())
_WRAPPING = frozenset({"torch.autograd.Variable"})
_LOADER_BATCH = 1  # the position of `batch_size` among what a loader is given


class Shape(NamedTuple):
    """The sizes of a tensor; None for one that is not known. `more`: there may be further axes behind."""

    sizes: tuple[int | None, ...] = ()
    more: bool = False

    @property
    def numbers(self) -> int | None:
        """How many numbers the tensor has."""
        known = [size for size in self.sizes if size is not None]
        return None if self.more or len(known) < len(self.sizes) else math.prod(known)


UNKNOWN = Shape(more=True)


class Tensors:
    """Asked about the tensors of one function; `calls` are those that led there, innermost first."""

    def __init__(
        self, known: Contracts, function: ops.Function, calls: Sequence[object], others: Collection[ops.Unit]
    ) -> None:
        self._known, self._calls, self._others = known, calls, others
        self._numbers = Numbers(function, calls=calls, others=others)
        self._flow = self._numbers.flow

    def shape(self, temp: Temp, depth: int = 0) -> Shape:
        """Return the shape of what a temporary holds."""
        if depth > DEPTH or temp in self._flow.moved:
            return UNKNOWN
        match self._flow.made.get(temp):
            case ops.Load() as load:
                return self._named(load, depth + 1)
            case ops.Unpack(src=src, targets=targets, star=-1) if isinstance(
                made := self._flow.made.get(src), ops.Make
            ):
                alike = len(made.entries) == len(targets)
                return self.shape(made.entries[targets.index(temp)].temp, depth + 1) if alike else UNKNOWN
            case ops.Unpack(src=src):
                return self.shape(src, depth) if self._is_item(src) else UNKNOWN
            case For(source=source):
                return self._batch(source, set()) or UNKNOWN
            case ops.CallMethod(name="view" | "reshape", base=base, arguments=arguments):
                sizes = [self._numbers.view_size(one.temp) for one in arguments]
                return viewed(self.shape(base, depth + 1), sizes)
            case ops.CallMethod(name=name, base=base) if name in _KEEPING:
                return self.shape(base, depth + 1)
            case (ops.Call(arguments=[first, *_]) | ops.CallMethod(arguments=[first, *_])) as call:
                called = self._flow.called(call)
                if called in _WRAPPING | _LIKE:
                    return self.shape(first.temp, depth + 1)
                if called in _MAKING and all(one.spread in (Spread.PLAIN, Spread.NAMED) for one in call.arguments):
                    plain = [one.temp for one in call.arguments if one.spread is Spread.PLAIN]
                    made = self._flow.made.get(plain[0]) if len(plain) == 1 else None
                    if isinstance(made, ops.Make):
                        plain = [entry.temp for entry in made.entries]
                    return Shape(tuple(map(self._numbers.at_most, plain)))
        return UNKNOWN

    def _is_item(self, temp: Temp) -> bool:
        """Is it what a loop gives, or a part of that?"""
        made = self._flow.made.get(temp)
        return isinstance(made, For) or (isinstance(made, ops.Unpack) and self._is_item(made.src))

    def _named(self, load: ops.Load, depth: int) -> Shape:
        """Return the shape of what a variable was given last before, as far as the order of the text tells."""
        name = load.name.text
        given = self._caller(name)
        if given is not None:
            return given[0].shape(given[1], depth)
        if self._is_global(load):
            found = {self._module.shape(one.src, depth) for one in self._module._flow.binds.get(name, ())}
            return found.pop() if len(found) == 1 else UNKNOWN
        last = self._flow.last(load)
        return self.shape(last.src, depth) if last is not None else UNKNOWN

    def _is_global(self, load: ops.Load) -> bool:
        return load.name.scope is Scope.GLOBAL and self._numbers.function.parent is not None

    @cached_property
    def _module(self) -> Tensors:
        return Tensors(self._known, self._numbers.function.unit.module, (), self._others)

    def _caller(self, name: str) -> tuple[Tensors, Temp] | None:
        """Return where a caller makes what it gives for a parameter."""
        call = self._calls[0] if self._calls else None
        if name in self._flow.bound or not isinstance(call, ops.Call | ops.CallMethod):
            return None
        temp = actual(call, self._numbers.function, name)
        if temp == NO_TEMP:
            return None
        return Tensors(self._known, call.owner, self._calls[1:], self._others), temp

    def _batch(self, source: Temp, seen: set[tuple[ops.Function, str]]) -> Shape | None:
        """Return what a loader gives at once, of what a loop runs over; each variable is looked at once."""
        for op in self._flow.behind(source):
            match op:
                case ops.Call() | ops.CallMethod() if self._flow.called(op) in self._known.names("loaders"):
                    size = argument(op, _LOADER_BATCH, "batch_size")
                    count = self._numbers.at_most(size) if size != NO_TEMP else None
                    item = self._item(argument(op, 0, "dataset"))
                    return Shape((count, *item), more=not item) if count is not None else None
                case ops.Load(name=name) if (place := (self._numbers.function, name.text)) not in seen:
                    seen.add(place)
                    given = self._caller(name.text)
                    if given is not None:
                        return given[0]._batch(given[1], seen)
                    owner = self._module if self._is_global(op) else self
                    found = {owner._batch(one.src, seen) for one in owner._flow.binds.get(name.text, ())}
                    if found and found != {None}:
                        return found.pop() if len(found) == 1 else None
        return None

    def _item(self, data_set: Temp) -> tuple[int, ...]:
        """Return the shape of the images of a data set, where all are alike and nothing in the file changes them."""
        unit = self._numbers.function.unit
        if not unit.module.mentions.isdisjoint(data_sets.RESIZING):
            return ()
        todo, seen = [data_set], set[str]()
        for temp in todo:
            made = self._flow.made.get(temp)
            if isinstance(made, ops.Load) and made.name.text not in seen:
                seen.add(made.name.text)
                todo += [one.src for one in self._flow.binds.get(made.name.text, ())]
            owner, _, name = self._flow.called(made).rpartition(".")
            if owner == "torchvision.datasets":
                return data_sets.IMAGES.get(name, ())
        return ()


def flattened(given: Shape, start: int) -> Shape | None:
    """Return the shape with all axes from one on in one."""
    if given.more:
        return Shape((given.sizes[0], None)) if start == 1 and given.sizes else None
    behind = Shape(given.sizes[start:]).numbers
    return Shape((*given.sizes[:start], behind))


def viewed(given: Shape, sizes: list[int | None]) -> Shape:
    """Return a shape as it is asked for; -1 is what remains."""
    if -1 not in sizes:
        return Shape(tuple(sizes))
    place, whole = sizes.index(-1), given.numbers
    others = Shape(tuple(size for size in sizes if size != -1)).numbers
    if whole is not None and others:
        rest: int | None = whole // others
    else:
        rest = None
    return Shape((*sizes[:place], rest, *sizes[place + 1 :]))


# What layers of torch make of a shape.

_ALTERING = frozenset({"GLU", "MultiheadAttention"})  # activations that give another shape
_SAME_KINDS = frozenset({"activation", "batchnorm", "dropout", "instancenorm", "normalization"})
_SAME = frozenset(name for name, one in operations.layers().items() if one.kind in _SAME_KINDS) - _ALTERING | {
    "Identity"
}
SAME_BY_FUNCTION = activations.FUNCTIONS | frozenset("dropout log_softmax sigmoid softmax tanh gelu softplus".split())
"""Functions and methods that give a tensor of the same shape."""
MEASURING = frozenset({"size", "dim", "numel"})

_CONV, _TRANSPOSED = ("Conv1d", "Conv2d", "Conv3d"), ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
_POOLING = frozenset(f"{kind}Pool{d}d" for kind in ("Avg", "Max") for d in (1, 2, 3))


def after_layer(numbers: Numbers, made: Building, kind: str, given: Shape) -> Shape | None:
    """Return the shape of what a layer gives, of what it was built with and is given; None where it is not known."""
    short = kind.rpartition(".")[2]

    def option(position: int, name: str, default: int | None = None) -> int | None:
        temp = argument(made, position, name)
        return default if temp == NO_TEMP else single(numbers, temp)

    if short in _SAME:
        return given
    if short == "Flatten":
        return flattened(given, 1)
    if given.more:
        return None
    if short == "Linear":
        return Shape((*given.sizes[:-1], option(1, "out_features")))
    if short == "Embedding":
        return Shape((*given.sizes, option(1, "embedding_dim")))
    if short in _CONV:
        window = (option(2, "kernel_size"), option(3, "stride", 1), option(4, "padding", 0), option(5, "dilation", 1))
        return _across(given, option(1, "out_channels"), _conv, window)
    if short in _TRANSPOSED:
        sizes = (
            option(2, "kernel_size"),
            option(3, "stride", 1),
            option(4, "padding", 0),
            option(5, "output_padding", 0),
        )
        return _across(given, option(1, "out_channels"), _transposed, sizes)
    if short in _POOLING and len(given.sizes) > 1:
        size = option(0, "kernel_size")
        return _across(given, given.sizes[1], _conv, (size, option(1, "stride", size), option(2, "padding", 0), 1))
    return None


def single(numbers: Numbers, temp: Temp) -> int | None:
    """Return a number, also where it is said once for each axis."""
    made = numbers.flow.made.get(temp)
    if isinstance(made, ops.Make):
        found = {numbers.at_most(entry.temp) for entry in made.entries}
        return found.pop() if len(found) == 1 else None
    return numbers.at_most(temp)


def _across(
    given: Shape, channels: int | None, along: Callable[..., int], window: tuple[int | None, ...]
) -> Shape | None:
    """Return the shape that a window gives which runs along all axes but the first two."""
    known = [size for size in window if size is not None]
    if len(known) < len(window) or len(given.sizes) < 3:
        return None
    sizes = [along(size, *known) if size is not None else None for size in given.sizes[2:]]
    return Shape((given.sizes[0], channels, *sizes))


def _conv(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return max((size + 2 * padding - dilation * (kernel - 1) - 1) // max(stride, 1) + 1, 0)


def _transposed(size: int, kernel: int, stride: int, padding: int, more: int) -> int:
    return max((size - 1) * stride - 2 * padding + kernel + more, 0)

"""Shapes: how large the tensors are that a program makes or loads, as far as it says so."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from torchmemlint.flow.fact.numbers import DEPTH, Numbers, argument
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import For
from torchmemlint.flow.ir.places import NO_TEMP, Spread, Temp
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
            case ops.Load(name=name):
                return self._named(name.text, depth + 1)
            case ops.Unpack(src=src, targets=targets, star=-1) if isinstance(
                made := self._flow.made.get(src), ops.Make
            ):
                alike = len(made.entries) == len(targets)
                return self.shape(made.entries[targets.index(temp)].temp, depth + 1) if alike else UNKNOWN
            case ops.Unpack(src=src):
                return self.shape(src, depth) if self._is_item(src) else UNKNOWN
            case For(source=source):
                size = self._batch(source, depth + 1)
                return Shape((size,), more=True) if size is not None else UNKNOWN
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

    def _named(self, name: str, depth: int) -> Shape:
        given = self._caller(name)
        if given is not None:
            return given[0].shape(given[1], depth)
        sources = self._flow.bound.get(name, [])
        found = {self.shape(source, depth) for source in sources}
        if found and len(found) > 1:  # x = x.to(device)
            found = {shape for shape in found if shape != UNKNOWN} or found
        return found.pop() if len(found) == 1 else UNKNOWN

    def _caller(self, name: str) -> tuple[Tensors, Temp] | None:
        """Return where a caller makes what it gives for a parameter."""
        function = self._numbers.function
        names = [parameter.name for parameter in function.parameters]
        call = self._calls[0] if self._calls else None
        if name not in names or name in self._flow.bound or not isinstance(call, ops.Call | ops.CallMethod):
            return None
        temp = argument(call, names.index(name) - (function.cls is not None), name)
        if temp == NO_TEMP:
            return None
        return Tensors(self._known, call.owner, self._calls[1:], self._others), temp

    def _batch(self, source: Temp, depth: int) -> int | None:
        """Return how many samples a loader gives at once, of what a loop runs over."""
        if depth > 2 * DEPTH:
            return None
        for op in self._flow.behind(source):
            match op:
                case ops.Call() | ops.CallMethod() if self._flow.called(op) in self._known.names("loaders"):
                    size = argument(op, _LOADER_BATCH, "batch_size")
                    return self._numbers.at_most(size) if size != NO_TEMP else None
                case ops.Load(name=name):
                    given = self._caller(name.text)
                    if given is not None:
                        return given[0]._batch(given[1], depth + 1)
                    bound = self._flow.bound.get(name.text, [])
                    found = {self._batch(one, depth + 1) for one in bound}
                    if found != set() and found != {None}:
                        return found.pop() if len(found) == 1 else None
        return None

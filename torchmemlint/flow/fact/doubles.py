"""Doubles: float64 that nobody asked for, numpy's default, kept by `torch.from_numpy` on its way to a device.

What a function makes of an array shows in its definitions and uses; no run is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from torchmemlint.flow.fact.devices import is_device
from torchmemlint.flow.fact.sizes import Sizes
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.places import NO_TEMP, Name, Spread, Temp
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import arrays, torch_api
from torchmemlint.knowledge.arrays import Maker

_DOUBLE = 8  # bytes
_SMALL = 1024  # numbers; less costs next to nothing, whatever their width
_KEEPING = frozenset(
    "view reshape flatten squeeze unsqueeze transpose permute t expand expand_as clone contiguous repeat roll flip "
    "pin_memory requires_grad_ view_as unflatten narrow detach".split()
)
_BESIDE_DEVICE = frozenset({"non_blocking", "async", "copy", "memory_format"})
_CASTS = frozenset({"float", "half", "bfloat16"})
_NAMES = frozenset(name.rpartition(".")[2] for name in arrays.MAKERS)
_ASKING = frozenset({"float64", "double", "DoubleTensor", "set_default_dtype", "complex128"})
_ASKING_TEXTS = ('"float64"', "'float64'", "DoubleTensor")


@immutable()
class Double:
    """An array of float64, or what is made of one."""

    array: ops.Op  # where numpy makes it
    maker: str  # qualified name of the function
    taken: ops.Op | None = None  # the call that makes a tensor of it
    mixed: bool = False  # was something computed of that and others?
    moved: ops.Op | None = None  # what brings it to a device
    cast: bool = False  # is it cast to less as soon as it is there?
    nbytes: int | None = None
    grows: bool = False  # with the data?


def doubles(function: ops.Function, text: str) -> Iterator[Double]:
    """Yield what a function brings to a device in numpy's default precision; `text` is its file's."""
    mentions = function.mentions
    if (
        mentions.isdisjoint(arrays.TAKING)
        or mentions.isdisjoint(_NAMES)
        or mentions.isdisjoint(torch_api.MOVES | {"device"})
    ):
        return
    asking = any(not _ASKING.isdisjoint(one.mentions) for one in function.unit.functions)
    if not asking and not any(word in text for word in _ASKING_TEXTS):  # who speaks of it knows what it does
        yield from _Reading(function).found.values()


class _Reading:
    """One function, read from its beginning to its end."""

    def __init__(self, function: ops.Function) -> None:
        self.found: dict[ops.Op, Double] = {}  # by what brings it to a device
        self._function, self._flow = function, definitions(function)
        self._known = Sizes(function, self._flow)
        self._doubles: dict[Temp, Double] = {}
        self._bound: dict[str, list[Double | None]] = {}  # to names, so far
        for op in operations(function.body):
            self._read(op)

    def _read(self, op: ops.Op) -> None:
        made: Double | None = None
        match op:
            case ops.Load(name=name):
                bound = self._bound.get(name.text, [])
                made = bound[-1] if bound and None not in bound else None
            case ops.Bind(name=name, src=src):
                self._bind(name, src)
            case ops.Operate(operands=operands, place=place):
                made = self._combined(operands)
                self._doubles.update({} if made is None else {op.dst: made})
                if isinstance(place, Name):
                    self._bind(place, op.dst)
            case ops.Call() | ops.CallMethod():
                made = self._called(op)
        if made is not None:
            self._doubles[getattr(op, "dst", NO_TEMP)] = made

    def _bind(self, name: Name, source: Temp) -> None:
        self._bound.setdefault(name.text, []).append(self._doubles.get(source))

    def _combined(self, operands: tuple[Temp, ...]) -> Double | None:
        """Return what an operator makes of a tensor of float64 and anything, or of an array and a number."""
        for temp in operands:
            known = self._doubles.get(temp)
            others = [self._flow.made.get(other) for other in operands if other != temp]
            if known is not None and (known.taken or all(isinstance(other, ops.Constant) for other in others)):
                return replace(known, mixed=known.taken is not None)
        return None

    def _called(self, op: ops.Call | ops.CallMethod) -> Double | None:
        flow = self._flow
        base = self._doubles.get(op.base) if isinstance(op, ops.CallMethod) else None
        if isinstance(op, ops.CallMethod) and base is not None:
            return self._method(op, base)
        qualified = flow.called(op)
        if isinstance(op, ops.CallMethod) and op.name in arrays.OF_GENERATORS and self._is_generator(op.base):
            qualified = f"numpy.random.{op.name}"
        maker = arrays.MAKERS.get(qualified)
        if maker is not None:
            return Double(op, qualified) if self._is_double(op, maker) else None
        given = _given(op)
        first = next((given[name] for name in ("0", "data", "ndarray", "obj") if name in given), NO_TEMP)
        array = self._doubles.get(first)
        if array is None or array.taken or "dtype" in given or "**" in given:
            return None
        if qualified.startswith("torch.") and qualified.removeprefix("torch.") in arrays.TAKING:
            tensor = replace(array, taken=op)
            return self._moved(op, tensor) if "device" in given and is_device(self._flow, given["device"]) else tensor
        return None

    def _method(self, op: ops.CallMethod, owner: Double) -> Double | None:
        if owner.taken is None:
            return owner if op.name in arrays.KEEPING else None
        if owner.moved is not None:
            if op.name in _CASTS:
                self.found[owner.moved] = replace(self.found[owner.moved], cast=True)
            return None
        if op.name in torch_api.MOVES:
            given = {name: temp for name, temp in _given(op).items() if name not in _BESIDE_DEVICE}
            place = given.get("0", given.get("device", NO_TEMP))
            goes = is_device(self._flow, place) if len(given) == 1 else op.name == "cuda" and not given
            return self._moved(op, owner) if goes else None
        return owner if op.name in _KEEPING else None

    def _moved(self, op: ops.Op, tensor: Double) -> Double:
        sizes = self._sizes(tensor)
        counts = [self._known.at_most(temp) for temp in sizes]
        numbers = math.prod(count or 0 for count in counts) if None not in counts else None
        small = numbers is not None and numbers < _SMALL
        nbytes = numbers * _DOUBLE if numbers is not None else None
        moved = replace(tensor, moved=op, nbytes=nbytes, grows=self._known.axes_of_data(sizes) > 1)
        is_row = len(sizes) == 2 and self._known.at_most(sizes[0]) == 1  # what one sample starts from is little
        if not small and not is_row:
            self.found[op] = moved
            return moved
        return replace(tensor, taken=None)

    # What is given.

    def _is_double(self, op: ops.Op, maker: Maker) -> bool:
        """Is it an array of float64, because its maker was told nothing else?"""
        given = _given(op)
        if "**" in given or "dtype" in given or str(maker.dtype_at) in given:
            return False
        return not maker.optional or bool(self._given_sizes(given, maker))

    @staticmethod
    def _given_sizes(given: dict[str, Temp], maker: Maker) -> list[Temp]:
        names = [name for name in given if name.isdigit()] if maker.dims else [maker.size, str(maker.at)]
        return [given[name] for name in names if name in given]

    def _sizes(self, double: Double) -> list[Temp]:
        """Return the sizes that an array was made with, each by itself if they are written out."""
        found = self._given_sizes(_given(double.array), arrays.MAKERS[double.maker])
        made = self._flow.made.get(found[0]) if len(found) == 1 else None
        return [entry.temp for entry in made.entries] if isinstance(made, ops.Make) else found

    def _is_generator(self, temp: Temp) -> bool:
        """Is it one of numpy's generators, by a call, a name, or an attribute that a method of the class assigns?"""
        match self._flow.made.get(temp):
            case ops.Call() | ops.CallMethod() as call:
                return self._flow.called(call) in arrays.GENERATORS
            case ops.Load(name=name):
                return any(map(self._is_generator, self._flow.bound.get(name.text, ())))
            case ops.GetAttribute(name=name):
                cls = self._function.cls
                return any(_assigns(method, name) for method in (cls.methods.values() if cls is not None else ()))
        return False


def _given(op: ops.Op) -> dict[str, Temp]:
    """Return what a call is given, by position or name; what is spread goes by its stars, if it is no size."""
    found: dict[str, Temp] = {}
    for number, argument in enumerate(getattr(op, "arguments", ())):
        plain = argument.spread in (Spread.PLAIN, Spread.STAR)
        found[str(number) if plain else argument.name or "**"] = argument.temp
    return found


def _assigns(method: ops.Function, attribute: str) -> bool:
    flow = definitions(method)
    stored = [op.src for op in operations(method.body) if isinstance(op, ops.SetAttribute) and op.name == attribute]
    return any(flow.called(flow.made.get(temp)) in arrays.GENERATORS for temp in stored)

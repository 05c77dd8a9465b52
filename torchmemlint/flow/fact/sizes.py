"""Sizes: what a function's operations tell of axes: that they are as long as a batch, or grow with the data."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from torchmemlint.flow.fact.numbers import DEPTH, Definition, Numbers, argument, integer
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.defuse import DefUse, definitions
from torchmemlint.flow.ir.places import ComputedKey, ConstantKey, SliceKey, Spread, Temp
from torchmemlint.immutable import immutable

_REDUCING = frozenset("amax amin argmax argmin max mean min norm prod std sum".split())  # along `dim`
_FILLING = frozenset("empty ones rand randn zeros".split())
_FIRST = 0  # the axis of a batch's items


@immutable()
class _Axis:
    """One axis of a tensor, where that is known, or the length of a collection."""

    tensor: object = None  # as written
    index: int = 0
    cut: bool = False  # of a shape of which the last axes are cut off


class Sizes:
    """Asked about the values of one function, or of a file's body."""

    def __init__(self, function: ops.Function, flow: DefUse | None = None, others: Collection[ops.Unit] = ()) -> None:
        """`others` are files that may declare options."""
        self._flow = flow or definitions(function)
        self._numbers = Numbers(function, self._flow, others=others)
        self._ops = list(operations(function.body))

    def at_most(self, size: Temp) -> int | None:
        """Return the greatest number that a value may be; None where that is not known."""
        return self._numbers.at_most(size)

    def _definitions(self, name: str) -> list[Definition]:
        return self._numbers.definitions(name)

    def is_one_per_item(self, size: Temp) -> bool:
        """Is it the length of the first axis of a tensor with more of them, or that the author calls a batch's?"""
        made = self._flow.made.get(size)
        if not isinstance(made, ops.Load):
            return self._is_first_axis(size, "")
        found = self._definitions(made.name.text)
        return bool(found) and all(self._is_batch(one, made.name.text) for one in found)

    def axes_of_data(self, shape: Iterable[Temp]) -> int:
        """Return how many axes of tensors (or lengths of collections) a shape multiplies; all of a tensor count as two.

        Such a shape grows with the data, where one that is made of settings mostly does not. Axes of a tensor without
        its last one, and nothing in its place, count as one: a flag for each token is little beside the tokens'
        features.
        """
        sizes = list(shape)
        found = [axis for size in sizes for axis in self._axes(size)]
        little = self._leave_out_features(found) and not any(map(self._has_another, sizes))
        return min(len(found), 1) if little else len(found)

    def _has_another(self, size: Temp) -> bool:
        """Is there an axis of which it is neither known how long it is nor that it is the data's?"""
        match self._flow.made.get(size):
            case ops.Make(entries=entries):
                return any(self._has_another(entry.temp) for entry in entries)
            case ops.Operate(operands=(left, right)):
                return self._has_another(left) or self._has_another(right)
        return not self._axes(size) and self.at_most(size) is None

    def _leave_out_features(self, axes: list[_Axis]) -> bool:
        """Are they different axes of one tensor that has another axis behind them?"""
        if axes and all(axis.cut for axis in axes) and len(axes) <= 2:
            return True
        tensors, places = {axis.tensor for axis in axes}, {axis.index for axis in axes}
        tensor = tensors.pop() if len(tensors) == 1 else None
        return tensor is not None and len(places) == len(axes) and self._has_more_axes(tensor, max(places))

    def _axes(self, size: Temp, depth: int = 0) -> list[_Axis]:
        if depth > DEPTH:
            return []
        made = self._flow.made.get(size)
        match made:
            case ops.Make(entries=entries):
                return [axis for entry in entries for axis in self._axes(entry.temp, depth + 1)]
            case ops.Operate(operands=(left, right)):
                return self._axes(left, depth + 1) + self._axes(right, depth + 1)
            case ops.Load(name=name):
                found = (self._axes_of(one, depth + 1) for one in self._definitions(name.text))
                return max(found, default=[], key=len)
            case ops.Call(callee=callee) if self._flow.path(callee) == "len":
                return [_Axis()]
            case ops.GetItem(base=base, key=SliceKey(start=start)):
                axes = self._axes(base, depth + 1)
                return axes if start else [replace(axis, cut=True) for axis in axes]
        axis = self._axis(made)
        if axis is not None:
            return [_Axis(self._flow.written(axis[0]), axis[1])]
        if isinstance(made, ops.GetItem):
            return [_Axis()] if self._whole_shape(made.base) is not None else []
        tensor = self._whole_shape(size)
        if tensor is None:
            return []
        return [_Axis()] * (1 if self._is_one_number_per_item(tensor, depth + 1) else 2)

    def _axes_of(self, one: Definition, depth: int) -> list[_Axis]:
        if one.index is None:
            return self._axes(one.value, depth)
        tensor = self._whole_shape(one.value)
        return [_Axis(self._flow.written(tensor), one.index)] if tensor is not None else []

    def _axis(self, made: ops.Op | None) -> tuple[Temp, int] | None:
        """Return the tensor and the axis of `x.shape[1]`, `x.size(1)` or `x.size()[1]`."""
        match made:
            case ops.GetItem(base=base, key=ConstantKey(value=int(axis))) if axis >= 0:
                tensor = self._whole_shape(base)
                return (tensor, axis) if tensor is not None else None
            case ops.CallMethod(name="size", base=base, arguments=[only]):
                number = integer(self._flow.made.get(only.temp))
                return (base, number) if number is not None and number >= 0 else None
        return None

    def _whole_shape(self, shape: Temp) -> Temp | None:
        """Return the tensor of `x.shape` or `x.size()`."""
        match self._flow.made.get(shape):
            case ops.GetAttribute(name="shape", base=base) | ops.CallMethod(name="size", base=base, arguments=()):
                return base
        return None

    def _is_one_number_per_item(self, tensor: Temp, depth: int) -> bool:
        """Was a tensor made along one axis of the data, or reduced along the others: `x.abs().max(dim=1)[0]`?"""
        made = self._flow.made.get(tensor)
        if depth > DEPTH:
            return False
        match made:
            case ops.Load(name=name):
                found = [one.value for one in self._definitions(name.text) if one.index is None]
                return any(self._is_one_number_per_item(value, depth + 1) for value in found)
            case ops.Operate(operands=(left, right)):
                constant = [isinstance(self._flow.made.get(operand), ops.Constant) for operand in (left, right)]
                return any(constant) and self._is_one_number_per_item(right if constant[0] else left, depth + 1)
            case ops.GetItem(base=base, key=SliceKey(single=True) | ConstantKey(value=0)):
                return self._is_one_number_per_item(base, depth + 1)
            case ops.CallMethod(name=name, base=base):
                of_torch = self._flow.name(base) == "torch"
                if name in _REDUCING:
                    along = self._flow.made.get(argument(made, 1 if of_torch else 0, "dim"))
                    return isinstance(along, ops.Constant | ops.Make | ops.Operate)
                if of_torch:
                    sizes = [a.temp for a in made.arguments if a.spread is Spread.PLAIN]
                    return name in _FILLING and len(sizes) == 1 and len(self._axes(sizes[0], depth + 1)) < 2
                return self._is_one_number_per_item(base, depth + 1)
        return False

    def _is_batch(self, one: Definition, name: str) -> bool:
        if one.index is None:
            return self._is_first_axis(one.value, name)
        return one.index == _FIRST and one.among > 1 and self._whole_shape(one.value) is not None

    def _is_first_axis(self, size: Temp, called: str) -> bool:
        axis = self._axis(self._flow.made.get(size))
        if axis is None or axis[1] != _FIRST:
            return False
        says_batch = "batch" in called.lower() or called.lower() in ("b", "bs", "bsz")
        return says_batch or self._has_more_axes(self._flow.written(axis[0]), _FIRST)

    def _has_more_axes(self, tensor: object, last: int) -> bool:
        """Does the function ask for a later axis of a tensor, unpack its shape to more, or index more of its axes?"""
        for op in self._ops:
            match op:
                case ops.GetItem(base=base, key=SliceKey(single=False)) if last == _FIRST:
                    found = self._flow.written(base) == tensor
                case ops.GetItem(base=base, key=ComputedKey(temp=temp)):
                    made = self._flow.made.get(temp)
                    several = isinstance(made, ops.Make) and len(made.entries) > last + 1
                    found = several and self._flow.written(base) == tensor
                case ops.Unpack(targets=targets, src=src) if len(targets) > last + 1:
                    whole = self._whole_shape(src)
                    found = whole is not None and self._flow.written(whole) == tensor
                case ops.GetItem() | ops.CallMethod():
                    axis = self._axis(op)
                    found = axis is not None and axis[1] > last and self._flow.written(axis[0]) == tensor
                case _:
                    continue
            if found:
                return True
        return False

"""Operations under one name each, for operators, functions, methods and layers, with the tensors that they take."""

from __future__ import annotations

from torchmemlint.flow.ir.ops import CallMethod, Compare, GetAttribute, Op
from torchmemlint.flow.ir.places import Temp
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import torch_api

_LOOKS = torch_api.METADATA_ATTRIBUTES | torch_api.METADATA
_IDENTITY = frozenset({"is", "is not"})


@immutable(eq=False)
class Operation:
    """An operation with the tensors that it takes, under one name for operators, functions, methods and layers."""

    op: Op
    name: str  # "softmax", "sub", "getitem"; "add" of `add_`, too
    operands: tuple[Temp, ...]  # without keywords; of a method with its owner; of a layer: of the call
    keywords: tuple[tuple[str, Temp], ...] = ()
    qualified: str = ""  # of a function or layer
    layer: Operation | None = None  # what made the layer
    in_place: bool = False  # does it change its first operand?

    @property
    def dst(self) -> Temp:
        """Where its result is."""
        found: Temp = self.op.dst  # type: ignore[attr-defined]
        return found

    def argument(self, name: str, position: int) -> Temp | None:
        """The argument of this name or, among the operands, at this position."""
        for keyword, temp in self.keywords:
            if keyword == name:
                return temp
        return self.operands[position] if position < len(self.operands) else None

    def keyword(self, name: str) -> Temp | None:
        """The argument given by this keyword."""
        return self.argument(name, len(self.operands))


@immutable()
class Taking:
    """A place where a value is taken: by which operation (None: by something else), and as which operand."""

    by: Op
    temp: Temp
    operation: Operation | None = None
    index: int = 0  # among the operands; -1: by keyword


def looks(op: Op, temp: Temp) -> bool:
    """Does it ask for the shape or the like, or whether it is there at all?"""
    match op:
        case GetAttribute(name=name):
            return name in _LOOKS
        case CallMethod(base=base, name=name) if base == temp:
            return name in _LOOKS
        case Compare(operator=operator):
            return operator in _IDENTITY
    return False

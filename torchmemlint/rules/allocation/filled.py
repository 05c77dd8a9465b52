"""Tensors that are filled with one number as soon as they are made: `torch.full` makes them at once."""

from __future__ import annotations

import re

from torchmemlint.findings import Edit, Span
from torchmemlint.immutable import immutable
from torchmemlint.rules.arguments import WrittenCall
from torchmemlint.syntax import cst
from torchmemlint.syntax.text import text_of

_FACTORIES = frozenset({"empty", "ones", "zeros"})
_ZERO, _ONE = re.compile(r"0(\.0*)?"), re.compile(r"1(\.0*)?")
_WHOLE, _FRACTION = re.compile(r"-?\d+"), re.compile(r"-?(\d+\.\d*|\.\d+|\d+(\.\d*)?[eE][+-]?\d+)")
_INFINITE = re.compile(r"""-?(float\(.*\)|(torch|math|np|numpy)\.inf)""")


@immutable(eq=False)
class Filled:
    """A call of a factory, and the number that fills what it makes."""

    call: WrittenCall
    number: str
    is_typed: bool  # is the type of the numbers given, or that of an old constructor?

    def factory(self) -> str:
        """Return the factory that makes the same without filling: `zeros`, `ones`, `full`; "" without one."""
        for factory, number in (("zeros", _ZERO), ("ones", _ONE)):
            if number.fullmatch(self.number):
                return factory
        return "full" if self._value() and self._size() is not None else ""

    def edits(self, named: str) -> tuple[Edit, ...]:
        """Edits that give the factory its arguments, and these by name."""
        if self.factory() != "full":
            return self.call.adding(named)
        opening, closing = self._size() or ("", "")
        sizes = [one for one in self.call.node.args if one.keyword is None]
        first, last = self.call.piece.span(sizes[0]).start, self.call.piece.span(sizes[-1]).end
        begin = (Edit(Span(first, first), opening),) if opening else ()
        text = f"{closing}, {self._value()}"
        if len(sizes) == len(self.call.node.args):
            return (*begin, Edit(Span(last, last), f"{text}, {named}"))
        return (*begin, Edit(Span(last, last), text), *self.call.adding(named))

    def _value(self) -> str:
        """Return the number as `torch.full` takes it, which asks it for the type if none is given; "" if it cannot."""
        if self.is_typed or _FRACTION.fullmatch(self.number) or _INFINITE.fullmatch(self.number):
            return self.number
        return f"{self.number}.0" if _WHOLE.fullmatch(self.number) else ""

    def _size(self) -> tuple[str, str] | None:
        """Return what to write around the sizes, to make one argument of them; None if they may be one already."""
        sizes = [one.value for one in self.call.node.args if one.keyword is None]
        if "\n" in self.call.span.text(self.call.facts.source.rows):
            return None
        match sizes:
            case [cst.Tuple() | cst.List() | cst.Attribute(attr=cst.Name("shape"))]:
                return "", ""
            case [cst.Call(func=cst.Attribute(attr=cst.Name("size")), args=[])]:
                return "", ""
            case [cst.Integer() | cst.Call(func=cst.Name("len"))]:
                return "(", ",)"
            case [cst.Call(func=cst.Attribute(attr=cst.Name("size")), args=[_])]:
                return "(", ",)"
            case [_, _, *_]:
                return "(", ")"
        return None


def filled(call: WrittenCall, filling: cst.BaseExpression, *, typed: bool) -> Filled | None:
    """What `filling` does to the tensor that a call makes, if it fills that with one number and does no more.

    `typed`: is the factory an old constructor of tensors of one type?
    """
    name = call.callee.rpartition(".")[2]
    match filling:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=way)), args=given) if inner is call.node:
            numbers = [text_of(one.value) for one in given if one.keyword is None and not one.star]
            is_typed = typed or call.argument("dtype") is not None
            if len(numbers) == len(given) and (typed or name in _FACTORIES | {"Tensor"}):
                if way == "zero_" and not numbers:
                    return Filled(call, "0", is_typed)
                if way == "fill_" and len(numbers) == 1:
                    return Filled(call, numbers[0], is_typed)
    return None

"""What a function's text tells of sizes that the interpreter does not know: few numbers, or one per item of a batch.

Works on the standard parser's trees, and is asked only about what would be reported. A name counts for what all
assignments to it say; one that is bound in any other way is not known.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

import libcst as cst

from torchmemlint.flow.bindings import expression_of, module_level
from torchmemlint.flow.program import Function, Program
from torchmemlint.immutable import immutable
from torchmemlint.syntax.outline import dotted

_DEPTH = 6
_RANGES = frozenset({"range", "torch.arange", "numpy.arange"})
_SPACED = {"torch.linspace": "steps", "torch.logspace": "steps", "numpy.linspace": "num", "numpy.logspace": "num"}
_REDUCING = frozenset("amax amin argmax argmin max mean min norm prod std sum".split())  # along `dim`
_FILLING = frozenset("empty ones rand randn zeros".split())
_FIRST = 0  # the axis of a batch's items


@immutable()
class _Definition:
    """What a name is assigned: an expression, or an element of what it unpacks to (`index`, of `among`)."""

    value: ast.expr
    index: int | None = None
    among: int = 1


@immutable()
class _Axis:
    """One axis of a tensor, where that is known, or the length of a collection."""

    tensor: str | None = None  # dump of the expression
    index: int = 0
    cut: bool = False  # of a shape of which the last axes are cut off


class Sizes:
    """Asked about the expressions of one function, or of the module level."""

    def __init__(self, program: Program, function: Function | None) -> None:
        self._program = program
        self._roots = list(_roots(program, function))

    def at_most(self, size: cst.BaseExpression) -> int | None:
        """The greatest number that an expression may be; None where that is not known."""
        expression = expression_of(size)
        return self._number(expression, 0) if expression is not None else None

    def is_one_per_item(self, size: cst.BaseExpression) -> bool:
        """Is it the length of the first axis of a tensor with more of them, or that the author calls a batch's?"""
        expression = expression_of(size)
        if expression is None:
            return False
        if not isinstance(expression, ast.Name):
            return self._is_first_axis(expression, called="")
        found = self._definitions(expression.id)
        return bool(found) and all(self._is_batch(one, expression.id) for one in found)

    def axes_of_data(self, shape: Iterable[cst.BaseExpression]) -> int:
        """How many axes of tensors (or lengths of collections) a shape multiplies; all of one tensor count as two.

        Such a shape grows with the data, where one that is made of settings mostly does not. Axes of a tensor
        without its last one, and nothing in its place, count as one: a flag for each token is little beside the
        tokens' features.
        """
        expressions = [expression for size in shape if (expression := expression_of(size)) is not None]
        found = [axis for expression in expressions for axis in self._axes(expression, 0)]
        little = self._leave_out_features(found) and not any(map(self._has_another, expressions))
        return min(len(found), 1) if little else len(found)

    def _has_another(self, expression: ast.expr) -> bool:
        """Is there an axis of which it is neither known how long it is nor that it is the data's?"""
        match expression:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return any(map(self._has_another, parts))
            case ast.Starred(value=inner):
                return self._has_another(inner)
            case ast.BinOp(left=left, right=right):
                return self._has_another(left) or self._has_another(right)
        return not self._axes(expression, 0) and self._number(expression, 0) is None

    def _leave_out_features(self, axes: list[_Axis]) -> bool:
        """Are they different axes of one tensor that has another axis behind them?"""
        if axes and all(axis.cut for axis in axes) and len(axes) <= 2:
            return True
        tensors = {axis.tensor for axis in axes}
        tensor = tensors.pop() if len(tensors) == 1 else None
        places = {axis.index for axis in axes}
        return (
            tensor is not None
            and len(places) == len(axes)
            and min(places) >= 0
            and self._has_more_axes(tensor, max(places))
        )

    def _axes(self, expression: ast.expr, depth: int) -> list[_Axis]:
        if depth > _DEPTH:
            return []
        match expression:
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return [axis for one in elements for axis in self._axes(one, depth + 1)]
            case ast.Starred(value=inner):
                return self._axes(inner, depth + 1)
            case ast.BinOp(left=left, right=right):
                return self._axes(left, depth + 1) + self._axes(right, depth + 1)
            case ast.Name(id=name):
                return max((self._axes_of(one, depth + 1) for one in self._definitions(name)), default=[], key=len)
            case ast.Call(func=ast.Name(id="len")):
                return [_Axis()]
            case ast.Subscript(value=inner, slice=ast.Slice(lower=None, upper=ast.expr())):
                return [replace(axis, cut=True) for axis in self._axes(inner, depth + 1)]
            case ast.Subscript(value=inner, slice=ast.Slice()):
                return self._axes(inner, depth + 1)
            case ast.Subscript(value=inner) if _axis(expression) is None:
                return [_Axis()] if _whole_shape(inner) is not None else []
        axis = _axis(expression)
        if axis is not None:
            return [_Axis(ast.dump(axis[0]), axis[1])]
        tensor = _whole_shape(expression)
        if tensor is None:
            return []
        return [_Axis()] * (1 if self._is_one_number_per_item(tensor, depth + 1) else 2)

    def _is_one_number_per_item(self, tensor: ast.expr, depth: int) -> bool:
        """Was a tensor made along one axis of the data, or reduced along the others: `x.abs().max(dim=1)[0]`?"""
        if depth > _DEPTH:
            return False
        match tensor:
            case ast.Name(id=name):
                made = [one.value for one in self._definitions(name) if one.index is None]
                return any(self._is_one_number_per_item(value, depth + 1) for value in made)
            case ast.BinOp(left=ast.Constant(), right=inner) | ast.BinOp(left=inner, right=ast.Constant()):
                return self._is_one_number_per_item(inner, depth + 1)
            case ast.Subscript(value=inner, slice=ast.Slice() | ast.Constant(value=0)):
                return self._is_one_number_per_item(inner, depth + 1)
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _REDUCING:
                along = _argument(tensor, 1 if dotted(owner) == "torch" else 0, "dim")
                return isinstance(along, ast.Constant | ast.UnaryOp | ast.Tuple | ast.List)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), args=[shape]) if name in _FILLING:
                return len(self._axes(shape, depth + 1)) < 2
            case ast.Call(func=ast.Attribute(value=inner)):
                return self._is_one_number_per_item(inner, depth + 1)
        return False

    def _axes_of(self, one: _Definition, depth: int) -> list[_Axis]:
        if one.index is None:
            return self._axes(one.value, depth)
        tensor = _whole_shape(one.value)
        return [_Axis(ast.dump(tensor), one.index)] if tensor is not None else []

    def _is_batch(self, one: _Definition, name: str) -> bool:
        if one.index is None:
            return self._is_first_axis(one.value, called=name)
        return one.index == _FIRST and one.among > 1 and _whole_shape(one.value) is not None

    def _is_first_axis(self, expression: ast.expr, called: str) -> bool:
        axis = _axis(expression)
        if axis is None or axis[1] != _FIRST:
            return False
        return _says_batch(called) or self._has_more_axes(ast.dump(axis[0]), _FIRST)

    def _has_more_axes(self, tensor: str, last: int) -> bool:
        """Does the function ask for a later axis of a tensor, unpack its shape to more, or index more of its axes?"""
        for node in self._nodes():
            match node:
                case ast.Subscript(value=value, slice=ast.Tuple(elts=elements)) if ast.dump(value) == tensor:
                    if len(elements) > last + 1:
                        return True
                case ast.Assign(targets=[ast.Tuple(elts=elements)], value=value) if len(elements) > last + 1:
                    whole = _whole_shape(value)
                    if whole is not None and ast.dump(whole) == tensor:
                        return True
                case ast.Subscript() | ast.Call():
                    axis = _axis(node)
                    if axis is not None and axis[1] > last and ast.dump(axis[0]) == tensor:
                        return True
        return False

    def _number(self, expression: ast.expr, depth: int) -> int | None:
        match expression:
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return number
            case ast.Name(id=name) if depth < _DEPTH:
                return self._greatest(name, self._number, depth)
            case ast.Call(func=ast.Name(id="len"), args=[held], keywords=[]):
                return self._length(held, depth + 1)
        return None

    def _length(self, expression: ast.expr, depth: int) -> int | None:
        """How many elements something holds at most."""
        if depth > _DEPTH:
            return None
        match expression:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return None if any(isinstance(one, ast.Starred) for one in elements) else len(elements)
            case ast.Name(id=name):
                return self._greatest(name, self._length, depth)
            case ast.Call(func=ast.Attribute(value=inner, attr="tolist" | "numpy" | "cpu"), args=[]):
                return self._length(inner, depth + 1)
            case ast.Call(func=ast.Name(id="list" | "tuple" | "sorted"), args=[inner], keywords=[]):
                return self._length(inner, depth + 1)
            case ast.Call(func=function):
                path = dotted(function)
                qualified = self._program.qualify(path) if path else ""
                if qualified in _RANGES:
                    return _steps(expression)
                if qualified in _SPACED:
                    given = _argument(expression, 2, _SPACED[qualified])
                    return self._number(given, depth + 1) if given is not None else None
        return None

    def _greatest(self, name: str, ask: _Ask, depth: int) -> int | None:
        found = [ask(one.value, depth + 1) if one.index is None else None for one in self._definitions(name)]
        known = [number for number in found if number is not None]
        return max(known) if known and len(known) == len(found) else None

    def _definitions(self, name: str) -> list[_Definition]:
        """All that a name is assigned; nothing where it is bound in another way as well."""
        found: list[_Definition] = []
        stored = 0
        for node in self._nodes():
            match node:
                case ast.Assign(targets=targets, value=value):
                    found += [one for target in targets for one in _assigned(name, target, value)]
                case ast.AnnAssign(target=ast.Name(id=bound), value=ast.expr() as value) if bound == name:
                    found.append(_Definition(value))
                case ast.Name(id=bound, ctx=ast.Store() | ast.Del()) if bound == name:
                    stored += 1
                case ast.arg(arg=bound) if bound == name:
                    return []
        return found if stored == len(found) else []

    def _nodes(self) -> Iterator[ast.AST]:
        for root in self._roots:
            yield from ast.walk(root)


_Ask: TypeAlias = "Callable[[ast.expr, int], int | None]"


def _roots(program: Program, function: Function | None) -> Iterator[ast.AST]:
    if function is None:
        yield from module_level(program)
        return
    for one in (function, *function.parents()):
        if one.syntax is not None:
            yield one.syntax
            return


def _assigned(name: str, target: ast.expr, value: ast.expr) -> Iterator[_Definition]:
    match target:
        case ast.Name(id=bound) if bound == name:
            yield _Definition(value)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            plain = not any(isinstance(one, ast.Starred) for one in targets)
            for index, one in enumerate(targets):
                if not isinstance(one, ast.Name) or one.id != name:
                    continue
                match value:
                    case ast.Tuple(elts=values) | ast.List(elts=values) if plain and len(values) == len(targets):
                        yield _Definition(values[index])
                    case _:
                        yield _Definition(value, index, len(targets))


def _axis(expression: ast.expr) -> tuple[ast.expr, int] | None:
    """The tensor and the axis of `x.shape[1]`, `x.size(1)` or `x.size()[1]`."""
    match expression:
        case ast.Subscript(value=inner, slice=ast.Constant(value=int(axis))):
            tensor = _whole_shape(inner)
            return (tensor, axis) if tensor is not None else None
        case ast.Call(func=ast.Attribute(value=tensor, attr="size"), args=[ast.Constant(value=int(axis))], keywords=[]):
            return tensor, axis
    return None


def _whole_shape(expression: ast.expr) -> ast.expr | None:
    """The tensor of `x.shape` or `x.size()`."""
    match expression:
        case ast.Attribute(value=tensor, attr="shape"):
            return tensor
        case ast.Call(func=ast.Attribute(value=tensor, attr="size"), args=[], keywords=[]):
            return tensor
    return None


def _says_batch(name: str) -> bool:
    return "batch" in name.lower() or name.lower() in ("b", "bs", "bsz")


def _steps(call: ast.Call) -> int | None:
    """How many numbers a range of constants has."""
    if len(call.args) == 1 and not call.keywords:
        start, end, step = None, _argument(call, 0, ""), None
    else:
        start, end, step = _argument(call, 0, "start"), _argument(call, 1, "end", "stop"), _argument(call, 2, "step")
    numbers = [one.value if isinstance(one, ast.Constant) else None for one in (start, end, step)]
    first, last, width = (number if isinstance(number, int | float) else None for number in numbers)
    if last is None or (start is not None and first is None) or (step is not None and not width):
        return None
    return max(0, math.ceil((last - (first or 0)) / (width or 1)))


def _argument(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    """What a call gives for a parameter."""
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    if position < len(call.args):
        return call.args[position]
    return next((keyword.value for keyword in call.keywords if keyword.arg in names), None)

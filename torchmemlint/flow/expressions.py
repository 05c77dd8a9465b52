"""Expressions: what each kind of syntax evaluates to (calls and attributes have files of their own)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import libcst as cst

from torchmemlint.flow import calls, containers, type_tests
from torchmemlint.flow.graphs import proven, tensor_from, through
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.state import join_states
from torchmemlint.flow.values import (
    NUMBER,
    Constant,
    Container,
    Graph,
    Kind,
    LoopMark,
    Tensor,
    Unknown,
    Value,
    Via,
    join,
)
from torchmemlint.syntax.text import string_value


def name(it: Interpreter, node: cst.Name) -> Value:
    """A plain name."""
    value = it.lookup(node.value)
    return it.with_behaviour(value, node.value) if isinstance(value, Unknown) else value


def integer(it: Interpreter, node: cst.Integer) -> Value:
    """An integer literal."""
    try:
        return Constant(int(node.value, 0), True)
    except ValueError:
        return NUMBER


def floating(it: Interpreter, node: cst.Float) -> Value:
    """A floating-point literal."""
    try:
        return Constant(float(node.value), True)
    except ValueError:
        return NUMBER


def string(it: Interpreter, node: cst.SimpleString) -> Value:
    """A string literal."""
    with suppress(ValueError, SyntaxError):
        return Constant(string_value(node), True)
    return NUMBER


def concatenated_string(it: Interpreter, node: cst.ConcatenatedString) -> Value:
    """Adjacent string literals."""
    for part in (node.left, node.right):
        it.evaluate(part)
    return NUMBER


def formatted_string(it: Interpreter, node: cst.FormattedString) -> Value:
    """An f-string: what stands in it is read."""
    for part in node.parts:
        if type(part) is cst.FormattedStringExpression:
            it.evaluate(part.expression)
    first = node.parts[0] if node.parts else None
    if isinstance(first, cst.FormattedStringText) and first.value == "cuda:":
        return Constant("cuda", True)  # f"cuda:{rank}": an accelerator, whichever
    return NUMBER


def ellipsis(it: Interpreter, node: cst.Ellipsis) -> Value:
    """A literal whose value nobody asks about."""
    return NUMBER


def binary(it: Interpreter, node: cst.BinaryOperation) -> Value:
    """A binary operator."""
    left, right = it.evaluate(node.left), it.evaluate(node.right)
    return arithmetic(it, node, left, right, type(node.operator).__name__)


def arithmetic(it: Interpreter, node: cst.CSTNode, left: Value, right: Value, operator: str) -> Value:
    """The result of a binary operator."""
    if isinstance(left, Container) or isinstance(right, Container):
        if isinstance(left, Container) and isinstance(right, Container) and operator in ("Add", "BitOr"):
            return containers.concatenated(it, node, left, right)
        if isinstance(left, Container) and isinstance(right, Constant):
            return left  # [x] * 3
        if not isinstance(left, Tensor) and not isinstance(right, Tensor):
            return Unknown(it.deep_origins(left) | it.deep_origins(right))
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        made = it.site(node)
        result = tensor_from((left, right), producer=operator, made=made)
        if result.carried:
            result = replace(result, carried=through(result, Via.ARITHMETIC))
        kinds = {v.kind for v in (left, right) if isinstance(v, Tensor)}
        if kinds == {Kind.DISCRETE} and not isinstance(left, Unknown) and not isinstance(right, Unknown):
            discrete = operator not in ("Divide", "Power") and not any(
                isinstance(v, Constant) and isinstance(v.value, float) for v in (left, right)
            )
            result = replace(result, graph=Graph.NONE, kind=Kind.DISCRETE if discrete else Kind.UNKNOWN)
        if not (isinstance(left, Tensor) and left.certain) and not (isinstance(right, Tensor) and right.certain):
            result = replace(result, certain=False)
        return proven(it, result, made)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _constant_arithmetic(left, right, operator)
    if isinstance(left, Constant):
        return replace(right, path="", part_of=None) if isinstance(right, Unknown) else Unknown()
    if isinstance(right, Constant):
        return replace(left, path="", part_of=None) if isinstance(left, Unknown) else Unknown()
    place = it.origin(node)
    proof = it.proved(place.site)
    if proof is None:
        return Unknown(it.deep_origins(left) | it.deep_origins(right), place)
    for term in (left, right) if operator in ("Add", "Subtract") else ():
        it.prove_part(term, proof)
    return containers.proved_tensor(it, place, Unknown(it.deep_origins(left) | it.deep_origins(right)))


def _constant_arithmetic(left: Constant, right: Constant, operator: str) -> Value:
    if left.known and right.known and operator in _FOLDED:
        with suppress(TypeError, ZeroDivisionError, OverflowError, ValueError):
            result = _FOLDED[operator](left.value, right.value)
            if (isinstance(result, int | float) and abs(result) < 1e18) or (
                isinstance(result, str) and len(result) < 200
            ):
                return Constant(result, True)
    return NUMBER


_FOLDED: dict[str, Callable] = {  # type: ignore[type-arg]
    "Add": lambda a, b: a + b,
    "Subtract": lambda a, b: a - b,
    "Multiply": lambda a, b: a * b,
    "Divide": lambda a, b: a / b,
    "FloorDivide": lambda a, b: a // b,
    "Modulo": lambda a, b: a % b,
}


def unary(it: Interpreter, node: cst.UnaryOperation) -> Value:
    """A unary operator."""
    value = it.evaluate(node.expression)
    if type(node.operator) is cst.Not:
        if isinstance(value, Constant) and value.known:
            return Constant(not value.value, True)
        return NUMBER
    if isinstance(value, Tensor):
        return replace(
            tensor_from((value,), producer="unary", made=it.site(node)),
            kind=value.kind,
            certain=value.certain,
        )
    if isinstance(value, Constant):
        if value.known and isinstance(node.operator, cst.Minus) and isinstance(value.value, int | float):
            return Constant(-value.value, True)
        return NUMBER
    return value if isinstance(value, Unknown) else Unknown()


def comparison(it: Interpreter, node: cst.Comparison) -> Value:
    """A comparison: its operands are read, its result carries no graph."""
    operators = [type(target.operator) for target in node.comparisons]
    values = [it.evaluate(node.left), *(it.evaluate(target.comparator) for target in node.comparisons)]
    if not _LOOKING.isdisjoint(operators):
        return NUMBER
    if any(isinstance(v, Tensor) for v in values):
        return Tensor(Graph.NONE, kind=Kind.DISCRETE, producer="comparison", made=it.site(node))
    if any(isinstance(v, Unknown) for v in values):
        return Unknown()
    return NUMBER


_IDENTITY = frozenset({cst.Is, cst.IsNot})
_LOOKING = _IDENTITY | {cst.In, cst.NotIn}  # `isinstance` is slow on these classes where the answer is no


def boolean(it: Interpreter, node: cst.BooleanOperation) -> Value:
    """`and` and `or`: either operand."""
    left = it.evaluate(node.left)
    before = it.state.copy()
    right = it.evaluate(node.right)
    it.state.adopt(join_states(before, it.state))
    return join(left, right)


def conditional(it: Interpreter, node: cst.IfExp) -> Value:
    """`a if test else b`: either value."""
    it.evaluate(node.test)
    before = it.state.copy()
    first = it.evaluate(node.body)
    after = it.state.copy()
    it.state.adopt(before)
    second = it.evaluate(node.orelse)
    it.state.adopt(join_states(after, it.state))
    if type_tests.is_number(node.test, True, node.body):
        first = NUMBER
    if type_tests.is_number(node.test, False, node.orelse):
        second = NUMBER
    return join(first, second)


def tuple_or_list(it: Interpreter, node: cst.Tuple | cst.List | cst.Set) -> Value:
    """A tuple, list or set display."""
    kind = {cst.Tuple: "tuple", cst.List: "list", cst.Set: "set"}[type(node)]
    values: list[tuple[cst.BaseExpression, Value]] = []
    starred = False
    for element in node.elements:
        value = it.evaluate(element.value)
        if type(element) is cst.StarredElement:  # `isinstance` is slow on these classes where the answer is no
            starred = True
            value = element_of(it, value, element.value)
        values.append((element.value, value))
    return containers.literal(it, node, kind, values, starred)


def dictionary(it: Interpreter, node: cst.Dict) -> Value:
    """A dict display."""
    pairs: list[tuple[str, cst.BaseExpression, Value]] = []
    unknown = False
    merged: list[Value] = []
    for element in node.elements:
        value = it.evaluate(element.value)
        if isinstance(element, cst.DictElement):
            key = it.evaluate(element.key)
            name = str(key.value) if isinstance(key, Constant) and key.known else "*"
            pairs.append((name, element.value, value))
        else:
            merged.append(value)
            unknown = unknown or not isinstance(value, Container)
    return containers.dictionary(it, node, pairs, merged, unknown)


def comprehension(it: Interpreter, node: cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp) -> Value:
    """A comprehension: a loop that collects into a fresh container."""
    outer = dict(it.state.vars)
    mark = LoopMark(node, site=it.site(node))
    loops = it.frame.loops
    kind = {cst.ListComp: "list", cst.SetComp: "set", cst.GeneratorExp: "generator", cst.DictComp: "dict"}[type(node)]
    container = containers.fresh(it, node, kind)
    it.frame.loops = (*loops, mark)
    try:
        _generators(it, node.for_in)
        if isinstance(node, cst.DictComp):
            it.evaluate(node.key)
            element_node = node.value
        else:
            element_node = node.elt
        value = it.evaluate(element_node)
        if kind == "generator":
            it.frame.loops = loops  # consumed as it is made: it holds one element at a time
        containers.put(it, container, element_node, value, how="comprehension", site_node=node, text=kind)
    finally:
        it.frame.loops = loops
        it.state.vars = outer
    return container


def _generators(it: Interpreter, comp: cst.CompFor | None) -> None:
    from torchmemlint.flow.statements import assign

    while comp is not None:
        iterable = it.evaluate(comp.iter)
        element = element_of(it, iterable, comp.iter)
        assign(it, comp.target, element, comp.iter)
        for condition in comp.ifs:
            it.evaluate(condition.test)
        comp = comp.inner_for_in


def element_of(it: Interpreter, value: Value, node: cst.BaseExpression) -> Value:
    """What iterating over a value yields."""
    from torchmemlint.flow import iteration

    return iteration.element_of(it, value, node)


def subscript(it: Interpreter, node: cst.Subscript) -> Value:
    """`owner[key]`."""
    owner = it.evaluate(node.value)
    keys: list[Value | None] = []
    for element in node.slice:
        if type(element.slice) is cst.Index:
            key = it.evaluate(element.slice.value)
            keys.append(key)
        elif isinstance(element.slice, cst.Slice):
            for bound in (element.slice.lower, element.slice.upper, element.slice.step):
                if bound is not None:
                    it.evaluate(bound)
            keys.append(None)
    return containers.subscript(it, node, owner, keys)


def lambda_(it: Interpreter, node: cst.Lambda) -> Value:
    """A lambda."""
    return calls.lambda_value(it, node)


def await_(it: Interpreter, node: cst.Await) -> Value:
    """`await`: the awaited value."""
    return it.evaluate(node.expression)


def yield_(it: Interpreter, node: cst.Yield) -> Value:
    """`yield`: taken down for whoever iterates."""
    if it.yield_modes:
        it.yield_modes[-1].append(it.state.mode)
    if node.value is None:
        return Unknown()
    if isinstance(node.value, cst.From):
        value = it.evaluate(node.value.item)
        it.frame.yields.append(element_of(it, value, node.value.item))
    else:
        value = it.evaluate(node.value)
        it.frame.yields.append(value)
    return Unknown()


def named(it: Interpreter, node: cst.NamedExpr) -> Value:
    """`name := value`."""
    from torchmemlint.flow.statements import assign

    value = it.evaluate(node.value)
    assign(it, node.target, value, node.value)
    return value


def starred(it: Interpreter, node: cst.StarredElement) -> Value:
    """`*value` in a display."""
    return it.evaluate(node.value)

"""What tests say: about the names in them, and which parameters they depend on."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .building import Builder
from .conditions import collect_tested
from .control import Narrowing
from .places import Name

_TENSOR_ATTRIBUTES = frozenset({"detach", "item", "backward", "grad_fn"})


def narrowings(b: Builder, test: ast.expr) -> tuple[Narrowing, ...]:
    """What holds in the branches of a test."""
    reader = _READERS.get(test.__class__)
    return reader(b, test) if reader is not None else ()


def lacking(found: tuple[Narrowing, ...], test: ast.expr, value: ast.expr, taken: bool) -> tuple[str, ...]:
    """What the value of a branch is not, as its test has asked of the same expression."""
    kinds = [n.kind for n in found if n.name is None and (n.in_then if taken else n.in_orelse) and n.holds is not taken]
    if not kinds:
        return ()
    while isinstance(test, ast.UnaryOp):
        test = test.operand
    return tuple(kinds) if isinstance(test, ast.Call) and ast.dump(test.args[0]) == ast.dump(value) else ()


def _place_of(b: Builder, node: ast.expr) -> tuple[Name, str | int | None] | None:
    """The name that an expression is, or the name and the key of `x.key` and `x["key"]`; None for others."""
    if isinstance(node, ast.Name):
        return b.names[node.id], None
    if isinstance(node, ast.NamedExpr):
        return b.names[node.target.id], None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return b.names[node.value.id], node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant):
        key = node.slice.value
        return (b.names[node.value.id], key) if isinstance(key, str | int) else None
    return None


def _truth(b: Builder, test: ast.expr) -> tuple[Narrowing, ...]:
    """`if x:` where x is something, but not the other way round: zero is no nothing."""
    place = _place_of(b, test)
    return (Narrowing(*place, "none", False, True, False),) if place is not None else ()


def _call(b: Builder, test: ast.Call) -> tuple[Narrowing, ...]:
    if not test.args:
        return ()
    place: tuple[Name | None, str | int | None] = _place_of(b, test.args[0]) or (None, None)
    function = _last_part(test.func)
    if function == "is_tensor":
        return (Narrowing(*place, "tensor", True),)
    if len(test.args) == 2:
        other = test.args[1]
        if function == "isinstance":
            classes = [_last_part(kind) for kind in _classes(other)]
            if _NUMBERS.issuperset(classes):
                return (_no_tensor(place),)
            kinds = [_KINDS.get(name) for name in classes]
            alone = len(set(kinds)) == 1
            found = tuple([Narrowing(*place, kind, True, alone, True) for kind in dict.fromkeys(kinds) if kind])
            is_parameter = set(classes) == {"Parameter"}
            return (*found, Narrowing(*place, "module", False, True, False)) if is_parameter else found
        elif function == "hasattr" and isinstance(other, ast.Constant) and other.value in _TENSOR_ATTRIBUTES:
            return (Narrowing(*place, "tensor", True),)
    return ()


_KINDS = {"Tensor": "tensor", "Variable": "tensor", "Module": "module"}  # each tensor is a Variable since torch 0.4
_NUMBERS = frozenset("bool complex float int ndarray str Integral Number Real".split())  # and texts: no tensors


def _last_part(node: ast.expr) -> str:
    """`Tensor` of `torch.Tensor`."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _classes(node: ast.expr) -> list[ast.expr]:
    """The second argument of isinstance, one by one."""
    if isinstance(node, ast.Tuple):
        return node.elts
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_classes(node.left), *_classes(node.right)]
    return [node]


def _comparison(b: Builder, test: ast.Compare) -> tuple[Narrowing, ...]:
    """`x is None`, `type(x) == torch.Tensor`, and their opposites."""
    if len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Is, ast.Eq, ast.IsNot, ast.NotEq)):
        return ()
    found = _if_same(b, test.left, test.comparators[0])
    return found if isinstance(test.ops[0], (ast.Is, ast.Eq)) else _negated(found)


def _if_same(b: Builder, compared: ast.expr, other: ast.expr) -> tuple[Narrowing, ...]:
    """What `x is None` and `type(x) is other` say."""
    if isinstance(other, ast.Constant) and other.value is None:
        place = _place_of(b, compared)
        return (Narrowing(*place, "none", True),) if place is not None else ()
    if not isinstance(compared, ast.Call) or _last_part(compared.func) != "type" or len(compared.args) != 1:
        return ()
    place, name = _place_of(b, compared.args[0]), _last_part(other)
    if place is None:
        return ()
    if name in _NUMBERS:
        return (_no_tensor(place),)
    return (Narrowing(*place, "tensor", True),) if name == "Tensor" else ()


def _no_tensor(place: tuple[Name | None, str | int | None]) -> Narrowing:
    """No tensor in the first branch, and nothing is said of the second."""
    return Narrowing(*place, "tensor", False, True, False)


def _negation(b: Builder, test: ast.UnaryOp) -> tuple[Narrowing, ...]:
    if not isinstance(test.op, ast.Not):
        return ()
    return _negated(narrowings(b, test.operand))


def _negated(found: tuple[Narrowing, ...]) -> tuple[Narrowing, ...]:
    return tuple([Narrowing(n.name, n.key, n.kind, not n.holds, n.in_orelse, n.in_then) for n in found])


def _several(b: Builder, test: ast.BoolOp) -> tuple[Narrowing, ...]:
    """All that `and` joins holds where it holds; all that `or` joins is false where it is false."""
    both = isinstance(test.op, ast.And)
    found = [narrowing for value in test.values for narrowing in narrowings(b, value)]
    if both:
        return tuple([Narrowing(n.name, n.key, n.kind, n.holds, True, False) for n in found if n.in_then])
    return tuple([Narrowing(n.name, n.key, n.kind, n.holds, False, True) for n in found if n.in_orelse])


_READERS: dict[type[ast.AST], Callable[[Builder, Any], tuple[Narrowing, ...]]] = {
    ast.Name: _truth,
    ast.Attribute: _truth,
    ast.Subscript: _truth,
    ast.NamedExpr: _truth,
    ast.Call: _call,
    ast.Compare: _comparison,
    ast.UnaryOp: _negation,
    ast.BoolOp: _several,
}


def mark_tested(b: Builder, test: ast.expr) -> None:
    """Note the names that a test depends on directly."""
    if test.__class__ is ast.Name:
        b.frame.tested.add(test.id)
    else:
        collect_tested(test, b.frame.tested)


def mark_arguments(b: Builder, node: ast.Call) -> None:
    """What a context is told is as good as a test."""
    for argument in node.args:
        mark_tested(b, argument)
    for keyword in node.keywords:
        mark_tested(b, keyword.value)

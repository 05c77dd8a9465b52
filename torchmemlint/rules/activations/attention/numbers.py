"""Is the factor that scores are scaled with a number, or a tensor?

Only a number can be the fused function's `scale`. A learned temperature cannot, and a tensor may as well be a mask.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable

from torchmemlint.flow.program import Program
from torchmemlint.rules.activations.attention.operations import Assigned, Operations
from torchmemlint.rules.activations.attention.stages import Definition, Names
from torchmemlint.syntax.outline import dotted

_DEPTH = 6
_NUMBERS = frozenset({"float", "int", "len", "min", "max", "round", "abs", "pow", "sum"})
_ARITHMETIC = frozenset({"sqrt", "rsqrt", "pow"})


class Factor(enum.Enum):
    """What a factor is."""

    NUMBER = "number"
    TENSOR = "tensor"  # a constant one: torch.sqrt(torch.tensor(64.0))
    LEARNED = "learned"
    UNKNOWN = "unknown"


def factor(node: ast.expr, names: Names, operations: Operations, function: ast.AST, depth: int = 0) -> Factor:
    """What an expression in a function is."""

    def of(part: ast.expr) -> Factor:
        return factor(part, names, operations, function, depth + 1)

    if depth > _DEPTH:
        return Factor.UNKNOWN
    match node:
        case ast.Constant(value=int() | float()):
            return Factor.NUMBER
        case ast.UnaryOp(operand=operand):
            return of(operand)
        case ast.BinOp(left=left, op=op, right=right):
            both = of(left), of(right)
            if isinstance(op, ast.Pow) and both[1] is Factor.NUMBER and both[0] is Factor.UNKNOWN:
                return Factor.NUMBER if isinstance(left, ast.Name | ast.Attribute) else Factor.UNKNOWN
            if isinstance(op, ast.FloorDiv) and Factor.UNKNOWN in both and isinstance(left, ast.Name | ast.Attribute):
                return Factor.NUMBER  # width // heads
            return _both(*both)
        case ast.BoolOp(values=values):
            kinds = {of(value) for value in values}
            return (
                Factor.NUMBER if Factor.NUMBER in kinds and kinds <= {Factor.NUMBER, Factor.UNKNOWN} else Factor.UNKNOWN
            )
        case ast.IfExp(body=body, orelse=orelse):
            kinds = {of(body), of(orelse)}
            return (
                Factor.NUMBER if Factor.NUMBER in kinds and kinds <= {Factor.NUMBER, Factor.UNKNOWN} else Factor.UNKNOWN
            )
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return Factor.NUMBER
        case ast.Call():
            return _of_call(node, of, operations.program)
        case ast.Name(id=name):
            definition = names.get(name)
            if definition is not None:
                return _of_definition(
                    definition.value,
                    definition.index,
                    lambda part: factor(part, definition.before, operations, function, depth + 1),
                )
            return _of_parameter(name, function) if name not in names else Factor.UNKNOWN
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return _of_attribute(operations.owner.attribute(name), operations, depth)
    return Factor.UNKNOWN


def _both(left: Factor, right: Factor) -> Factor:
    for kind in (Factor.LEARNED, Factor.UNKNOWN, Factor.TENSOR):
        if kind in (left, right):
            return kind
    return Factor.NUMBER


def _of_call(call: ast.Call, of: Callable[[ast.expr], Factor], program: Program) -> Factor:
    path = dotted(call.func)
    name = program.qualify(path) if path else ""
    last = call.func.attr if isinstance(call.func, ast.Attribute) else name
    if name in _NUMBERS or name.startswith(("math.", "numpy.")):
        return Factor.NUMBER
    if last in ("size", "dim", "numel", "item"):
        return Factor.NUMBER
    if name.endswith(("nn.Parameter", "nn.parameter.Parameter")):
        return Factor.LEARNED
    inner = [of(item) for item in call.args]
    if isinstance(call.func, ast.Attribute) and not name.startswith("torch."):
        inner.append(of(call.func.value))  # a method: .to(device), .exp()
        return (
            Factor.LEARNED if Factor.LEARNED in inner else inner[-1] if inner[-1] is Factor.TENSOR else Factor.UNKNOWN
        )
    if name.startswith("torch."):
        return Factor.LEARNED if Factor.LEARNED in inner else Factor.TENSOR if _constant(call) else Factor.UNKNOWN
    return Factor.UNKNOWN


def _constant(call: ast.Call) -> bool:
    """Is a tensor made of numbers only: `torch.sqrt(torch.FloatTensor([d]))`?"""
    name = dotted(call.func).rpartition(".")[2]
    if name in ("tensor", "FloatTensor", "Tensor", "as_tensor"):
        return True
    if name in _ARITHMETIC and call.args:
        inner = call.args[0]
        while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and not dotted(inner.func):
            inner = inner.func.value  # .float(), .to(device)
        return isinstance(inner, ast.Call) and _constant(inner)
    return False


def _of_definition(value: ast.expr, index: int | None, of: Callable[[ast.expr], Factor]) -> Factor:
    if index is None:
        return of(value)
    match value:
        case ast.Tuple(elts=elements) if index < len(elements):
            return of(elements[index])
        case ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size")):
            return Factor.NUMBER
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return Factor.NUMBER
    return Factor.UNKNOWN


def _of_parameter(name: str, function: ast.AST) -> Factor:
    """A parameter of the function: its annotation or default tells."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return Factor.UNKNOWN
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [*[None] * (len(positional) - len(given.defaults)), *given.defaults]
    for parameter, default in zip([*positional, *given.kwonlyargs], [*defaults, *given.kw_defaults], strict=True):
        if parameter.arg != name:
            continue
        annotation = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
        number = isinstance(default, ast.Constant) and isinstance(default.value, int | float)
        if annotation:
            words = set(annotation.replace("[", " ").replace("]", " ").replace("|", " ").replace(",", " ").split())
            plain = words <= {"int", "float", "None", "Optional", "Union", "typing.Optional"} and words & {
                "int",
                "float",
            }
            return Factor.NUMBER if plain else Factor.UNKNOWN
        return Factor.NUMBER if number and not isinstance(default.value, bool) else Factor.UNKNOWN  # type: ignore[union-attr]
    return Factor.UNKNOWN


def _of_attribute(assigned: list[Assigned | None], operations: Operations, depth: int) -> Factor:
    kinds: set[Factor] = set()
    for one in assigned:
        if one is None:
            return Factor.UNKNOWN
        names: Names = {}
        for node in ast.walk(one.method):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                names[node.targets[0].id] = Definition(node.value, None, 1, dict(names))
        inner = Operations(one.program, operations.owner)
        if isinstance(one.value, ast.Constant) and one.value.value is None:
            continue
        kinds.add(factor(one.value, names, inner, one.method, depth + 1))
    if len(kinds) == 1:
        return kinds.pop()
    return Factor.LEARNED if Factor.LEARNED in kinds else Factor.UNKNOWN

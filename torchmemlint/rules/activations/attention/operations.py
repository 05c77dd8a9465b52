"""Which operation a call is, as far as attention is made of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.flow.program import ClassInfo, Program
from torchmemlint.immutable import immutable
from torchmemlint.rules.activations.attention.stages import Names
from torchmemlint.syntax.outline import dotted, walk

_SOFTMAX = frozenset({"torch.softmax", "torch.nn.functional.softmax", "torch.special.softmax"})
_DROPOUT = frozenset({"torch.dropout", "torch.nn.functional.dropout"})
_PRODUCTS = {"torch.matmul": "matmul", "torch.bmm": "bmm", "torch.baddbmm": "baddbmm", "torch.einsum": "einsum"}
_METHODS = frozenset({"matmul", "bmm", "baddbmm"})


@immutable()
class Assigned:
    """What an attribute of an object is given somewhere in its class."""

    value: ast.expr
    program: Program
    method: ast.FunctionDef | ast.AsyncFunctionDef


class Owner:
    """The class that a function belongs to, asked for what its attributes are given."""

    def __init__(self, program: Program, cls: ClassInfo | None) -> None:
        self.program = program
        self.cls = cls
        self._assigned: dict[str, list[Assigned | None]] | None = None

    def attribute(self, name: str) -> list[Assigned | None]:
        """All that `self.name` is given; None among them where that is not seen."""
        if self._assigned is None:
            self._assigned = {}
            for attribute, assigned in self._all():
                self._assigned.setdefault(attribute, []).append(assigned)
        return self._assigned.get(name, [])

    def _all(self) -> Iterator[tuple[str, Assigned | None]]:
        for cls in self.cls.ancestors() if self.cls is not None else ():
            for method in cls.methods:
                for node in walk(method):
                    match node:
                        case ast.Assign(targets=targets, value=value):
                            for target in targets:
                                for item in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                                    name = _own(item)
                                    if name:
                                        whole = item is target
                                        yield name, Assigned(value, cls.program, method) if whole else None
                        case ast.AnnAssign(target=target, value=ast.expr() as value) if name := _own(target):
                            yield name, Assigned(value, cls.program, method)
                        case ast.AugAssign(target=target) if name := _own(target):
                            yield name, None
                        case ast.Call(func=ast.Attribute(attr="register_buffer" | "register_parameter"), args=args):
                            if args and isinstance(args[0], ast.Constant):
                                yield str(args[0].value), None


def _own(target: ast.expr) -> str:
    """The attribute of `self` that is assigned."""
    owner, _, name = dotted(target).rpartition(".")
    return name if owner == "self" else ""


@immutable()
class SoftmaxCall:
    """A softmax of something."""

    operand: ast.expr
    dim: ast.expr | None
    dtype: ast.expr | None


@immutable()
class DropoutCall:
    """A dropout of something."""

    operand: ast.expr
    p: ast.expr | None
    training: ast.expr | None
    module: str  # source text of the module, "" of the function
    sure: bool  # is the module a dropout for certain, and not on some ways an identity?


@immutable()
class ProductCall:
    """A product of two tensors (plus `beta` times a third)."""

    spelling: str
    left: ast.expr
    right: ast.expr
    equation: str = ""
    added: ast.expr | None = None
    alpha: ast.expr | None = None


class Operations:
    """Calls, told by what names are imported from and what attributes are made of."""

    def __init__(self, program: Program, owner: Owner) -> None:
        self.program = program
        self.owner = owner

    def qualified(self, function: ast.expr) -> str:
        """The qualified name of what is called, "" of a method of a value."""
        path = dotted(function)
        return self.program.qualify(path) if path else ""

    def softmax(self, call: ast.Call, names: Names) -> SoftmaxCall | None:
        """`F.softmax(x, dim=-1)`, `x.softmax(-1)`, `self.softmax(x)`, `nn.Softmax(-1)(x)`."""
        name = self.qualified(call.func)
        if name in _SOFTMAX and call.args:
            return SoftmaxCall(call.args[0], argument(call, "dim", 1), argument(call, "dtype"))
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "softmax"
            and not dotted(call.func).startswith("self.softmax")
        ):
            return SoftmaxCall(call.func.value, argument(call, "dim", 0), argument(call, "dtype"))
        if len(call.args) != 1 or call.keywords:
            return None
        built = self.modules(call.func, names)
        if built and all(program.qualify(dotted(made.func)) == "torch.nn.Softmax" for made, program in built):
            dims = [argument(made, "dim", 0) for made, _ in built]
            if len({ast.dump(dim) if dim is not None else "" for dim in dims}) == 1:
                return SoftmaxCall(call.args[0], dims[0], None)
        return None

    def dropout(self, call: ast.Call, names: Names) -> DropoutCall | None:
        """`F.dropout(x, p, self.training)`, `self.dropout(x)`."""
        if self.qualified(call.func) in _DROPOUT and call.args:
            return DropoutCall(call.args[0], argument(call, "p", 1), argument(call, "training", 2), "", True)
        if len(call.args) != 1 or call.keywords:
            return None
        built = self.modules(call.func, names)
        kinds = {program.qualify(dotted(made.func)) for made, program in built}
        if kinds and kinds <= {"torch.nn.Dropout", "torch.nn.Identity"}:
            return DropoutCall(call.args[0], None, None, ast.unparse(call.func), kinds == {"torch.nn.Dropout"})
        return None

    def product(self, call: ast.Call) -> ProductCall | None:
        """`torch.matmul(a, b)`, `a.bmm(b)`, `torch.einsum("bid,bjd->bij", a, b)`, `torch.baddbmm(m, a, b)`."""
        if any(isinstance(item, ast.Starred) for item in call.args):
            return None
        given = list(call.args)
        spelling = _PRODUCTS.get(self.qualified(call.func), "")
        if not spelling and isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
            spelling = call.func.attr
            given.insert(0, call.func.value)
        if spelling == "einsum":
            match given:
                case [ast.Constant(value=str(equation)), left, right] if not call.keywords:
                    return ProductCall(spelling, left, right, equation.replace(" ", ""))
        elif spelling == "baddbmm" and len(given) == 3:
            return _added(call, given)
        elif spelling and len(given) == 2 and not call.keywords:
            return ProductCall(spelling, given[0], given[1])
        return None

    def modules(self, callee: ast.expr, names: Names) -> list[tuple[ast.Call, Program]]:
        """The calls that build a module that is called; [] where one is not seen."""
        if isinstance(callee, ast.Call):
            return [(callee, self.program)]
        path = dotted(callee)
        if "." not in path:
            definition = names.get(path)
            if definition is not None and definition.index is None:
                return _calls(definition.value, self.program) or []
            return []
        owner, _, name = path.rpartition(".")
        if owner != "self":
            return []
        found: list[tuple[ast.Call, Program]] = []
        for assigned in self.owner.attribute(name):
            built = _calls(assigned.value, assigned.program) if assigned is not None else None
            if built is None:
                return []
            found += built
        return found


def _added(call: ast.Call, given: list[ast.expr]) -> ProductCall | None:
    """`torch.baddbmm(input, a, b, beta=0, alpha=scale)`; None with another beta than 0 and 1."""
    beta = argument(call, "beta")
    if beta is not None and not (isinstance(beta, ast.Constant) and beta.value in (0, 1)):
        return None
    unused = isinstance(beta, ast.Constant) and beta.value == 0
    added = None if unused else given[0]
    return ProductCall("baddbmm", given[1], given[2], "", added, argument(call, "alpha"))


def _calls(value: ast.expr, program: Program) -> list[tuple[ast.Call, Program]] | None:
    """The calls that an expression may be the result of; None where it may be something else."""
    match value:
        case ast.Call():
            return [(value, program)]
        case ast.IfExp(body=body, orelse=orelse):
            first, second = _calls(body, program), _calls(orelse, program)
            return first + second if first is not None and second is not None else None
    return None


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """The expression given for an argument, by keyword or position."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is None or position >= len(call.args):
        return None
    starred = any(isinstance(item, ast.Starred) for item in call.args[: position + 1])
    return None if starred else call.args[position]


def integer(node: ast.expr | None) -> int | None:
    """The value of an integer literal, negative ones included."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
    return None

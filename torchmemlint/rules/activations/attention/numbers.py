"""Is the factor that scores are scaled with a number, or a tensor?

Only a number can be the fused function's `scale`. A learned temperature cannot, and a tensor may as well be a mask.
"""

from __future__ import annotations

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.places import Scope, SliceKey, Temp

_DEPTH = 6
_NUMBERS = frozenset({"float", "int", "len", "min", "max", "round", "abs", "pow", "sum"})
_MAKING = frozenset({"tensor", "FloatTensor", "Tensor", "as_tensor"})
_FILLED = frozenset({"zeros", "ones", "rand", "randn", "empty"})
_SIZES = frozenset({"size", "dim", "numel", "item"})


def is_number(formula: Formula, temp: Temp, depth: int = 0) -> bool | None:
    """Whether a factor is a number, or else a tensor made of numbers alone; None: it may be anything."""
    made = formula.sources(temp) if depth <= _DEPTH else []
    kinds = {_kind(formula, op, depth + 1) for op in made}
    if len(kinds) == 1:
        return kinds.pop()
    return True if kinds == {True, None} and not any(_is_of_torch(formula, op) for op in made) else None


def is_gate(formula: Formula, temp: Temp) -> bool:
    """Has a factor one entry along its last axis, so that it is the same for all weights of a query?

    It may be a parameter of the receiver, or what is computed and given that axis.
    """
    found = formula.stored(temp)
    return all(_has_one_entry(one, src) for one, src in found) if found else _ends_with_one(formula, temp)


def _ends_with_one(formula: Formula, temp: Temp) -> bool:
    """`g.unsqueeze(-1)`, `g[..., None]`, `g.view(n, 1)`: the last axis was added."""
    match formula.made(temp):
        case ops.CallMethod(name="unsqueeze", arguments=[axis]):
            return formula.integer(axis.temp) == -1
        case ops.CallMethod(name="view" | "reshape", arguments=[_, *_, last]):
            return formula.integer(last.temp) == 1
        case ops.GetItem(key=SliceKey(layout=layout)):
            return layout[-1:] == "+"
    return False


def _has_one_entry(formula: Formula, src: Temp) -> bool:
    parameter = formula.of(src)
    if parameter is None or parameter.qualified != "torch.nn.Parameter":
        return False
    made = formula.of(parameter.argument("data", 0))
    if made is None or made.qualified.rpartition(".")[2] not in _FILLED or not made.operands:
        return False
    sizes = list(made.operands)
    whole = formula.made(sizes[0]) if len(sizes) == 1 else None
    if isinstance(whole, ops.Make):
        sizes = [entry.temp for entry in whole.entries]
    return not sizes or formula.integer(sizes[-1]) == 1


def _is_of_torch(formula: Formula, op: ops.Op) -> bool:
    operation = formula.read(op)
    return operation is not None and bool(operation.qualified)


def _kind(formula: Formula, op: ops.Op, depth: int) -> bool | None:
    match op:
        case ops.Constant(value=int() | float()) | ops.Unpack() | ops.GetItem() if _is_size(formula, op):
            return True
        case ops.Operate(operator="-", operands=(operand,)):
            return is_number(formula, operand, depth)
        case ops.Operate(operator=operator, operands=(left, right)):
            first, second = is_number(formula, left, depth), is_number(formula, right, depth)
            of_size = operator in ("**", "//") and first is None and second is not False
            if of_size and isinstance(formula.made(left), ops.Load | ops.GetAttribute):  # `width // heads`
                return True if operator == "//" or second else None
            return None if None in (first, second) else first and second
        case ops.Choose(operands=operands):
            kinds = {is_number(formula, operand, depth) for operand in operands}
            return True if True in kinds and False not in kinds else None
        case ops.Call() | ops.CallMethod():
            return _of_call(formula, op, depth)
        case ops.Load(name=name):
            function = formula.function
            found = formula.beside.constant(name.text) if name.scope is Scope.GLOBAL else []
            annotations = {p.name: p.annotation for p in function.parameters}
            if name.text in annotations:
                if annotations[name.text] in ("int", "float"):
                    return True
                found = formula.beside.default(function, name.text) if not annotations[name.text] else []
            return _of_all(found, depth)
        case ops.GetAttribute(dst=dst):
            return _of_all(formula.stored(dst), depth)
    return None


def _of_all(found: list[tuple[Formula, Temp]], depth: int) -> bool | None:
    made = [(formula, src) for formula, src in found if not _is_none(formula.made(src))]
    kinds = {is_number(formula, src, depth) for formula, src in made}
    return kinds.pop() if len(kinds) == 1 else None


def _is_none(op: ops.Op | None) -> bool:
    return isinstance(op, ops.Constant) and (op.value is None or isinstance(op.value, bool))


def _is_size(formula: Formula, op: ops.Op) -> bool:
    """Is it a plain number, or a length read from a shape?"""
    match op:
        case ops.Constant(value=value):
            return not isinstance(value, bool)
        case ops.Unpack(src=whole) | ops.GetItem(base=whole):
            made = formula.made(whole)
            if isinstance(made, ops.GetItem):  # of `x.shape[-2:]`
                made = formula.made(made.base)
            return isinstance(made, ops.GetAttribute | ops.CallMethod) and made.name in ("shape", "size")
    return False


def _of_call(formula: Formula, op: ops.Call | ops.CallMethod, depth: int) -> bool | None:
    operation = formula.read(op)
    name = formula.called(op)
    if name in _NUMBERS or name.startswith(("math.", "numpy.")):
        return True
    if isinstance(op, ops.CallMethod) and op.name in _SIZES:
        return True
    last = name.rpartition(".")[2]
    if name.startswith("torch.") and operation is not None:
        if last in _MAKING:
            return False
        if last in ("sqrt", "rsqrt", "pow") and operation.operands:
            return False if is_number(formula, operation.operands[0], depth) is False else None
        return None
    if isinstance(op, ops.CallMethod) and not name and is_number(formula, op.base, depth) is False:
        return False  # of a constant tensor: `.to(device)`
    return None

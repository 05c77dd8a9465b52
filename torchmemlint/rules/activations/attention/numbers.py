"""Is the factor that scores are scaled with a number, or a tensor?

Only a number can be the fused function's `scale`. A learned temperature cannot, and a tensor may as well be a mask.
"""

from __future__ import annotations

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.ir.ops import (
    Call,
    CallMethod,
    Choose,
    Constant,
    GetAttribute,
    GetItem,
    Load,
    Op,
    Operate,
    Unpack,
)
from torchmemlint.flow.ir.places import Scope, Temp

_DEPTH = 6
_NUMBERS = frozenset({"float", "int", "len", "min", "max", "round", "abs", "pow", "sum"})
_MAKING = frozenset({"tensor", "FloatTensor", "Tensor", "as_tensor"})
_SIZES = frozenset({"size", "dim", "numel", "item"})


def is_number(formula: Formula, temp: Temp, depth: int = 0) -> bool | None:
    """Whether a factor is a number, or else a tensor made of numbers alone; None: it may be anything."""
    made = formula.sources(temp) if depth <= _DEPTH else []
    kinds = {_kind(formula, op, depth + 1) for op in made}
    if len(kinds) == 1:
        return kinds.pop()
    return True if kinds == {True, None} and not any(_is_of_torch(formula, op) for op in made) else None


def _is_of_torch(formula: Formula, op: Op) -> bool:
    operation = formula.read(op)
    return operation is not None and bool(operation.qualified)


def _kind(formula: Formula, op: Op, depth: int) -> bool | None:
    match op:
        case Constant(value=int() | float()) | Unpack() | GetItem() if _is_size(formula, op):
            return True
        case Operate(operator="-", operands=(operand,)):
            return is_number(formula, operand, depth)
        case Operate(operator=operator, operands=(left, right)):
            first, second = is_number(formula, left, depth), is_number(formula, right, depth)
            of_size = operator in ("**", "//") and first is None and second is not False
            if of_size and isinstance(formula.made(left), Load | GetAttribute):  # `width // heads`
                return True if operator == "//" or second else None
            return None if None in (first, second) else first and second
        case Choose(operands=operands):
            kinds = {is_number(formula, operand, depth) for operand in operands}
            return True if True in kinds and False not in kinds else None
        case Call() | CallMethod():
            return _of_call(formula, op, depth)
        case Load(name=name):
            function = formula.function
            found = formula.beside.constant(name.text) if name.scope is Scope.GLOBAL else []
            annotations = {p.name: p.annotation for p in function.parameters}
            if name.text in annotations:
                if annotations[name.text] in ("int", "float"):
                    return True
                found = formula.beside.default(function, name.text) if not annotations[name.text] else []
            return _of_all(found, depth)
        case GetAttribute(dst=dst):
            return _of_all(formula.stored(dst), depth)
    return None


def _of_all(found: list[tuple[Formula, Temp]], depth: int) -> bool | None:
    made = [(formula, src) for formula, src in found if not _is_none(formula.made(src))]
    kinds = {is_number(formula, src, depth) for formula, src in made}
    return kinds.pop() if len(kinds) == 1 else None


def _is_none(op: Op | None) -> bool:
    return isinstance(op, Constant) and (op.value is None or isinstance(op.value, bool))


def _is_size(formula: Formula, op: Op) -> bool:
    """Is it a plain number, or a length read from a shape?"""
    match op:
        case Constant(value=value):
            return not isinstance(value, bool)
        case Unpack(src=whole) | GetItem(base=whole):
            made = formula.made(whole)
            if isinstance(made, GetItem):  # of `x.shape[-2:]`
                made = formula.made(made.base)
            return isinstance(made, GetAttribute | CallMethod) and made.name in ("shape", "size")
    return False


def _of_call(formula: Formula, op: Call | CallMethod, depth: int) -> bool | None:
    operation = formula.read(op)
    name = formula.called(op)
    if name in _NUMBERS or name.startswith(("math.", "numpy.")):
        return True
    if isinstance(op, CallMethod) and op.name in _SIZES:
        return True
    last = name.rpartition(".")[2]
    if name.startswith("torch.") and operation is not None:
        if last in _MAKING:
            return False
        if last in ("sqrt", "rsqrt", "pow") and operation.operands:
            return False if is_number(formula, operation.operands[0], depth) is False else None
        return None
    if isinstance(op, CallMethod) and not name and is_number(formula, op.base, depth) is False:
        return False  # of a constant tensor: `.to(device)`
    return None

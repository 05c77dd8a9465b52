"""Functions of the project that are a softmax, written out: exponentials, divided by their sum."""

from __future__ import annotations

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.numbers import actual
from torchmemlint.flow.fact.operands import Operation
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import Return
from torchmemlint.flow.ir.places import NO_TEMP, Spread, Temp

_GREATEST = frozenset({"amax", "max", "logsumexp"})  # what is subtracted, so that no power is too large


def own_softmax(formula: Formula, op: ops.Op) -> tuple[Temp, int | None] | None:
    """Return what a call of such a function takes, and over which axis; None of other operations."""
    if not isinstance(op, ops.Call) or not op.arguments or op.arguments[0].spread is not Spread.PLAIN:
        return None
    inner = formula.callee(op)
    dim = _axis(inner) if inner is not None and inner.function.parameters else None
    if inner is None or dim is None:
        return None
    name = inner.made(dim)
    if not isinstance(name, ops.Load) or all(name.name.text != one.name for one in inner.function.parameters):
        return op.arguments[0].temp, inner.integer(dim)
    given = actual(op, inner.function, name.name.text)
    if given != NO_TEMP:
        return op.arguments[0].temp, formula.integer(given)
    defaults = [one.integer(temp) for one, temp in inner.beside.default(inner.function, name.name.text)]
    return op.arguments[0].temp, defaults[0] if len(defaults) == 1 else None


def is_softmax(formula: Formula | None) -> bool:
    """Is a function a softmax?"""
    return formula is not None and bool(formula.function.parameters) and _axis(formula) is not None


def tensors(formula: Formula, op: ops.Op) -> list[ops.Op]:
    """What the call of such a function computes, in the function, each a tensor as large as what it takes."""
    inner = formula.callee(op)
    quotient = _quotient(inner) if inner is not None else None
    if inner is None or quotient is None:
        return []
    found = [quotient]
    for one in found:  # the powers, and what they are of
        made = inner.of(one.operands[0]) if one.operands else None
        found += [made] if made is not None else []
    return [one.op for one in reversed(found)]


def _quotient(inner: Formula) -> Operation | None:
    returned = [op for op in operations(inner.function.body) if isinstance(op, Return)]
    quotient = inner.of(returned[0].src) if len(returned) == 1 else None
    return quotient if quotient is not None and quotient.name == "div" and len(quotient.operands) == 2 else None


def _axis(inner: Formula) -> Temp | None:
    """Return the axis that a function's exponentials are summed over, if it returns them divided by their sum."""
    quotient = _quotient(inner)
    if quotient is None:
        return None
    powers, total = map(inner.of, quotient.operands)
    if powers is None or total is None or powers.name != "exp" or total.name != "sum" or not total.operands:
        return None
    same = inner.made(total.operands[0]) is powers.op and _is_of_input(inner, powers.operands[0])
    return (total.argument("dim", 1) or total.keyword("axis")) if same else None


def _is_of_input(inner: Formula, temp: Temp) -> bool:
    """Is it what the function is given, or that less its greatest?"""
    shifted = inner.of(temp)
    if shifted is not None and shifted.name == "sub" and not inner.function.mentions.isdisjoint(_GREATEST):
        return _is_input(inner, shifted.operands[0])
    return _is_input(inner, temp)


def _is_input(inner: Formula, temp: Temp) -> bool:
    made = inner.made(temp)
    return isinstance(made, ops.Load) and made.name.text == inner.function.parameters[0].name

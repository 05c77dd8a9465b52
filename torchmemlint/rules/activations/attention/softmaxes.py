"""Functions of a file that are a softmax, written out: exponentials, divided by their sum."""

from __future__ import annotations

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import Return
from torchmemlint.flow.ir.places import Spread, Temp


def own_softmax(formula: Formula, op: ops.Op) -> tuple[Temp, int | None] | None:
    """Return what a call of such a function takes, and over which axis; None of other operations."""
    if not isinstance(op, ops.Call) or not op.arguments or op.arguments[0].spread is not Spread.PLAIN:
        return None
    callee = formula.written(op.callee)
    function = formula.function.unit.once.get(callee.name.text) if isinstance(callee, ops.Load) else None
    if not isinstance(function, ops.Function) or not function.parameters:
        return None
    inner = formula.beside.of(function)
    dim = _axis(inner)
    if dim is None:
        return None
    name = inner.made(dim)
    names = [parameter.name for parameter in function.parameters]
    if not isinstance(name, ops.Load) or name.name.text not in names:
        return op.arguments[0].temp, inner.integer(dim)
    place = names.index(name.name.text)
    given = next((one.temp for one in op.arguments if one.name == name.name.text), None)
    if given is None and len(op.arguments) > place and op.arguments[place].spread is Spread.PLAIN:
        given = op.arguments[place].temp
    if given is not None:
        return op.arguments[0].temp, formula.integer(given)
    defaults = [one.integer(temp) for one, temp in formula.beside.default(function, name.name.text)]
    return op.arguments[0].temp, defaults[0] if len(defaults) == 1 else None


def is_softmax(formula: Formula) -> bool:
    """Is a function a softmax?"""
    return _axis(formula) is not None


def _axis(inner: Formula) -> Temp | None:
    """Return the axis that a function's exponentials are summed over, if it returns them divided by their sum."""
    returned = [op for op in operations(inner.function.body) if isinstance(op, Return)]
    quotient = inner.of(returned[0].src) if len(returned) == 1 else None
    if quotient is None or quotient.name != "div" or len(quotient.operands) != 2:
        return None
    powers, total = map(inner.of, quotient.operands)
    if powers is None or total is None or powers.name != "exp" or total.name != "sum" or not total.operands:
        return None
    same = inner.made(total.operands[0]) is powers.op and _is_of_input(inner, powers.operands[0])
    return total.argument("dim", 1) if same else None


def _is_of_input(inner: Formula, temp: Temp) -> bool:
    """Is it what the function is given, or that less its greatest?"""
    shifted = inner.of(temp)
    if shifted is not None and shifted.name == "sub" and not inner.function.mentions.isdisjoint({"amax", "max"}):
        return _is_input(inner, shifted.operands[0])
    return _is_input(inner, temp)


def _is_input(inner: Formula, temp: Temp) -> bool:
    made = inner.made(temp)
    return isinstance(made, ops.Load) and made.name.text == inner.function.parameters[0].name

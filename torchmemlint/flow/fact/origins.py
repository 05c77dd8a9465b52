"""Origins: what the values of a formula are made from, and what is known of them by that."""

from __future__ import annotations

from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import With
from torchmemlint.flow.ir.ops import Call, CallMethod, Compare, Constant, GetAttribute, Load, Op, Operate
from torchmemlint.flow.ir.places import Scope, Temp
from torchmemlint.flow.models import guards
from torchmemlint.knowledge import torch_api
from torchmemlint.knowledge.contracts import Contracts

_DISCRETE = torch_api.DISCRETE | torch_api.DISCRETE_FACTORIES | torch_api.DISCRETE_TYPES
_CLOSED = frozenset({"add", "sub", "mul", "neg"})  # they make whole numbers of whole numbers
_ALIKE = frozenset(  # they give the same numbers, in another shape or place
    "view reshape flatten unsqueeze squeeze expand expand_as permute transpose t contiguous clone detach to cuda cpu "
    "getitem repeat".split()
)
_MOST_POWER = 400
_MOST_STEPS = 20  # from one name to the next


def usual(formula: Formula, temp: Temp | None, steps: int = _MOST_STEPS) -> object:
    """The number that a value is where nobody says otherwise: also a default, a global name, an attribute."""
    op, beside = formula.made(temp), formula.beside
    match op:
        case Operate(operator="**", operands=(left, right)):
            return _power(usual(formula, left, steps), usual(formula, right, steps))
        case Load(name=name):
            found = beside.constant(name.text) if name.scope is Scope.GLOBAL else []
            found = found or beside.default(formula.function, name.text)
        case GetAttribute():
            found = formula.stored(temp)
        case _:
            return formula.constant(temp)
    return usual(*found[0], steps - 1) if len(found) == 1 and steps else None


def _power(base: object, power: object) -> object:
    if isinstance(base, int | float) and isinstance(power, int | float) and base > 0 and abs(power) < _MOST_POWER:
        return base**power
    return None


def is_weight(formula: Formula, temp: Temp) -> bool:
    """Is it the weight of a layer of torch?"""
    op = formula.made(temp)
    return isinstance(op, GetAttribute) and op.name in torch_api.WEIGHTS and formula.layer(op.base) is not None


def is_parameter(formula: Formula, temp: Temp) -> bool:
    """Is it a tensor that is trained: a parameter of the receiver's, or the weight of a layer of torch?"""
    stored = formula.stored(temp)
    made = [other.of(src) for other, src in stored]
    own = bool(made) and all(one is not None and one.qualified in torch_api.PARAMETERS for one in made)
    return own or is_weight(formula, temp)


def is_trained(formula: Formula, temp: Temp, known: Contracts) -> bool:
    """Is it computed from a parameter, or from what a layer of torch or a network of the receiver's gives?"""
    pending, seen = [temp], set[Op]()
    for one in pending:
        op = formula.made(one)
        if op is None or op in seen:
            continue
        seen.add(op)
        operation = formula.read(op)
        if is_parameter(formula, one) or (operation is not None and operation.layer is not None):
            return True
        if isinstance(op, CallMethod) and _runs_network(formula, op, known):
            return True
        pending += operation.operands if operation is not None else ()
    return False


def _runs_network(formula: Formula, op: CallMethod, known: Contracts) -> bool:
    stored = formula.attribute(op.base, op.name)
    return bool(stored) and all(_makes_network(other, src, known) for other, src in stored)


def _makes_network(formula: Formula, temp: Temp, known: Contracts) -> bool:
    made = formula.made(temp)
    callee = formula.made(made.callee) if isinstance(made, Call) else None
    cls = formula.beside.unit.once.get(callee.name.text) if isinstance(callee, Load) else None
    if cls is None:
        return formula.construction(made) is not None
    return cls in formula.beside.unit.classes and any(
        known.is_module_class(base) for one in formula.beside.ancestors(cls) for base in one.bases
    )


def is_discrete(formula: Formula, temp: Temp) -> bool:
    """Is it made of whole numbers, or of truth values?"""
    op, operation = formula.made(temp), formula.of(temp)
    if operation is None:
        return isinstance(op, Constant) and isinstance(op.value, int)
    if isinstance(op, Compare) or operation.name in _DISCRETE:
        return True
    if operation.name in _CLOSED:
        return all(is_discrete(formula, one) for one in operation.operands)
    return operation.name in _ALIKE and bool(operation.operands) and is_discrete(formula, operation.operands[0])


def is_tensor(formula: Formula, temp: Temp) -> bool:
    """Does an operation of torch make it, or an annotation say that it is a tensor?"""
    op, operation = formula.made(temp), formula.of(temp)
    if operation is not None:
        return bool(operation.qualified)
    annotated = {p.name for p in formula.function.parameters if p.annotation == "torch.Tensor"}
    return isinstance(op, Load) and op.name.text in annotated


def mode(formula: Formula, op: Op, known: Contracts) -> Mode | None:
    """The gradient mode that a function sets for an operation in it; None where that is its caller's."""
    found = guards.mode_of(known, formula.function)
    for within in operations(formula.function.body):  # outer ones first
        made = formula.of(within.contexts[0]) if isinstance(within, With) else None
        if made is not None and isinstance(within, With) and op in set(operations(within.body)):
            given = [formula.constant(temp) for temp in made.operands]
            here = guards.mode_named(known, made.qualified, tuple(... if one is None else one for one in given))
            found = here or found
    return found

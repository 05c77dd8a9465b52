"""Conditions that ask what a value is: a tensor (on their other branch it is a number), a module that trains."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import Constant, Tensor, TrainingMode, Value
from torchmemlint.syntax.text import string_value, text_of

_CLASSES = frozenset({"Tensor", "Variable"})
_NUMBERS = frozenset({"int", "float", "bool", "complex", "str"})  # or what is none, and no tensor either
_OF_TENSORS = frozenset({"detach", "item", "requires_grad", "grad_fn", "backward", "cpu"})  # numbers have none of these

_ASKING = frozenset({cst.UnaryOperation, cst.Call})


def asked_of(test: cst.BaseExpression) -> tuple[cst.BaseExpression, bool] | None:
    """What a condition asks about, and the answer with which it may be a tensor."""
    if type(test) not in _ASKING:  # a match is slow on these classes where the answer is no
        return None
    match test:
        case cst.Call(func=func, args=[cst.Arg(value=value), *rest]):
            if _asks_for_number(text_of(func), rest):
                return (value, False)
            return (value, True) if _asks(text_of(func).rpartition(".")[2], rest) else None
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            found = asked_of(inner)
            return (found[0], not found[1]) if found is not None else None
    return None


def _asks_for_number(called: str, rest: list[cst.Arg]) -> bool:
    """`isinstance(x, (int, float))`"""
    if called != "isinstance" or not rest:
        return False
    kind = rest[0].value
    kinds = [one.value for one in kind.elements] if isinstance(kind, cst.Tuple) else [kind]
    return all(isinstance(one, cst.Name) and one.value in _NUMBERS for one in kinds)


def _asks(called: str, rest: list[cst.Arg]) -> bool:
    if called == "is_tensor":
        return True
    kind = rest[0].value if rest else None
    match called, kind:
        case "isinstance", cst.Name() | cst.Attribute():
            return text_of(kind).rpartition(".")[2] in _CLASSES
        case "isinstance", cst.Tuple(elements=kinds):
            return any(text_of(one.value).rpartition(".")[2] in _CLASSES for one in kinds)
        case "hasattr", cst.SimpleString():
            return string_value(kind) in _OF_TENSORS
    return False


def narrow(it: Interpreter, test: cst.BaseExpression, value: Value, holds: bool) -> None:
    """On the branch where it is not a tensor, a name stands for a number.

    The branch of `if module.training:` is not for the evaluation mode that the module was left in.
    """
    if isinstance(value, TrainingMode) and holds:
        it.state.heap.pop((value.module, "training"))
    found = asked_of(test)
    if found is None or found[1] is holds or not isinstance(found[0], cst.Name):
        return
    if isinstance(it.state.vars.get(found[0].value), Tensor):
        it.state.vars[found[0].value] = Constant()


def is_number(test: cst.BaseExpression, holds: bool, value: cst.BaseExpression) -> bool:
    """`x.item() if hasattr(x, "item") else x`: is the value what the condition has just told to be no tensor?"""
    found = asked_of(test)
    return found is not None and found[1] is not holds and text_of(value) == text_of(found[0])

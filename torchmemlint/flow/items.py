"""`owner[key]` where a class of the project says what it does, or what its attributes hold."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import Container, FunctionValue, Instance, Unknown, Value
from torchmemlint.syntax.outline import dotted_text


def assigned(
    it: Interpreter, target: cst.Subscript, owner: Value, key: Value | None, value: Value, node: cst.BaseExpression
) -> bool:
    """Follow `target[key] = value` into the `__setitem__` of the object's class; False where it has none in view."""
    from torchmemlint.flow import calls
    from torchmemlint.flow.arguments import Argument

    function = owner.cls.method("__setitem__") if isinstance(owner, Instance) else None
    if function is None:
        return False
    given = [Argument("0", key or Unknown(), target), Argument("1", value, node)]
    calls.inline(it, target, FunctionValue(function, owner), given)
    return True


def list_of_class(it: Interpreter, node: cst.Subscript, owner: Container) -> Container | None:
    """`self.values[key]` in a class of another file, the other methods of which put nothing but empty lists there."""
    function = it.frame.function
    cls = function.cls if function is not None and function.program is not it.main else None
    path = dotted_text(node.value)
    attribute = path.removeprefix(f"{it.frame.self_name}.")
    if cls is None or attribute == path or not cls.fills_with_lists(attribute):
        return None
    found = Container(it.oid("list of class", owner.oid), "list", owner.loops, made=owner.made)
    it.element_keys.setdefault(owner.oid, set()).add("[]")
    it.state.heap[(owner.oid, "[]")] = found
    return found

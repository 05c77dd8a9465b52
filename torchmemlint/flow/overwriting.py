"""What backward still needs of a tensor, and what overwrites it in place.

A tensor is told from another by the place that made it. Marks in the state say that an operation keeps it for backward,
or that it was overwritten; they vanish when the place makes a new tensor.
"""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow.facts import Hazard, InPlace
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import Graph, Known, Mode, ModuleValue, Tensor, Unknown, Value
from torchmemlint.knowledge import activations, saved_tensors, torch_api
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of

_EXPANDED = frozenset({"expand", "expand_as", "broadcast_to"})
_HARMLESS_ON_LEAVES = frozenset(".requires_grad_() .detach_() .share_memory_() .set_() .resize_()".split())
_LOOKS = torch_api.METADATA | torch_api.METADATA_ATTRIBUTES | {"grad_fn", "grad"}
_SHARED_PLACES = frozenset({"unpack", "proved", "indices"})  # their place made other tensors too
_LOOKING = frozenset({"isinstance", "len", "type", "id", "hasattr"})


def identity(it: Interpreter, value: Value) -> int | None:
    """A number for the storage that the value is known to lie in; None where it cannot be told from others."""
    match value:
        case Tensor(made=Site(serial=serial), exact=True, producer=producer) if producer not in _SHARED_PLACES:
            key = (serial, -1)
        case Unknown(made=made) if made is not None:
            key = (made.site.serial, made.index)
        case _:
            return None
    return None if key[0] in it.frame.foreign else it.oid("storage", key)


def made(it: Interpreter, node: cst.BaseExpression, value: Value) -> None:
    """An expression was evaluated: where it made the tensor, marks on an earlier one from this place are gone."""
    if isinstance(value, Unknown):
        if type(node) is cst.Call and value.made is not None and value.made.site.node is node:
            renewed(it, value)  # whatever an unknown call returns, it is not what it returned in the round before
        return
    if not isinstance(value, Tensor) or value.made is None:
        return
    if value.made.node is node:
        it.frame.created.add(value.made.serial)
        if it.marked_storages:
            renewed(it, value)
    elif type(node) is cst.Call and value.made.serial not in it.frame.created:
        it.frame.foreign.add(value.made.serial)  # made in a callee: each call makes another one


def renewed(it: Interpreter, value: Value) -> None:
    """The place of this value has made a new one."""
    storage = identity(it, value)
    if storage in it.marked_storages:
        it.state.heap.pop((storage, "kept"), None)
        it.state.heap.pop((storage, "overwritten"), None)


def _mark(it: Interpreter, value: Value, how: str, what: str, node: cst.CSTNode) -> None:
    if not it.looks_for_hazards:
        return
    storage = identity(it, value)
    if storage is not None:
        it.marked_storages.add(storage)
        it.state.heap[(storage, how)] = Known(how, qualified=what, made=it.site(node))


# -- what is kept ----------------------------------------------------------------------------------------------------


def module_called(it: Interpreter, node: cst.Call, module: ModuleValue, values: list[Value], trains: bool) -> None:
    """A library layer keeps its input for backward."""
    if it.state.mode is Mode.OFF or not values:
        return
    while module.qualified == "torch.nn.Sequential" and module.children:
        first = module.children[0]
        if not isinstance(first, ModuleValue):
            return
        module = first
    if not module.qualified.startswith("torch.nn."):
        return
    name = saved_tensors.short(module.qualified)
    kept = values if name == "MultiheadAttention" else values[:1]
    weighed = trains and (name in saved_tensors.INPUT_KEPT_FOR_WEIGHTS or name == "MultiheadAttention")
    for value in kept:
        if weighed or (name in saved_tensors.INPUT_KEPT and _is_live(value)):
            _mark(it, value, "kept", name, node)


def operation_called(it: Interpreter, node: cst.CSTNode, name: str, values: list[Value]) -> None:
    """A function, method or operator keeps its input, or an operand where the other has a graph."""
    name = {"Multiply": "*", "MatrixMultiply": "@"}.get(name, name)
    if it.state.mode is Mode.OFF or not values:
        return
    if name in saved_tensors.INPUT_KEPT and _is_live(values[0]):
        _mark(it, values[0], "kept", name, node)
    elif name in saved_tensors.OPERANDS_KEPT and len(values) > 1:
        for value, other in ((values[0], values[1]), (values[1], values[0])):
            if _is_live(other) and isinstance(value, Tensor):
                _mark(it, value, "kept", name, node)


def _is_live(value: Value) -> bool:
    return isinstance(value, Tensor) and value.graph is Graph.LIVE


# -- what is overwritten ---------------------------------------------------------------------------------------------


def overwritten(
    it: Interpreter,
    node: cst.CSTNode,
    value: Value,
    target: cst.BaseExpression,
    operation: str,
    *,
    construction: Site | None = None,
    announced: bool = False,
) -> None:
    """`value`, which `target` stands for, is overwritten; `announced` where the operation's name says so."""
    if not it.recording:
        return
    fact = InPlace(it.site(node), it.scope, value, text_of(target), operation, it.tick(), target, construction)
    if it.state.mode is Mode.ON and it.looks_for_hazards:
        _needed(it, fact, value)
    effect = it.frame.statement is not None and _is_statement(it.frame.statement.node, node)
    named = isinstance(target, cst.Name) or not isinstance(node, cst.AugAssign)
    if not announced and not effect and named and _is_tensor(value, operation):
        storage = identity(it, value)
        if storage is not None:
            _mark(it, value, "overwritten", operation, node)
            it.overwrites[it.site(node)] = fact


def _is_tensor(value: Value, operation: str) -> bool:
    """`x += y` may be about numbers; what an activation is applied to is a tensor."""
    return operation.endswith("()") or _is_live(value)


def _is_statement(statement: cst.CSTNode, node: cst.CSTNode) -> bool:
    return isinstance(statement, cst.Expr) and statement.value is node


def _needed(it: Interpreter, fact: InPlace, value: Value) -> None:
    """Facts about a value that backward, or torch itself, does not allow to be overwritten."""
    if isinstance(value, Tensor) and value.certain and value.made is not None:
        producer = saved_tensors.short(value.producer)
        if producer in _EXPANDED:
            _hazard(it, fact, "expanded", value.made, producer)
        if value.graph is Graph.LIVE and value.exact:
            if producer == "parameter":
                if _own_leaf(it, value) and fact.operation not in _HARMLESS_ON_LEAVES:
                    _hazard(it, fact, "leaf", value.made, producer)
                return
            if saved_tensors.output_is_kept(value.producer):
                _hazard(it, fact, "output", value.made, producer)
                return
    storage = identity(it, value)
    kept = it.state.heap.get((storage, "kept")) if storage in it.marked_storages else None
    if isinstance(kept, Known) and kept.made is not None and kept.made is not fact.site:
        _hazard(it, fact, "input", kept.made, kept.qualified)


def _own_leaf(it: Interpreter, value: Tensor) -> bool:
    """Elsewhere a parameter is often changed by helpers that are called with gradients off."""
    function = it.frame.function
    if function is not None and function.name in ("forward", "__init__"):
        return True
    return value.made is not None and value.made.serial in it.frame.created


def _hazard(it: Interpreter, fact: InPlace, kind: str, other: Site, what: str) -> None:
    it.facts.tests[fact.site] = it.frame.tests
    it.facts.hazards.append(Hazard(fact.site, it.scope, kind, other, what, fact))


def was_read(it: Interpreter, node: cst.CSTNode, value: Value) -> None:
    """A name was read: a fact where what it stands for has been overwritten under another name."""
    if not it.recording or node in it.looked_at:
        return
    storage = identity(it, value)
    mark = it.state.heap.get((storage, "overwritten")) if storage in it.marked_storages else None
    if isinstance(mark, Known) and mark.made is not None and mark.made in it.overwrites:
        fact = it.overwrites[mark.made]
        if isinstance(fact.site.node, cst.AugAssign) and isinstance(node, cst.Name) and node.value == fact.target:
            return  # `y += x` binds `y` to the new value: its old one has no other name here
        it.facts.hazards.append(Hazard(fact.site, it.scope, "read", it.site(node), "", fact))


def looks(it: Interpreter, node: cst.Attribute) -> None:
    """`x.shape`: looking at a tensor does not read its elements."""
    if node.attr.value in _LOOKS and it.looks_for_hazards:
        it.looked_at.add(node.value)


def looking_call(it: Interpreter, node: cst.Call) -> None:
    """`isinstance(x, ...)` likewise."""
    if type(node.func) is cst.Name and node.func.value in _LOOKING and it.looks_for_hazards:
        it.looked_at.update(argument.value for argument in node.args)


def reread(it: Interpreter, node: cst.BaseExpression, value: Value) -> None:
    """In `x + relu(x)` the first operand is added after the second was computed."""
    if it.marked_storages and isinstance(node, cst.Name):
        was_read(it, node, value)


def module_flag(module: ModuleValue, kind: str) -> bool | None:
    """Does an activation module work in place? None where that is not known."""
    from torchmemlint.flow.values import Constant

    given = dict(module.arguments)
    if "**" in given or "*" in given:
        return None
    value = given.get("inplace") or given.get(str(activations.INPLACE_POSITION[kind]))
    if value is None:
        return False
    return bool(value.value) if isinstance(value, Constant) and value.known else None


def enters_in_place(module: ModuleValue) -> ModuleValue | None:
    """The in-place activation that a Sequential begins with, and so applies to its own input."""
    while module.qualified == "torch.nn.Sequential" and module.children:
        first = module.children[0]
        if not isinstance(first, ModuleValue):
            return None
        module = first
        kind = activations.module_kind(module.qualified)
        if kind is not None:
            return module if module_flag(module, kind) else None
    return None

"""Calls that a framework's contract speaks of: its objects, their methods, its operations."""

from __future__ import annotations

import libcst as cst

from torchmemlint.config.contracts import NamedOperation
from torchmemlint.flow import containers, differentiation, tensors
from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import (
    NUMBER,
    Constant,
    Container,
    External,
    Graph,
    Instance,
    Kind,
    Known,
    Method,
    Mode,
    ModuleValue,
    Origin,
    Tensor,
    Unknown,
    Value,
)
from torchmemlint.syntax.text import text_of

OBJECT = "object"  # the role of objects of classes that contracts name


def object_of(it: Interpreter, node: cst.CSTNode, qualified: str) -> Known | None:
    """What a call of a class or factory makes whose methods contracts speak of."""
    if qualified not in it.contracts.owners or it.contracts.is_module_class(qualified):
        return None
    return Known(OBJECT, it.oid(node, it.frame.path), qualified, it.site(node), (), it.frame.loops)


def method(it: Interpreter, node: cst.Call, callee: Method, arguments: Arguments) -> Value | None:
    """A method that a contract speaks of; None for any other."""
    name = callee.name
    if name not in it.contracts.methods:
        return None
    owner = callee.owner
    if isinstance(owner, Tensor | Unknown):
        operation = it.contracts.operation(f"*.{name}")
        if operation is not None:
            return compute(it, node, operation, [owner, *arguments.values], arguments)
    classes = _classes(owner)

    if it.contracts.names("differentiates").has_method(name, classes):
        return _differentiate(it, node, owner, arguments, callee.path)
    if it.contracts.names("keeps").has_method(name, classes):
        return _keep(it, node, owner, arguments, called=name == "__call__")

    def promised(term: str) -> bool:  # of this class: for methods of whatever object, its value comes first
        return any(f"{cls}.{name}" in it.contracts.names(term) for cls in classes)

    if promised("reads"):
        return _read(it, arguments)
    if promised("runs-without-gradients"):
        return guarded(it, node, name, arguments)
    if promised("passes") and arguments.items:
        return tensors.operation(it, node, name, [arguments.items[0].value], arguments)
    if arguments.items and (promised("wrappers") or _prepares(it, callee)):
        return _handed_back(it, node, arguments)
    if promised("neutral"):
        return Known("context", it.oid(node, it.frame.path), name, it.site(node))
    return None


def function(it: Interpreter, node: cst.Call, qualified: str, arguments: Arguments) -> Value | None:
    """A function that a contract speaks of; None for any other."""
    operation = it.contracts.operation(qualified)
    if operation is not None:
        return compute(it, node, operation, arguments.values, arguments)
    if qualified in it.contracts.names("differentiates") and arguments.items:
        return _differentiate(it, node, External(qualified), arguments, "")
    if qualified in it.contracts.names("keeps"):
        return _keep(it, node, External(qualified), arguments)
    if qualified in it.contracts.names("runs-without-gradients"):
        return guarded(it, node, qualified, arguments)
    made = object_of(it, node, qualified)
    return made


def _differentiate(it: Interpreter, node: cst.Call, owner: Value, arguments: Arguments, path: str) -> Value:
    """A backward pass from the first argument, whatever its name; without arguments, from the owner."""
    items = arguments.items
    if items and arguments.find("0", "loss", "tensor") is None and not isinstance(owner, Tensor | Unknown):
        first = Arguments([replace(items[0], name="0"), *items[1:]])
        return differentiation.backward(it, node, owner, first, path)
    return differentiation.backward(it, node, owner, arguments, path)


def _prepares(it: Interpreter, callee: Method) -> bool:
    """`self.accelerator.prepare`, where the file calls a method of it that only accelerate's Accelerator has."""
    return (
        callee.name == "prepare"
        and isinstance(callee.owner, Unknown)
        and "gather_for_metrics" in it.methods_called_on(callee.path)
    )


def compute(
    it: Interpreter, node: cst.Call, operation: NamedOperation, values: list[Value], arguments: Arguments
) -> Value:
    """A framework's own operation on tensors."""
    made = it.site(node)
    if operation.result == "value":
        return NUMBER
    if operation.discrete or not operation.graph:
        kind = Kind.DISCRETE if operation.discrete else Kind.UNKNOWN
        result = Tensor(Graph.NONE, kind=kind, producer=operation.name, made=made)
        return replace(result, exact=operation.result == "tensor")
    result_or_other = tensors.operation(it, node, operation.name, values, arguments)
    if isinstance(result_or_other, Tensor) and operation.result == "tensors":
        return replace(result_or_other, exact=False)
    return result_or_other


def guarded(it: Interpreter, node: cst.Call, name: str, arguments: Arguments) -> Value:
    """A call that turns gradients off itself: what comes out has no graph, and is a tensor or a structure of them."""
    _read(it, arguments)
    return Tensor(Graph.NONE, producer=name, made=it.site(node), exact=False, certain=False)


def _read(it: Interpreter, arguments: Arguments) -> Value:
    return Unknown()


def _handed_back(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    """`model, optimizer = accelerator.prepare(model, optimizer)`: as given; keywords are settings."""
    given = [item for item in arguments.items if item.name.isdigit()]
    if len(given) == 1:
        return given[0].value
    if arguments.unknown_positional or not given:
        return Unknown(_origins(it, arguments))
    return containers.literal(it, node, "tuple", [(item.node, item.value) for item in given], False)


def _keep(it: Interpreter, node: cst.Call, owner: Value, arguments: Arguments, *, called: bool = False) -> Value:
    """The object (for functions, the module) holds what it is given as a list would; `called`: as a function is."""
    if it.state.mode is Mode.OFF:
        return Unknown()
    known = isinstance(owner, Known | ModuleValue | Instance)
    key = owner.oid if isinstance(owner, Known | ModuleValue | Instance) else text_of(node.func)
    store = Container(
        it.oid("kept", key),
        "list",
        owner.loops if isinstance(owner, Known | ModuleValue | Instance) else (),
        made=owner.made if isinstance(owner, Known | ModuleValue | Instance) else None,
    )
    named = node.func.value if known and not called and isinstance(node.func, cst.Attribute) else node.func
    text = text_of(named)
    for item in arguments.items:
        if not isinstance(item.value, Constant):
            containers.put(it, store, item.node, item.value, how="keeps", site_node=node, text=text)
    return Unknown(_origins(it, arguments))


def _origins(it: Interpreter, arguments: Arguments) -> frozenset[Origin]:
    found: frozenset[Origin] = frozenset()
    for value in arguments.values:
        found |= it.deep_origins(value)
    return found


def _classes(owner: Value) -> list[str]:
    """The qualified names of the classes that an object is known to be of."""
    match owner:
        case Known(role=role, qualified=qualified) if role == OBJECT:
            return [qualified]
        case ModuleValue(cls=cls, qualified=qualified):
            names = [qualified] if qualified else []
            return names + (cls.base_names() if cls is not None else [])
        case Instance(cls=cls):
            return cls.base_names()
    return []

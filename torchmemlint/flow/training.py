"""What a training step does to gradients, in order: backwards, optimizer steps, and zeroing."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow.facts import TrainingEvent
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import Constant, Container, Known, ModuleValue, Origin, Tensor, Value

_MAX_GROUPS = 4  # containers within containers: a list of dicts with a list


def differentiated(it: Interpreter, node: cst.CSTNode, value: Value) -> None:
    """A backward through `value`."""
    _note(it, "backward", node, None, it.deep_origins(value))


def stepped(it: Interpreter, node: cst.CSTNode, optimizer: Value) -> None:
    """`optimizer.step()`."""
    _note(it, "step", node, optimised(it, optimizer))


def zeroed(it: Interpreter, node: cst.CSTNode, owner: Value) -> None:
    """`zero_grad()` of an optimizer or module."""
    modules = frozenset({owner.oid}) if isinstance(owner, ModuleValue) else optimised(it, owner)
    if modules:
        _note(it, "zero", node, modules)


def handed(it: Interpreter, node: cst.CSTNode, values: list[Value]) -> None:
    """Modules given to code that is not understood, which may freeze them."""
    modules = frozenset(value.oid for value in values if isinstance(value, ModuleValue))
    if modules:
        _note(it, "handed", node, modules)


def handed_all(it: Interpreter, node: cst.CSTNode) -> None:
    """Any module may be frozen here."""
    _note(it, "handed", node, None)


def asked(it: Interpreter, node: cst.CSTNode, inputs: Value) -> None:
    """`autograd.grad(outputs, inputs)`: these values have to carry a graph."""
    _note(it, "inputs", node, None, it.deep_origins(inputs))


def optimised(it: Interpreter, optimizer: Value) -> frozenset[int] | None:
    """The modules whose parameters an optimizer holds; None where that is not known."""
    if not isinstance(optimizer, Known) or optimizer.role != "optimizer":
        return None
    given = dict(optimizer.arguments)
    value = given.get("0", given.get("params"))
    found = _owners(it, value) if value is not None else None
    whole = {cls.oid for cls in it.main.classes.values()}
    return None if not found or found & whole else found  # `self.parameters()`: of all that an object holds


def _owners(it: Interpreter, value: Value, depth: int = 0) -> frozenset[int] | None:
    """The modules that parameters (or groups of them) belong to; None where one is not known."""
    found: frozenset[int]
    match value:
        case Known(role="parameters", oid=oid, arguments=others) if oid:
            found = frozenset({oid})
            for _, other in others:  # chained
                owners = _owners(it, other, depth + 1)
                if owners is None:
                    return None
                found |= owners
            return found
        case Tensor(parameter_of=oid) if oid:
            return frozenset({oid})
        case Constant():
            return frozenset()  # a group's learning rate
        case Known(role="iterator", element=element) if element is not None:
            return _owners(it, element, depth)
        case Container(others=()) if depth < _MAX_GROUPS:
            found = frozenset()
            for element in it.elements(value):
                owners = _owners(it, element, depth + 1)
                if owners is None:
                    return None
                found |= owners
            return found
    return None


def _note(
    it: Interpreter,
    kind: str,
    node: cst.CSTNode,
    modules: frozenset[int] | None,
    origins: frozenset[Origin] = frozenset(),
) -> None:
    """Take it down for the function whose analysis this is, also where it happens in a function called from there."""
    frames = [*it.frames, it.frame]
    if not frames[0].recording:
        return
    site = it.site(node)
    event = TrainingEvent(
        kind,
        site,
        frames[0].function,
        it.tick(),
        it.frame.loops,
        tuple(test for frame in frames for test in frame.tests),
        modules,
        origins,
    )
    it.facts.training[(kind, site, frames[0].function, it.frame.path)] = event

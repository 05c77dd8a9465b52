"""Modules that nobody trains: those that a trainer holds (`flow.held`), and what constructors are given."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow.facts import FileFacts, HeldCall
from torchmemlint.flow.gradient_modes import trained_by_framework
from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.walking import inside


def found(facts: FileFacts) -> Iterator[HeldCall]:
    """The calls in this file that a training step reaches, each once."""
    seen: set[object] = set()
    for call in facts.held_calls:
        function = call.scope.function
        if call.root is None or function is None or function.program is not facts.program or call.site in seen:
            continue
        if trained_by_framework(call.root):
            seen.add(call.site)
            yield call


def assignment(call: HeldCall) -> Site | None:
    """The statement that assigns what the call gives, or an item of it, and computes nothing else; None without one."""
    function = call.scope.function
    for node in inside(function.node) if function is not None else ():
        if isinstance(node, cst.Assign):
            value: cst.CSTNode = node.value
            while isinstance(value, cst.Attribute | cst.Subscript):
                value = value.value
            if value is call.site.node:
                return Site(call.site.piece, node)
    return None


def given_to_constructor(cls: ClassInfo, attribute: str) -> Site | None:
    """Where a constructor stores an argument of its own under this attribute, and gives it to nobody else."""
    for ancestor in cls.ancestors():
        constructor = ancestor.methods.get("__init__")
        if constructor is not None and (site := _stored(constructor, attribute)) is not None:
            return site
    return None


def _stored(constructor: Function, attribute: str) -> Site | None:
    """`self.ref_model = ref_model`, where the parameter goes to no other constructor."""
    parameters = constructor.node.params
    given = {p.name.value for p in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)}
    nodes = list(inside(constructor.node))
    elsewhere = {name for node in nodes if _calls_constructor(node) for name in _names(node)}
    found: Site | None = None
    for assign in nodes:
        if not isinstance(assign, cst.Assign):
            continue
        targets = [dotted_text(target.target) for target in assign.targets]
        if f"self.{attribute}" not in targets or not isinstance(assign.value, cst.Name):
            continue
        if assign.value.value in elsewhere:
            return None
        if assign.value.value in given:
            found = Site(constructor.piece, assign)
    return found


def _calls_constructor(node: cst.CSTNode) -> bool:
    """`super().__init__(...)`, `Base.__init__(self, ...)`."""
    match node:
        case cst.Call(func=cst.Attribute(value=cst.Call(func=cst.Name("super")), attr=cst.Name("__init__"))):
            return True
        case cst.Call(func=cst.Attribute(value=cst.Name(), attr=cst.Name("__init__"))):
            return True
    return False


def _names(call: cst.CSTNode) -> Iterator[str]:
    assert isinstance(call, cst.Call)
    for argument in call.args:
        if isinstance(argument.value, cst.Name):
            yield argument.value.value

"""What a parameter's annotation says that it is."""

from __future__ import annotations

import re

import libcst as cst

from torchmemlint.findings import Lead
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import Program, expression_name
from torchmemlint.flow.values import NUMBER, Graph, Instance, Known, ModuleValue, Step, Tensor, Value
from torchmemlint.knowledge import modules as known_modules
from torchmemlint.syntax.text import string_value

_NUMBERS = frozenset({"int", "float", "bool", "str", "bytes"})
_TENSORS = frozenset({"torch.Tensor", "torch.FloatTensor", "torch.autograd.Variable", "jaxtyping.Float"})
_INTEGER_TENSORS = frozenset({"torch.LongTensor", "torch.IntTensor", "torch.BoolTensor"})

# `module_class: nn.Module` is what people write for `type[nn.Module]`: calling it makes a module.
_CLASS_ITSELF = re.compile(r"(?:^|_)(?:cls|class|klass|type|constructor)$|[a-z](?:Cls|Class)$")


def value_of(it: Interpreter, parameter: cst.Param) -> Value | None:
    """The value of an annotated parameter; None where the annotation does not tell."""
    if parameter.annotation is None or _CLASS_ITSELF.search(parameter.name.value):
        return None
    for name in _names(parameter.annotation.annotation):
        value = _named(it, parameter, it.program.qualify(name))
        if value is not None:
            return value
    return None


def is_module(program: Program, parameter: cst.Param) -> bool:
    """Does the annotation say that it is an `nn.Module`, and not a loss?"""
    if parameter.annotation is None:
        return False
    return any(_is_module_class(program, program.qualify(name)) for name in _names(parameter.annotation.annotation))


def _is_module_class(program: Program, qualified: str) -> bool:
    cls = program.resolve_class(qualified, Lead.IMPORT)
    if cls is not None:
        return cls.is_module
    return program.contracts.is_module_class(qualified) and qualified.rpartition(".")[2] not in known_modules.LOSSES


_NAMED = frozenset({cst.Name, cst.Attribute})


def _names(node: cst.BaseExpression) -> list[str]:
    """The class names in an annotation: `Optional[nn.Module]`, `"Model" | None`; generics are not looked into."""
    if type(node) in _NAMED:  # a match is slow on these classes where the answer is no
        name = expression_name(node)
        return [name] if name else []
    match node:
        case cst.Subscript(value=owner, slice=elements):
            if expression_name(owner).rpartition(".")[2] not in ("Optional", "Union", "Annotated"):
                return []
            found = []
            for element in elements:
                if isinstance(element.slice, cst.Index):
                    found += _names(element.slice.value)
            return found
        case cst.BinaryOperation(left=left, right=right):
            return _names(left) + _names(right)
        case cst.SimpleString():
            text = str(string_value(node))
            return [text] if text.replace(".", "").replace("_", "").isalnum() else []
    return []


def _named(it: Interpreter, parameter: cst.Param, qualified: str) -> Value | None:
    site = it.site(parameter)
    if qualified in _NUMBERS:
        return NUMBER
    if qualified in _TENSORS:
        return Tensor(Graph.UNKNOWN, frozenset({it.origin(parameter)}), made=site, producer="parameter of function")
    if qualified in _INTEGER_TENSORS:
        return Tensor(Graph.NONE, made=site)
    if qualified in it.contracts.names("loaders"):
        return Known("loader", it.oid("annotation", site.node), qualified, site)
    cls = it.program.resolve_class(qualified, Lead.IMPORT) if it.follows_imports else it.program.find_class(qualified)
    name = parameter.name.value
    if cls is not None:
        oid = it.oid("annotation", site.node)
        if cls.is_module:
            return ModuleValue(oid, cls=cls, why=Step(site, f"`{name}` is annotated as an nn.Module"), made=site)
        return Instance(oid, cls, made=site)
    if it.contracts.is_module_class(qualified):
        loss = qualified.rpartition(".")[2] in known_modules.LOSSES
        return ModuleValue(
            it.oid("annotation", site.node),
            qualified if loss or qualified in it.contracts.owners else "",
            parameters=False if loss else None,
            why=Step(site, f"`{name}` is annotated as an nn.Module"),
            made=site,
            single=loss,
        )
    if it.contracts.is_optimizer(qualified):
        return Known("optimizer", it.oid("annotation", site.node), qualified, site)
    if qualified in it.contracts.owners:
        return Known("object", it.oid("annotation", site.node), qualified, site)
    return None

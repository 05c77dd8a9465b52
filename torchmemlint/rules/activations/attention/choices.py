"""Where a file names the fused function of torch, or may: not a function of the project that has its name."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.ops import Call, CallMethod, GetAttribute, Load, Op
from torchmemlint.flow.ir.places import Scope, Temp

FUSED = "scaled_dot_product_attention"
_ASKING = frozenset({"getattr", "hasattr"})


def naming(formula: Formula) -> Iterator[Op]:
    """Yield what names the fused function in a function: loads, attributes, methods, and texts that are asked for."""
    for op in operations(formula.function.body):
        match op:
            case Load(name=name) if name.text == FUSED and name.scope is Scope.GLOBAL:
                if formula.beside.function(FUSED) is None:
                    yield op
            case GetAttribute(name=name) | CallMethod(name=name) if name == FUSED:
                if not _is_of_project(formula, op.base):
                    yield op
            case Call(arguments=(_, asked, *_)) if formula.called(op) in _ASKING:
                if formula.constant(asked.temp) == FUSED:
                    yield op


def _is_of_project(formula: Formula, base: Temp) -> bool:
    """Is it a method of the file's own class, or a function of a module of the project?"""
    cls, qualified = formula.flow.cls, formula.name(base)
    if cls is not None and formula.flow.is_self(base):
        return any(FUSED in above.methods for above in formula.beside.ancestors(cls))
    return bool(qualified) and formula.beside.imported(f"{qualified}.{FUSED}") is not None

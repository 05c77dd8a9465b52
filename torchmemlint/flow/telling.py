"""Library calls that are facts by themselves: with one of them, a function is walked (`flow.relevance` asks)."""

from __future__ import annotations

import ast

from torchmemlint.flow import datasets
from torchmemlint.flow.program import Function
from torchmemlint.flow.units import Unit
from torchmemlint.knowledge import operations
from torchmemlint.syntax.outline import dotted

_MOVING = frozenset({"to", "cuda"})


def samples(unit: Unit) -> set[Function]:
    """The functions of the file by which a data set makes its items, where one of these puts tensors on devices."""
    if unit.name not in datasets.SAMPLING or unit.cls is None:
        return set()
    reached = set(datasets.reached(unit.function))
    if not any("device" in f.outline.names or not f.outline.calls.isdisjoint(_MOVING) for f in reached):
        return set()
    return reached if datasets.is_map_style(unit.cls) else set()


def creates_to_move(unit: Unit) -> bool:
    """Is a tensor moved as soon as it is created?"""
    calls = unit.outline.calls
    if calls.isdisjoint(_MOVING) or calls.isdisjoint(operations.factories()):
        return False
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _MOVING
        and isinstance(call.func.value, ast.Call)
        and dotted(call.func.value.func).rpartition(".")[2] in operations.factories()
        for call in unit.nodes(ast.Call)
    )

"""Library calls that are facts by themselves: with one of them, a function is walked (`flow.relevance` asks)."""

from __future__ import annotations

from torchmemlint.flow import datasets
from torchmemlint.flow.program import Function
from torchmemlint.flow.units import Unit

_MOVING = frozenset({"to", "cuda"})


def samples(unit: Unit) -> set[Function]:
    """The functions of the file by which a data set makes its items, where one of these puts tensors on devices."""
    if unit.name not in datasets.SAMPLING or unit.cls is None:
        return set()
    reached = set(datasets.reached(unit.function))
    if not any("device" in f.outline.names or not f.outline.calls.isdisjoint(_MOVING) for f in reached):
        return set()
    return reached if datasets.is_map_style(unit.cls) else set()

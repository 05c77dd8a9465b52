"""Library calls that are facts by themselves: with one of them, a function is walked (`flow.relevance` asks)."""

from __future__ import annotations

from torchmemlint.flow.program import Program
from torchmemlint.flow.signs import Unit
from torchmemlint.knowledge import checkpoints

_LOADING = frozenset(name.rpartition(".")[2] for name in checkpoints.LOADERS)


def loads(unit: Unit, program: Program) -> bool:
    """Are tensors read from a file?"""
    if _LOADING.isdisjoint(unit.outline.calls):
        return False
    return any(program.qualify(path) in checkpoints.LOADERS for path in unit.outline.called)

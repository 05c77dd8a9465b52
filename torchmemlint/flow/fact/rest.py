"""The rest of a run: what was not followed to its end, and whether it may differentiate."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.ir.ops import Function, Unit
from torchmemlint.flow.names.index import takes_gradients

_SETTING = "set_grad_enabled"


def is_harmless(engine: Engine, run: Run) -> bool:
    """Can the rest neither differentiate nor turn gradients off for what follows?

    It comes to no other files than those that the run's own imports, directly or not.
    """
    units = engine.imported([run.entry.unit]) if run.cut else ()
    return not (_differentiate(units) or any(_SETTING in f.mentions for unit in units for f in unit.functions))


def is_near(run: Run, functions: Iterable[Function]) -> bool:
    """Is there a rest, and do the files of some functions, through which it came, differentiate somewhere?"""
    return run.cut and _differentiate({function.unit for function in functions})


def _differentiate(units: Iterable[Unit]) -> bool:
    return any(takes_gradients(function) for unit in units for function in unit.functions)

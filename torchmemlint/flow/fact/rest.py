"""The rest of a run: what was not followed to its end, and what it may do there."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.closure import closure
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.ir.ops import Function, Unit
from torchmemlint.flow.names.index import takes_gradients

_SETTING = "set_grad_enabled"


class Rest:
    """What is left of a run that was cut."""

    def __init__(self, engine: Engine, run: Run) -> None:
        self._reached = _reached(engine.imported([run.entry.unit]), run.entry) if run.cut else set()
        self._differentiates = any(map(takes_gradients, self._reached))

    @property
    def is_harmless(self) -> bool:
        """Can it neither differentiate nor turn gradients off for what follows?"""
        return not self._differentiates and not any(_SETTING in function.mentions for function in self._reached)

    def differentiates_near(self, functions: Iterable[Function]) -> bool:
        """May it differentiate, and does a file of some functions, through which the run came, do so?"""
        if not self._differentiates:
            return False
        return any(takes_gradients(other) for unit in {f.unit for f in functions} for other in unit.functions)


def _reached(units: Iterable[Unit], entry: Function) -> set[Function]:
    """Return the functions of some files that an entry may call, by the names that it and these mention.

    What Python or torch calls unnamed counts as called.
    """
    named: dict[str, list[Function]] = {}
    for unit in units:
        for function in unit.functions:
            named.setdefault(function.name, []).append(function)
    unnamed = [function for name in named if name == "forward" or name.startswith("__") for function in named[name]]
    return closure([entry, *unnamed], lambda function: (f for name in function.mentions for f in named.get(name, ())))

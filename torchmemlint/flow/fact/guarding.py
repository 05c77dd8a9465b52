"""Guarding: operations that run a network with gradients off wherever somebody is seen to lead there."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.refs import Site
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.reasons import Pass


class Guarding:
    """What some runs show of who runs networks with gradients off."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._off: set[Site] = set()
        self._on: set[Site] = set()  # in what is run as a program
        for run in runs:
            self._off.update(*(effect.point.chain() for effect in run.effects(fx.Infer)))
            if run.entry.parent is None:
                self._on.update(*(effect.point.chain() for effect in run.effects(fx.Forward)))

    def is_doubtful(self, run: Run, one: Pass) -> bool:
        """Does only a function that nothing calls lead to a pass with gradients on, and all others without?"""
        site, entry = one.point.site, run.entry
        called = entry.parent is None or run.method_of is not None or len(one.point.chain()) < 2
        return not called and site in self._off and site not in self._on

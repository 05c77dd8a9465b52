"""Updates: which optimizers step, and what zeroes gradients, in all runs of some files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import TypeGuard

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import contained
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Object, Ref
from torchmemlint.flow.domain.values import Value, join_all
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.families import family, held, wholes
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.sequence import Moment, Sequence
from torchmemlint.immutable import immutable


@immutable()
class Update:
    """A step, or gradients that are zeroed. `networks`: of all that it is about; None where that is not known."""

    run: Run
    moment: Moment
    networks: frozenset[object] | None

    def reaches(self, module: frozenset[object], within: frozenset[object]) -> frozenset[object]:
        """Return the parts of a module that it is about. `within`: the module, and what it is a part of."""
        return reached(self.networks or frozenset(), module, within)


def reached(networks: Set[object], module: frozenset[object], within: frozenset[object]) -> frozenset[object]:
    """Return the parts of a module that are among some networks. `within`: the module, and what it is a part of."""
    return module if networks & within else module & networks


class Updates:
    """The updates of some runs."""

    def __init__(self, engine: Engine, runs: Iterable[Run]) -> None:
        self._engine = engine
        self._sequences: dict[int, Sequence] = {}
        self.steps: list[Update] = []
        self.zeros: list[Update] = []
        for run in runs:
            if run.life is None:  # what happens there happens where each method is run once
                for event, networks in holding(engine, run):
                    update = Update(run, Moment(self.sequence(run), event), networks)
                    (self.steps if is_step(event) else self.zeros).append(update)

    def sequence(self, run: Run) -> Sequence:
        """Return the order of a run's events."""
        return self._sequences.setdefault(id(run), Sequence(run))

    def after(self, run: Run, backward: Moment, modules: Iterable[Ref]) -> tuple[list[Update], list[Update]]:
        """Return the steps that use what a backward pass leaves in some networks, and what zeroes it before others."""
        used, zeroed = list[Update](), list[Update]()
        for module in sorted(modules, key=lambda r: r.serial):
            own, within = frozenset(family(self._engine, run.state, [module])), frozenset(wholes(module))
            for step in self.steps:
                if parts := step.reaches(own, within):
                    zeros = (z for z in self.zeros if parts <= z.reaches(own, within))
                    zero = next((z for z in zeros if z.moment.separates(backward, step.moment)), None)
                    (used if zero is None else zeroed).append(zero or step)
        return used, zeroed


def holding(engine: Engine, run: Run) -> Iterator[tuple[Event, frozenset[object] | None]]:
    """Yield what steps or zeroes gradients, with the networks that it is about; None where those are not known."""
    for event, holder in updates(run):
        known = None if holder is None else held(run.state, holder)
        yield event, None if known is None else frozenset(family(engine, run.state, known))


def is_step(event: Event) -> bool:
    """Does an optimizer step there?"""
    return getattr(event.effect, "name", "") == "step"


def updates(run: Run) -> Iterator[tuple[Event, Value | None]]:
    """Yield what steps or zeroes gradients, with optimizers, modules or parameters; None where those are not known."""
    for event, effect in run.met(fx.Step):
        yield event, effect.holder
    for event, call in run.met(fx.InvokeMethod):
        if call.name == "step":  # a gradient scaler that is given an optimizer, or what may be an optimizer
            given = join_all(call.arguments.all())
            optimizers = frozenset(r for r in contained(run.state, (given,)) if _is(r, Kind.OPTIMIZER))
            if optimizers:
                yield event, Value(optimizers)
            elif call.arguments.all() and not (given.refs and all(r.symbolic for r in given.refs)):
                continue  # an environment that is given an action
            elif not all(_is(r, Kind.OPAQUE) and "lr_scheduler" in str(r.about) for r in call.receiver.refs):
                yield event, None


def _is(reference: Ref, kind: Kind) -> TypeGuard[Object]:
    return type(reference) is Object and reference.kind is kind

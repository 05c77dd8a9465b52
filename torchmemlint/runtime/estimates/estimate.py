"""An estimate, whole: a plan's use, its reserve, the batch that fits, and what would change it."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from torchmemlint.immutable import immutable
from torchmemlint.runtime.estimates.fitting import largest_batch
from torchmemlint.runtime.estimates.plan import Plan
from torchmemlint.runtime.estimates.remedies import Remedy, remedies
from torchmemlint.runtime.estimates.stepping import Factory, Use, run
from torchmemlint.runtime.simulated import cards

CONTEXT = cards.CONTEXT


@immutable()
class RemedyUse:
    """What a remedy would leave: the peak and reserve in bytes, None where it does not fit or cannot be run."""

    name: str
    peak: int | None
    reserved: int | None
    price: str
    problem: str = ""


@immutable()
class Estimate:
    """What a plan takes. `needed` is the reserve with a CUDA context, as a range; `fits` compares it with the card."""

    factory: str
    plan: Plan
    use: Use
    card: str
    capacity: int
    largest_batch: int | None
    remedies: tuple[RemedyUse, ...]

    @property
    def needed(self) -> tuple[int, int]:
        """Bytes of the device that the process needs, from and to."""
        return self.use.reserved + CONTEXT[0], self.use.reserved + CONTEXT[1]

    @property
    def fits(self) -> bool:
        """Whether the card has that many, taking the larger."""
        return self.needed[1] <= self.capacity

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        use = {**asdict(self.use), "by_kind": {kind.label: nbytes for kind, nbytes in self.use.by_kind.items()}}
        whole: Mapping[str, Any] = {**asdict(self), "use": use, "needed": list(self.needed), "fits": self.fits}
        return dict(whole)


class NoSuchFactoryError(Exception):
    """The model's factory could not be found, or could not be called."""


def factory_of(text: str) -> Factory:
    """The callable that `package.module:name` names, imported with the current folder first on the path."""
    module_name, separator, name = text.partition(":")
    if not separator or not name:
        raise NoSuchFactoryError(f"write the factory as module:callable, not {text!r}")
    folder = os.getcwd()  # noqa: PTH109 (a string is what sys.path takes)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise NoSuchFactoryError(f"{text}: {error}") from error
    if not callable(found):
        raise NoSuchFactoryError(f"{text} is not callable")
    return found  # type: ignore[no-any-return]


def estimate(
    factory: str, plan: Plan, *, card: str | None = None, memory: int | None = None, alternatives: bool = True
) -> Estimate:
    """Estimate a plan on a card, the plan's own unless named, with `memory` bytes if not the card's.

    Raises NoSuchFactoryError, ValueError for a card that is none, and what the model itself raises.
    The plan runs with memory to spare, so that one too large for the card is measured all the same.
    """
    make = factory_of(factory)
    plan = replace(plan, card=card or plan.card, memory=memory or plan.memory)
    wanted = cards.card(plan.card, plan.memory)
    use = run(make, plan)

    def reserved(batch: int) -> int | None:
        if batch == plan.batch:
            return use.reserved
        try:
            return run(make, plan.with_batch(batch)).reserved
        except (ValueError, RuntimeError):  # batch norm, for one, cannot train on a single example
            return None

    most = largest_batch(reserved, wanted.total - CONTEXT[1], plan.batch) if alternatives and plan.inputs else None
    tried = tuple(_tried(make, plan)) if alternatives else ()
    return Estimate(factory, plan, use, cards.title(wanted), wanted.total, most, tried)


def _tried(make: Factory, plan: Plan) -> list[RemedyUse]:
    return [_try(make, remedy) for remedy in remedies(plan)]


def _try(make: Factory, remedy: Remedy) -> RemedyUse:
    try:
        use = run(make, remedy.plan)
    except (ValueError, RuntimeError) as error:
        return RemedyUse(remedy.name, None, None, remedy.price, str(error).splitlines()[0][:200])
    return RemedyUse(remedy.name, use.peak, use.reserved, remedy.price)

"""The bytes alive over a run, by kind: few enough points to draw, no peak lost. Knows nothing of torch."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any

from torchmemlint.immutable import immutable
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.ledger import Ledger

POINTS = 480
"""Points of a curve at most, about as many as a screen can show."""


@immutable()
class Curve:
    """The bytes by kind at some moments, and the moments at which steps ended; moments are counted in events."""

    events: tuple[int, ...] = ()
    by_kind: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    steps: tuple[int, ...] = ()

    @property
    def totals(self) -> tuple[int, ...]:
        """All kinds together, at each moment."""
        return tuple(sum(values) for values in zip(*self.by_kind.values(), strict=True))

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Curve:
        """Back from them."""
        kinds = {kind: tuple(held) for kind, held in values["by_kind"].items()}
        return cls(tuple(values["events"]), kinds, tuple(values["steps"]))


NO_CURVE = Curve()


def curve(ledger: Ledger, device: str, steps: Sequence[int], points: int = POINTS) -> Curve:
    """The curve of a device. The run is cut into stretches of as many events; each gives the moment of most bytes."""
    found = list(highest(ledger, device, points))
    kinds = sorted({kind for _, held in found for kind in held})
    by_kind = {kind.label: tuple(held[kind] for _, held in found) for kind in kinds}
    return Curve(tuple(event for event, _ in found), by_kind, tuple(steps))


def highest(
    ledger: Ledger, device: str, points: int = POINTS, end: int | None = None
) -> Iterator[tuple[int, Counter[Kind]]]:
    """The moments of a curve, each with its bytes by kind; `end` is the event at which the run is over."""
    last = ledger.now if end is None else end
    count = sum(event < last for event, _, _ in ledger.changes(device))
    stretch = max(1, -(-count // points))
    live: Counter[Kind] = Counter()
    total, most, moment, held = 0, -1, 0, live
    for number, (event, index, change) in enumerate(itertools.islice(ledger.changes(device), count), 1):
        live[ledger.kind(index)] += change
        total += change
        if total > most:
            most, moment, held = total, event + 1, Counter(live)
        if number % stretch == 0 or number == count:
            yield moment, held
            most = -1

"""The bytes alive over a run, by kind: few enough points to draw, no peak lost. Knows nothing of torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.ledger import Ledger

POINTS = 480
"""Points of a curve at most, about as many as a screen can show."""


@dataclass(frozen=True, slots=True)
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
    changes = list(ledger.changes(device))
    stretch = max(1, -(-len(changes) // points))
    live: Counter[Kind] = Counter()
    kinds: list[Kind] = []
    moments: list[tuple[int, Counter[Kind]]] = []
    most, highest = -1, live
    moment = 0
    for number, (event, index, change) in enumerate(changes, 1):
        kind = ledger.kind(index)
        if kind not in kinds:
            kinds.append(kind)
        live[kind] += change
        total = live.total()
        if total > most:
            most, highest, moment = total, Counter(live), event + 1
        if number % stretch == 0 or number == len(changes):
            moments.append((moment, highest))
            most = -1
    by_kind = {kind.label: tuple(held[kind] for _, held in moments) for kind in sorted(kinds)}
    return Curve(tuple(event for event, _ in moments), by_kind, tuple(steps))

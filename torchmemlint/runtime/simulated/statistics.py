"""What the model of the allocator counts, under the names of `torch.cuda.memory_stats`. Knows nothing of torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class Stat:
    """A quantity as `torch.cuda.memory_stats` tells it."""

    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def add(self, amount: int) -> None:
        """More, or less where negative."""
        self.current += amount
        if amount > 0:
            self.allocated += amount
            self.peak = max(self.peak, self.current)
        else:
            self.freed -= amount

    def reset_peak(self) -> None:
        """The peak is what there is now."""
        self.peak = self.current


_QUANTITIES = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)
_COUNTS = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free")


@dataclass(slots=True)
class Statistics:
    """Each quantity in all, for small blocks and for large ones."""

    by_pool: dict[str, tuple[Stat, Stat, Stat]] = field(
        default_factory=lambda: {name: (Stat(), Stat(), Stat()) for name in _QUANTITIES}
    )
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))

    def add(self, small: bool, **amounts: int) -> None:
        """More of some quantities, for a block of one of the two pools."""
        for name, amount in amounts.items():
            whole, in_small, in_large = self.by_pool[name]
            whole.add(amount)
            (in_small if small else in_large).add(amount)

    def all(self) -> Iterator[Stat]:
        """Every number."""
        for stats in self.by_pool.values():
            yield from stats

    def nested(self) -> dict[str, Any]:
        """Everything, nested as `torch._C._cuda_memoryStats` gives it."""
        result: dict[str, Any] = {}
        for name, pools in self.by_pool.items():
            result[name] = {
                pool: asdict(stat) for pool, stat in zip(("all", "small_pool", "large_pool"), pools, strict=True)
            }
        result.update(self.counts)
        return result

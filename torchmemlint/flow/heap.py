"""What objects hold: slots over a base that many states share.

A state is copied at every branch and joined after it. What was known before the walk of a function began is most of
the heap and seldom changes in it, so only what was written since is copied, compared and joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from torchmemlint.flow.values import Value, join

Slot: TypeAlias = "tuple[int, str]"  # oid and attribute


class Heap:
    """Slots and their values: those of a base that never changes, with what was written since over them."""

    __slots__ = ("_base", "_written")

    def __init__(
        self, base: Mapping[Slot, Value] | None = None, written: dict[Slot, Value | None] | None = None
    ) -> None:
        self._base: Mapping[Slot, Value] = {} if base is None else base
        self._written: dict[Slot, Value | None] = {} if written is None else written  # None: taken away

    def copy(self) -> Heap:
        """An independent heap over the same base."""
        return Heap(self._base, self._written.copy())

    def get(self, slot: Slot) -> Value | None:
        """The value of a slot."""
        written = self._written
        return written[slot] if slot in written else self._base.get(slot)

    def __setitem__(self, slot: Slot, value: Value) -> None:
        self._written[slot] = value

    def setdefault(self, slot: Slot, value: Value) -> Value:
        """The value of a slot, which is `value` from now on if it has none."""
        known = self.get(slot)
        if known is None:
            self._written[slot] = known = value
        return known

    def pop(self, slot: Slot, default: None = None) -> Value | None:
        """Take a slot away; what it held."""
        known = self.get(slot)
        if known is not None:
            self._written[slot] = None
        return known if known is not None else default

    def written(self) -> Iterator[tuple[Slot, Value]]:
        """What was written over the base and is still there."""
        for slot, value in self._written.items():
            if value is not None:
                yield slot, value

    def changed_since(self, before: Heap) -> list[Slot]:
        """The slots that differ from an earlier state of this heap."""
        return [slot for slot, value in self._written.items() if before.get(slot) is not value]

    def joined(self, other: Heap) -> Heap:
        """The heap after two ways meet; both stand over the same base."""
        mine, theirs = self._written, other._written
        base = self._base.get
        slots = [s for s, value in theirs.items() if (mine[s] if s in mine else base(s)) is not value]
        slots += [s for s, value in mine.items() if s not in theirs and base(s) is not value]
        if not slots:
            return self
        merged = mine.copy()
        for slot in slots:
            a, b = self.get(slot), other.get(slot)
            merged[slot] = b if a is None else a if b is None else join(a, b)
        return Heap(self._base, merged)

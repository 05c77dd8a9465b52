"""What objects hold: slots over a base that many states share.

A state is copied at every branch and joined after it. What was known before the walk of a function began is most of
the heap and seldom changes in it, so only what was written since is copied. Of that, again, a branch changes little:
every heap keeps a trail of the slots written since it and another parted, and only these are compared and joined.

What the base was asked for is taken down: only what somebody missed there is worth another walk once it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeAlias

from torchmemlint.flow.values import Flag, Value, join

Slot: TypeAlias = "tuple[int, str]"  # oid and attribute
ANY = "*"  # the attribute of a slot that stands for all elements of a container
_ELEMENTS = "[]"


class _Trail:
    """The slots written on one way, from where it parted from others to where it parts again."""

    __slots__ = ("before", "length", "slots")

    def __init__(self, before: _Trail | None) -> None:
        self.before = before
        self.length: int = 0 if before is None else before.length + 1
        self.slots: dict[Slot, None] = {}  # in the order of their first writing


class Heap:
    """Slots and their values: those of a base that never changes, with what was written since over them."""

    __slots__ = ("_asked", "_base", "_trail", "_written")

    def __init__(
        self,
        base: Mapping[Slot, Value] | None = None,
        written: dict[Slot, Value | None] | None = None,
        trail: _Trail | None = None,
        asked: set[Slot] | None = None,
    ) -> None:
        self._base: Mapping[Slot, Value] = {} if base is None else base
        self._written: dict[Slot, Value | None] = {} if written is None else written  # None: taken away
        self._trail = _Trail(None) if trail is None else trail  # of this heap alone, and still being written to
        self._asked: set[Slot] = set() if asked is None else asked  # slots of the base, by all that share it

    def copy(self) -> Heap:
        """An independent heap over the same base."""
        trail = self._trail
        if trail.slots or trail.before is None:
            self._trail = _Trail(trail)
            return Heap(self._base, self._written.copy(), _Trail(trail), self._asked)
        return Heap(self._base, self._written.copy(), _Trail(trail.before), self._asked)

    def get(self, slot: Slot) -> Value | None:
        """The value of a slot."""
        written = self._written
        if slot in written:
            return written[slot]
        if (slot[0], _ELEMENTS) not in written:
            self._asked.add(slot)
        return self._base.get(slot)

    def peek(self, slot: Slot) -> Value | None:
        """The same, where nothing comes of it that rests on the base: the slot is overwritten, or only compared."""
        written = self._written
        return written[slot] if slot in written else self._base.get(slot)

    def ask_for_elements(self, oid: int) -> bool:
        """Whatever a container holds is looked at; False where it has started empty here, which asks nothing."""
        if self._began((oid, ANY)):
            return False
        self._asked.add((oid, ANY))
        return True

    def _began(self, slot: Slot) -> bool:
        """Is it an element of a container that has started empty here?"""
        return (slot[0], _ELEMENTS) in self._written

    def begin(self, oid: int, keys: Iterable[str]) -> None:
        """A container starts empty: what the base has of it is another's."""
        for key in (_ELEMENTS, *keys):
            self._written[oid, key] = None
            self._trail.slots[oid, key] = None

    def __setitem__(self, slot: Slot, value: Value) -> None:
        self._written[slot] = value
        self._trail.slots[slot] = None

    def setdefault(self, slot: Slot, value: Value) -> Value:
        """The value of a slot, which is `value` from now on if it has none."""
        known = self.peek(slot)
        if known is None:
            self[slot] = known = value
        return known

    def pop(self, slot: Slot, default: None = None) -> Value | None:
        """Take a slot away; what it held."""
        known = self.peek(slot)
        if known is not None:
            self._written[slot] = None
            self._trail.slots[slot] = None
        return known if known is not None else default

    def of(self, oid: int) -> list[tuple[str, Value]]:
        """All attributes of an object."""
        slots = chain(self._base.items(), self._written.items())
        now = {attribute: value for (owner, attribute), value in slots if owner == oid}
        return [(attribute, value) for attribute, value in now.items() if value is not None]

    def written(self) -> Iterator[tuple[Slot, Value]]:
        """What was written over the base and is still there."""
        for slot, value in self._written.items():
            if value is not None:
                yield slot, value

    def changed_since(self, before: Heap) -> list[Slot]:
        """The slots that differ from an earlier state of this heap."""
        _, mine, theirs = _parted(self._trail, before._trail)
        written = self._written
        return [s for s in {**mine, **theirs} if s in written and before.peek(s) is not written[s]]

    def joined(self, other: Heap) -> Heap:
        """The heap after two ways meet; both stand over the same base."""
        common, mine, theirs = _parted(self._trail, other._trail)
        slots = [s for s in theirs if self.peek(s) is not other.peek(s)]
        slots += [s for s in mine if s not in theirs and self.peek(s) is not other.peek(s)]
        if not slots:
            return self
        merged = self._written.copy()
        for slot in slots:
            a, b = self.peek(slot), other.peek(slot)
            both = slot in self._written and slot in other._written
            if not both and not (self._began(slot) or other._began(slot)) and not isinstance(a or b, Flag):
                self._asked.add(slot)  # by what reads it from now on; a flag stays, whatever the base has
            merged[slot] = b if a is None else a if b is None else join(a, b)
        for slot in theirs:
            if slot not in merged and slot[1] == _ELEMENTS:
                merged[slot] = other._written[slot]  # that it has started empty
        trail = _Trail(common)
        trail.slots = {**mine, **theirs}
        return Heap(self._base, merged, trail, self._asked)


def _parted(a: _Trail, b: _Trail) -> tuple[_Trail | None, dict[Slot, None], dict[Slot, None]]:
    """Where two ways parted, and the slots written since on the one and on the other."""
    on_a: list[_Trail] = []
    on_b: list[_Trail] = []
    one: _Trail | None = a
    other: _Trail | None = b
    while one is not other:
        if other is None or (one is not None and one.length >= other.length):
            assert one is not None
            on_a.append(one)
            one = one.before
        else:
            on_b.append(other)
            other = other.before
    return one, _slots(on_a), _slots(on_b)


def _slots(trails: list[_Trail]) -> dict[Slot, None]:
    """The slots of these parts of a way, the last part first."""
    if len(trails) == 1:
        return trails[0].slots
    found: dict[Slot, None] = {}
    for trail in reversed(trails):
        found.update(trail.slots)
    return found

"""A heap is joined by what changed since two of them parted, and no other slot is looked at."""

from __future__ import annotations

import random

from torchmemlint.flow.heap import Heap, Slot
from torchmemlint.flow.values import Constant, Unknown, Value, join

SLOTS: list[Slot] = [(number, name) for number in range(6) for name in ("a", "[]")]


def content(heap: Heap) -> dict[Slot, Value | None]:
    return {slot: heap.get(slot) for slot in SLOTS}


def joined(a: Heap, b: Heap) -> dict[Slot, Value | None]:
    """What a comparison of all slots gives."""
    found: dict[Slot, Value | None] = {}
    for slot in SLOTS:
        x, y = a.get(slot), b.get(slot)
        found[slot] = x if x is y or y is None else y if x is None else join(x, y)
    return found


def test_joins_as_a_comparison_of_all_slots_would() -> None:
    chance = random.Random(4)
    for _ in range(300):
        heaps = [Heap({slot: Constant(0, True) for slot in SLOTS[:5]})]
        for _ in range(40):
            heap = chance.choice(heaps)
            match chance.randrange(6):
                case 0:
                    heaps.append(heap.copy())
                case 1:
                    other = chance.choice(heaps)
                    expected, written = joined(heap, other), [slot for slot, _ in heap.written()]
                    heaps.append(heap.joined(other))
                    assert content(heaps[-1]) == expected
                    assert [slot for slot, _ in heaps[-1].written() if slot in written] == written
                case 2:
                    heap.pop(chance.choice(SLOTS))
                case 3:
                    heap.setdefault(chance.choice(SLOTS), Unknown())
                case _:
                    heap[chance.choice(SLOTS)] = Constant(chance.randrange(3), True)
            before = chance.choice(heaps)
            changed = {slot for slot in SLOTS if heap.get(slot) is not before.get(slot)}
            assert set(heap.changed_since(before)) <= changed
            assert {slot for slot, _ in heap.written() if slot in changed} <= set(heap.changed_since(before))


def test_a_copy_and_its_original_do_not_see_each_other() -> None:
    heap = Heap()
    heap[1, "a"] = Constant(1, True)
    copy = heap.copy()
    copy[1, "a"] = Constant(2, True)
    heap[2, "a"] = Constant(3, True)
    assert heap.get((1, "a")) == Constant(1, True)
    assert copy.get((2, "a")) is None


def test_joined_with_itself_or_an_untouched_copy_it_is_the_same() -> None:
    heap = Heap()
    heap[1, "a"] = Constant(1, True)
    assert heap.joined(heap) is heap
    assert heap.joined(heap.copy()) is heap

"""A model of the caching allocator with `expandable_segments:True`: segments that grow at their end.

It follows `c10/cuda/CUDACachingAllocator.cpp` (`try_allocate_expandable_block`, `map_block`, `unmap_block`) for one
stream: one range of addresses for small blocks and one for large ones, to which the device's memory is mapped in pages.
A free block at the end of what is mapped serves a larger request, once the missing pages are mapped. Knows nothing of
torch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import groupby

from torchmemlint.runtime.simulated.allocator import (
    LARGE_SEGMENT,
    ROUND,
    SMALL_SEGMENT,
    Block,
    CachingAllocator,
    OutOfMemory,
    key_of,
)

_RANGE = 1 << 46
"""The addresses of a segment, more than any device has bytes."""


class ExpandableAllocator(CachingAllocator):
    """One device's memory. A block that nothing is mapped to counts as one in use, so that none is joined with it."""

    expandable = True

    def __init__(self, limit: int | None = None, max_split: int | None = None, device: int = 0) -> None:
        super().__init__(limit, max_split, device)
        self._unmapped: dict[bool, list[Block]] = {True: [], False: []}

    def _cached(self, size: int, small: bool) -> Block | None:
        """The free block that fits best; one before unmapped addresses counts as large as it can become."""
        pool = self._free[small]
        place = bisect_left(pool, (size, -1), key=key_of)
        if place == len(pool):
            return None
        if self.max_split is not None and size < self.max_split <= pool[place].size:
            return None
        while place + 1 < len(pool) and self._room(pool[place + 1]) < self._room(pool[place]):
            place += 1
        found = pool[place]
        self._take(found)
        return found

    def _room(self, block: Block) -> int:
        return block.size + (block.following.size if block.following in self._unmapped[block.small] else 0)

    def _new_segment(self, size: int, small: bool, nbytes: int) -> Block:
        """A free block of so many bytes at least, for which pages are mapped."""
        pages = self._pages(size, small)
        if not self._fits(pages[1] - pages[0]):
            self._statistics.counts["num_alloc_retries"] += 1
            self.empty_cache()
            pages = self._pages(size, small)
            if not self._fits(pages[1] - pages[0]):
                self._statistics.counts["num_ooms"] += 1
                if self.out_of_memory is not None:
                    self.out_of_memory(nbytes)
                raise OutOfMemory(self._complaint(nbytes))
        hole = next(one for one in self._unmapped[small] if self._reach(one) >= size)
        self._map(hole, pages[1] - hole.address)
        before, after = hole.previous, hole.following
        if after is not None and not after.used:
            self._take(after)
            self._join(hole, after)
        if before is not None and not before.used:
            self._take(before)
            self._join(before, hole)
            return before
        return hole

    def _pages(self, size: int, small: bool) -> tuple[int, int]:
        """The addresses of the pages that are to be mapped for a block, from the first hole that is large enough."""
        if not self._unmapped[small]:
            hole = Block(self._next_address, _RANGE, small, used=True)
            self._next_address += _RANGE
            self._segments[hole.address] = hole
            self._unmapped[small].append(hole)
        hole = next(one for one in self._unmapped[small] if self._reach(one) >= size)
        page = SMALL_SEGMENT if small else LARGE_SEGMENT
        missing = size - (self._reach(hole) - hole.size)
        return hole.address, hole.address - (-missing // page) * page

    def _reach(self, hole: Block) -> int:
        """The bytes of a hole with the free block before it."""
        before = hole.previous
        return hole.size + (before.size if before is not None and not before.used else 0)

    def _map(self, hole: Block, nbytes: int) -> None:
        """Map pages to the beginning of a hole, which becomes a free block in no pool."""
        if nbytes < hole.size:
            rest = self._split_off(hole, nbytes)
            rest.used = True
            self._unmapped[hole.small].append(rest)
        self._unmapped[hole.small].remove(hole)
        self._unmapped[hole.small].sort(key=key_of)
        hole.used = False
        self._statistics.add(hole.small, reserved_bytes=nbytes)
        self.highest_reserved = max(self.highest_reserved, self.reserved)
        self._tell("segment_map", hole.address, nbytes)

    def _should_split(self, block: Block, size: int) -> bool:
        return block.size - size >= ROUND

    def empty_cache(self) -> None:
        """Unmap the pages that hold no block in use."""
        for small, pool in self._free.items():
            page = SMALL_SEGMENT if small else LARGE_SEGMENT
            for block in list(pool):
                origin = self._origin(block)
                first = origin - (origin - block.address) // page * page
                last = origin + (block.address + block.size - origin) // page * page
                if first < last:
                    self._unmap(block, first, last)

    def _origin(self, block: Block) -> int:
        return max(address for address in self._segments if address <= block.address)

    def _unmap(self, block: Block, first: int, last: int) -> None:
        """Unmap some pages of a free block. What is left of it before and after stays free."""
        self._take(block)
        if first > block.address:
            kept, block = block, self._split_off(block, first - block.address)
            self._put(kept)
        if last < block.address + block.size:
            self._put(self._split_off(block, last - block.address))
        block.used = True
        self._statistics.add(block.small, reserved_bytes=first - last)
        self._tell("segment_unmap", block.address, block.size)
        holes = self._unmapped[block.small]
        after, before = block.following, block.previous
        if after is not None and after in holes:
            holes.remove(after)
            self._join(block, after)
        if before is not None and before in holes:
            self._join(before, block)
        else:
            holes.append(block)
        holes.sort(key=key_of)

    @staticmethod
    def _split_off(block: Block, size: int) -> Block:
        rest = Block(block.address + size, block.size - size, block.small, previous=block, following=block.following)
        if rest.following is not None:
            rest.following.previous = rest
        block.following, block.size = rest, size
        return rest

    def _pieces(self) -> Iterator[list[Block]]:
        """The blocks of each stretch of addresses to which pages are mapped."""
        for _, first in sorted(self._segments.items()):
            unmapped = self._unmapped[first.small].__contains__
            yield from (list(blocks) for is_hole, blocks in groupby(self.blocks(first), unmapped) if not is_hole)

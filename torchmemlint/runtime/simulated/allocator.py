"""A model of torch's CUDA caching allocator: which bytes it takes from the device for what a program asks.

It follows `c10/cuda/CUDACachingAllocator.cpp` with default settings and one stream, and knows `max_split_size_mb`.
`expandable.py` has the segments that grow. Not modelled: garbage collection thresholds, rounding to powers of two, CUDA
graphs' pools. Knows nothing of torch.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torchmemlint.runtime.simulated.statistics import Stat, Statistics

ROUND = 512
"""Every block is a multiple of this, and none is smaller."""
SMALL = 1 << 20
"""The largest block that comes from the pool of small ones."""
SMALL_SEGMENT = 2 << 20
LARGE_SEGMENT = 20 << 20
LARGE_REQUEST = 10 << 20
"""From here on a block gets a segment of its own size."""
ROUND_SEGMENT = 2 << 20
_FIRST_ADDRESS = 0x7F00_0000_0000


class OutOfMemory(MemoryError):  # noqa: N818 - torch's own is named so
    """The device has not got the bytes; the text is torch's own."""


def rounded(nbytes: int) -> int:
    """The size of the block that serves a request."""
    return max(ROUND, -(-nbytes // ROUND) * ROUND)


def segment_size(size: int) -> int:
    """What is taken from the device when no free block serves a block of this size."""
    if size <= SMALL:
        return SMALL_SEGMENT
    if size < LARGE_REQUEST:
        return LARGE_SEGMENT
    return -(-size // ROUND_SEGMENT) * ROUND_SEGMENT


@dataclass(slots=True, eq=False)
class Block:
    """A piece of a segment, with its neighbours in it. `requested` is 0 while the block is free."""

    address: int
    size: int
    small: bool
    requested: int = 0
    used: bool = False
    previous: Block | None = None
    following: Block | None = None

    @property
    def split(self) -> bool:
        """Whether it is only a part of its segment."""
        return self.previous is not None or self.following is not None


def key_of(block: Block) -> tuple[int, int]:
    """By what the free blocks of a pool are ordered."""
    return block.size, block.address


def _readable(nbytes: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= factor:
            return f"{nbytes / factor:.2f} {unit}"
    return f"{nbytes} bytes"


class CachingAllocator:
    """One device's memory. `limit` is what the device can give; `max_split` the largest block that is split."""

    expandable = False

    def __init__(self, limit: int | None = None, max_split: int | None = None, device: int = 0) -> None:
        self.limit = limit
        self.total = limit
        self.max_split = max_split
        self.device = device
        self._free: dict[bool, list[Block]] = {True: [], False: []}
        self._segments: dict[int, Block] = {}
        self._next_address = _FIRST_ADDRESS
        self._statistics = Statistics()
        self.highest_allocated = 0
        self.highest_reserved = 0
        self.event: Callable[[str, int, int], None] | None = None  # is told each action, its address and its bytes
        self.out_of_memory: Callable[[int], None] | None = None  # is told the request that fails

    # --- what there is

    def _stat(self, name: str) -> Stat:
        return self._statistics.by_pool[name][0]

    @property
    def allocated(self) -> int:
        """The bytes of the blocks in use."""
        return self._stat("allocated_bytes").current

    @property
    def peak_allocated(self) -> int:
        """The most of them at once."""
        return self._stat("allocated_bytes").peak

    @property
    def reserved(self) -> int:
        """The bytes taken from the device."""
        return self._stat("reserved_bytes").current

    @property
    def peak_reserved(self) -> int:
        """The most of them at once."""
        return self._stat("reserved_bytes").peak

    @property
    def requested(self) -> int:
        """The bytes asked for by what is in use, before rounding."""
        return self._stat("requested_bytes").current

    # --- allocating

    def allocate(self, nbytes: int) -> Block | None:
        """A block for so many bytes; None for 0 bytes. Raises OutOfMemory."""
        if nbytes <= 0:
            return None
        size = rounded(nbytes)
        small = size <= SMALL
        block = self._cached(size, small) or self._new_segment(size, small, nbytes)
        if self._should_split(block, size):
            self._split(block, size)
        block.used, block.requested = True, nbytes
        self._statistics.add(
            small,
            allocation=1,
            active=1,
            allocated_bytes=block.size,
            active_bytes=block.size,
            requested_bytes=nbytes,
        )
        self.highest_allocated = max(self.highest_allocated, self.allocated)  # a program's resets leave these alone
        self._tell("alloc", block.address, nbytes)
        return block

    def _tell(self, action: str, address: int, nbytes: int) -> None:
        if self.event is not None:
            self.event(action, address, nbytes)

    def _cached(self, size: int, small: bool) -> Block | None:
        """The smallest free block that serves; of two alike, the one with the lower address."""
        pool = self._free[small]
        place = bisect_left(pool, (size, -1), key=key_of)
        if place == len(pool):
            return None
        found = pool[place]
        if self.max_split is not None:
            if size < self.max_split <= found.size:
                return None  # blocks that large are kept whole for requests as large
            if size >= self.max_split and found.size >= size + LARGE_SEGMENT:
                return None
        self._take(found)
        return found

    def _new_segment(self, size: int, small: bool, nbytes: int) -> Block:
        wanted = segment_size(size)
        if not self._fits(wanted):
            self._statistics.counts["num_alloc_retries"] += 1
            self._release_oversize(size)
            if not self._fits(wanted):
                self.empty_cache()
            if not self._fits(wanted):
                self._statistics.counts["num_ooms"] += 1
                if self.out_of_memory is not None:
                    self.out_of_memory(nbytes)
                raise OutOfMemory(self._complaint(nbytes))
        block = Block(self._next_address, wanted, small)
        self._next_address += wanted
        self._segments[block.address] = block
        self._statistics.counts["num_device_alloc"] += 1
        self._statistics.add(small, segment=1, reserved_bytes=wanted)
        self.highest_reserved = max(self.highest_reserved, self.reserved)
        self._tell("segment_alloc", block.address, wanted)
        return block

    def _fits(self, wanted: int) -> bool:
        return self.limit is None or self.reserved + wanted <= self.limit

    def _should_split(self, block: Block, size: int) -> bool:
        rest = block.size - size
        if block.small:
            return rest >= ROUND
        return rest > SMALL and (self.max_split is None or size < self.max_split)

    def _split(self, block: Block, size: int) -> None:
        rest = Block(block.address + size, block.size - size, block.small, previous=block, following=block.following)
        if rest.following is not None:
            rest.following.previous = rest
        block.following, block.size = rest, size
        self._put(rest)

    # --- freeing

    def free(self, block: Block | None) -> None:
        """Give a block back to the cache, joined with its free neighbours."""
        if block is None:
            return
        if not block.used:
            raise ValueError("the block is free already")
        for action in ("free_requested", "free_completed"):
            self._tell(action, block.address, block.requested)
        self._statistics.add(
            block.small,
            allocation=-1,
            active=-1,
            allocated_bytes=-block.size,
            active_bytes=-block.size,
            requested_bytes=-block.requested,
        )
        block.used, block.requested = False, 0
        before, after = block.previous, block.following
        if before is not None and not before.used:
            self._take(before)
            self._join(before, block)
            block = before
        if after is not None and not after.used:
            self._take(after)
            self._join(block, after)
        self._put(block)

    @staticmethod
    def _join(first: Block, second: Block) -> None:
        first.size += second.size
        first.following = second.following
        if first.following is not None:
            first.following.previous = first

    def _put(self, block: Block) -> None:
        insort(self._free[block.small], block, key=key_of)
        if block.split:
            self._statistics.add(block.small, inactive_split=1, inactive_split_bytes=block.size)

    def _take(self, block: Block) -> None:
        pool = self._free[block.small]
        place = bisect_left(pool, key_of(block), key=key_of)
        if pool[place] is not block:
            raise AssertionError("a free block is not in its pool")
        del pool[place]
        if block.split:
            self._statistics.add(block.small, inactive_split=-1, inactive_split_bytes=-block.size)

    # --- giving back

    def empty_cache(self) -> None:
        """Give back the segments that hold no block in use."""
        for pool in self._free.values():
            for block in [one for one in pool if not one.split]:
                self._release(block)

    def _release_oversize(self, size: int) -> None:
        """With a largest block to split: give back what large cached blocks would make the request fit."""
        if self.max_split is None:
            return
        enough = max(size, self.max_split)
        released = 0
        for block in [one for one in self._free[False] if not one.split and one.size >= enough][:1] or [
            one for one in reversed(self._free[False]) if not one.split and one.size >= self.max_split
        ]:
            if released >= enough:
                return
            released += block.size
            self._release(block)

    def _release(self, block: Block) -> None:
        self._take(block)
        del self._segments[block.address]
        self._statistics.counts["num_device_free"] += 1
        self._statistics.add(block.small, segment=-1, reserved_bytes=-block.size)
        self._tell("segment_free", block.address, block.size)

    def _complaint(self, nbytes: int) -> str:
        total = self.total or 0
        limit = self.limit or 0
        text = (
            f"CUDA out of memory. Tried to allocate {_readable(nbytes)}. GPU {self.device} has a total capacity of "
            f"{_readable(total)} of which {_readable(total - self.reserved)} is free. "
        )
        if limit < total:
            text += f"{_readable(limit)} allowed; "
        return text + (
            f"Of the allocated memory {_readable(self.allocated)} is allocated by PyTorch, and "
            f"{_readable(self.reserved - self.allocated)} is reserved by PyTorch but unallocated. "
            "(simulated by torchmemlint: no GPU was used)"
        )

    # --- what it tells

    def reset_peaks(self) -> None:
        """As `torch.cuda.reset_peak_memory_stats`."""
        for stat in self._statistics.all():
            stat.reset_peak()

    def reset_accumulated(self) -> None:
        """As `torch.cuda.reset_accumulated_memory_stats`."""
        for stat in self._statistics.all():
            stat.allocated = stat.freed = 0
        self._statistics.counts.update(dict.fromkeys(self._statistics.counts, 0))

    def statistics(self) -> dict[str, Any]:
        """Everything that is counted, nested as `torch._C._cuda_memoryStats` gives it."""
        result = self._statistics.nested()
        result["max_split_size"] = -1 if self.max_split is None else self.max_split
        for name in ("oversize_allocations", "oversize_segments"):
            result[name] = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}
        return result

    def blocks(self, first: Block) -> Iterator[Block]:
        """A segment's blocks, from its first."""
        block: Block | None = first
        while block is not None:
            yield block
            block = block.following

    def snapshot(self) -> list[dict[str, Any]]:
        """The segments and their blocks, as `torch.cuda.memory_snapshot` gives them."""
        result: list[dict[str, Any]] = []
        for blocks in self._pieces():
            allocated = sum(block.size for block in blocks if block.used)
            result.append(
                {
                    "device": self.device,
                    "address": blocks[0].address,
                    "total_size": sum(block.size for block in blocks),
                    "allocated_size": allocated,
                    "active_size": allocated,
                    "requested_size": sum(block.requested for block in blocks),
                    "stream": 0,
                    "segment_type": "small" if blocks[0].small else "large",
                    "segment_pool_id": (0, 0),
                    "is_expandable": self.expandable,
                    "frames": [],
                    "blocks": [
                        {
                            "address": block.address,
                            "size": block.size,
                            "requested_size": block.requested,
                            "state": "active_allocated" if block.used else "inactive",
                            "frames": [],
                        }
                        for block in blocks
                    ],
                }
            )
        return result

    def _pieces(self) -> Iterator[list[Block]]:
        """The blocks of each segment, ordered by address."""
        for _, first in sorted(self._segments.items()):
            yield list(self.blocks(first))


class Allocations:
    """A listener of the tracker that takes and gives back blocks for the storages on some devices."""

    def __init__(self, allocators: dict[str, CachingAllocator]) -> None:
        self.allocators = allocators
        self._blocks: dict[int, Block | None] = {}

    def allocated(self, index: int, nbytes: int, device: str) -> None:
        """A storage was made."""
        allocator = self.allocators.get(device)
        if allocator is not None:
            self._blocks[index] = allocator.allocate(nbytes)

    def freed(self, index: int, nbytes: int, device: str) -> None:
        """A storage is gone."""
        allocator = self.allocators.get(device)
        if allocator is not None:
            allocator.free(self._blocks.pop(index, None))

    def block(self, index: int) -> Block | None:
        """The block of a storage that lives on one of the devices."""
        return self._blocks.get(index)

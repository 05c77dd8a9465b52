"""How the memory that torch had reserved was cut up when a request failed: what was free, and in which pieces.

The snapshot has the segments of its own moment; those of an earlier one are found by taking back what the trace shows
in between. A block may be larger than what was asked for; where it is not known, it is rounded as torch does.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.immutable import immutable
from torchmemlint.runtime.simulated.allocator import SMALL, SMALL_SEGMENT, rounded, segment_size
from torchmemlint.snapshot.history import Failure, History
from torchmemlint.snapshot.records import Action, Snapshot

_LARGE_PAGE = 20 << 20  # what an expandable segment grows by, for blocks over 1 MiB


@immutable()
class Layout:
    """Bytes that torch had reserved; `pieces` are the free ones of the pool that would serve the request."""

    reserved: int
    largest_free: int
    pieces: int
    free: int
    needed: int  # what torch asked the device for
    missing: int  # of it, what the device had not
    expandable: bool

    @property
    def joined_would_fit(self) -> bool:
        """Whether the free pieces together are as large as the request, and no one of them is."""
        return self.free >= self.needed > self.largest_free


def reserved_at(snapshot: Snapshot, device: int, place: int) -> int:
    """The bytes that torch had taken from a device before an event of its trace."""
    return sum(size for _, size in _segments_at(snapshot, device, place))


def layout(snapshot: Snapshot, history: History, failure: Failure) -> Layout:
    """The memory of a device when a request failed."""
    device = history.device
    segments = _segments_at(snapshot, device, failure.place)
    expandable = any(one.expandable for one in snapshot.of(device))
    small = rounded(failure.requested) <= SMALL
    serving = [(start, size) for start, size in segments if expandable or (size <= SMALL_SEGMENT) == small]
    gaps = list(_gaps(serving, sorted(_used(snapshot, history, failure))))
    needed = _needed(failure.requested, expandable=expandable)
    return Layout(
        sum(size for _, size in segments),
        max(gaps, default=0),
        len(gaps),
        sum(gaps),
        needed,
        max(0, needed - failure.device_free),
        expandable,
    )


def _needed(requested: int, *, expandable: bool) -> int:
    size = rounded(requested)
    if not expandable:
        return segment_size(size)
    page = SMALL_SEGMENT if size <= SMALL else _LARGE_PAGE
    return -(-size // page) * page


def _segments_at(snapshot: Snapshot, device: int, place: int) -> list[tuple[int, int]]:
    """The segments (address and bytes) before an event of the trace."""
    now = {one.address: one.size for one in snapshot.of(device)}
    events = snapshot.traces.get(device)
    if events is None:
        return sorted(now.items())
    for at in range(len(events) - 1, place - 1, -1):
        action, address, size = events.actions[at], events.addresses[at], events.sizes[at]
        if action == Action.SEGMENT_ALLOC:
            now.pop(address, None)
        elif action == Action.SEGMENT_MAP:
            _take(now, address, size)
        elif action in (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP):
            now[address] = size
    return sorted(now.items())


def _take(now: dict[int, int], address: int, size: int) -> None:
    """Take a stretch out of the segment that it lies in."""
    found = next((start for start, length in now.items() if start <= address < start + length), None)
    if found is None:
        return
    length = now.pop(found)
    if address > found:
        now[found] = address - found
    if found + length > address + size:
        now[address + size] = found + length - address - size


def _used(snapshot: Snapshot, history: History, failure: Failure) -> Iterator[tuple[int, int]]:
    """Address and bytes of the blocks in use before the request."""
    known = {block.address: block for one in snapshot.of(history.device) for block in one.blocks}
    for index in history.ledger.alive_at(failure.event, history.name):
        address, size = history.addresses[index], rounded(history.ledger.nbytes(index))
        block = known.get(address)
        if block is not None and block.allocated and block.requested == history.ledger.nbytes(index):
            size = block.size
        yield address, size
    for block in known.values():
        if block.waiting:
            yield block.address, block.size


def _gaps(segments: list[tuple[int, int]], used: list[tuple[int, int]]) -> Iterator[int]:
    """The free stretches, in bytes; both lists are in order."""
    place = 0
    for start, size in segments:
        at, end = start, start + size
        while place < len(used) and used[place][0] < end:
            address, length = used[place]
            place += 1
            if address < start:
                continue
            if address > at:
                yield address - at
            at = max(at, address + length)
        if end > at:
            yield end - at

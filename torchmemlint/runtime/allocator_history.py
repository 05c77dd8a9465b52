"""What CUDA's caching allocator tells of itself: its segments, and who had memory of it that no tensor owned.

A dispatch mode sees tensors. The allocator also serves the workspaces of cuBLAS and cuDNN and what operations take for
themselves; its recorded history has the lines of these. Reads what `torch.cuda.memory._snapshot` documents, and knows
nothing of torch itself. What does not go through torch's allocator (NCCL's own buffers, the context) is not there.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torchmemlint.immutable import immutable
from torchmemlint.runtime.ledger import NOWHERE, Site

_ROUND = 512  # bytes of the smallest block


@immutable()
class Outside:
    """What a line had of the allocator that no tensor owned: the most bytes at once, and how often it asked."""

    path: str
    line: int
    function: str
    nbytes: int
    times: int


@immutable()
class AllocatorUse:
    """The allocator at the end of a run, and what no tensor owned while it went on."""

    segments: int
    reserved: int
    allocated: int
    outside_peak: int  # the most bytes at once
    outside: tuple[Outside, ...]  # most first
    whole: bool  # whether the history reaches back to the beginning

    @classmethod
    def from_json(cls, values: Mapping[str, Any] | None) -> AllocatorUse | None:
        """Back from JSON's types."""
        if values is None:
            return None
        return cls(**{**values, "outside": tuple(Outside(**one) for one in values["outside"])})


def allocator_use(
    snapshot: Mapping[str, Any],
    device: int,
    owned: Iterable[tuple[int, int]],
    is_users: Callable[[str], bool],
    most_entries: int | None = None,
) -> AllocatorUse:
    """What a snapshot says of a device.

    `owned` are the addresses and bytes of the tensors' storages, in the order in which they were made; `is_users` tells
    the user's files. Of a history of `most_entries` the beginning may be missing.
    """
    segments = [one for one in snapshot["segments"] if one.get("device", device) == device]
    traces: Sequence[Sequence[Mapping[str, Any]]] = snapshot.get("device_traces", ())
    entries = traces[device] if device < len(traces) else ()
    peak, outside = _outside(entries, owned, is_users)
    return AllocatorUse(
        len(segments),
        sum(one["total_size"] for one in segments),
        sum(one["allocated_size"] for one in segments),
        peak,
        outside,
        most_entries is None or len(entries) < most_entries,
    )


def _outside(
    entries: Sequence[Mapping[str, Any]], owned: Iterable[tuple[int, int]], is_users: Callable[[str], bool]
) -> tuple[int, tuple[Outside, ...]]:
    waiting: defaultdict[int, deque[int]] = defaultdict(deque)  # by address, the storages that were seen there
    for address, nbytes in owned:
        waiting[address].append(_block(nbytes))
    held: dict[int, tuple[Site, int]] = {}  # by address, what no tensor owns now
    now: Counter[Site] = Counter()
    most: Counter[Site] = Counter()
    times: Counter[Site] = Counter()
    live = peak = 0
    for entry in entries:
        address = entry.get("addr", 0)
        if entry["action"] == "alloc":
            nbytes = _block(entry["size"])
            if _is_owned(waiting[address], nbytes):
                continue
            site = _users_line(entry.get("frames", ()), is_users)
            held[address] = site, nbytes
            times[site] += 1
            now[site] += nbytes
            most[site] = max(most[site], now[site])
            live += nbytes
            peak = max(peak, live)
        elif entry["action"] == "free_completed" and address in held:
            site, nbytes = held.pop(address)
            now[site] -= nbytes
            live -= nbytes
    lines = [Outside(site.path, site.line, site.function, nbytes, times[site]) for site, nbytes in most.most_common()]
    return peak, tuple(lines)


def _is_owned(waiting: deque[int], nbytes: int) -> bool:
    """Whether the next storage at an address has this size; those before it were no allocations of their own."""
    if nbytes not in waiting:
        return False
    while waiting.popleft() != nbytes:
        pass
    return True


def _block(nbytes: int) -> int:
    return -(-nbytes // _ROUND) * _ROUND


def _users_line(frames: Iterable[Mapping[str, Any]], is_users: Callable[[str], bool]) -> Site:
    """The innermost line of the user's; frames begin with the innermost. A backward's own threads have none."""
    for frame in frames:
        if is_users(frame["filename"]):
            return Site(frame["filename"], frame["line"], frame["name"])
    return NOWHERE

"""What a snapshot of torch's CUDA allocator holds, in a form that fits into memory: columns of numbers."""

from __future__ import annotations

import enum
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchmemlint.immutable import immutable


class Action(enum.IntEnum):
    """What the allocator did; the names are those of `torch.cuda.memory._snapshot`."""

    ALLOC = 0
    FREE_REQUESTED = 1
    FREE_COMPLETED = 2
    SEGMENT_ALLOC = 3
    SEGMENT_FREE = 4
    SEGMENT_MAP = 5
    SEGMENT_UNMAP = 6
    OOM = 7
    SNAPSHOT = 8
    OTHER = 9


ACTIONS: Mapping[str, Action] = {
    "free": Action.FREE_COMPLETED,
    **{action.name.lower(): action for action in Action if action is not Action.OTHER},
}


@immutable()
class Frame:
    """A line of a call stack. C++ frames have a line of 0, or the name of no Python file."""

    filename: str
    line: int
    name: str

    @property
    def python(self) -> bool:
        """Whether it is a line of Python."""
        return self.line > 0 and self.filename.endswith((".py", ">", ".ipynb"))


class Stack(int):
    """The number of a call stack among those of a snapshot."""


@immutable()
class Block:
    """A piece of a segment. `size` is what the allocator gives, `requested` what was asked for."""

    address: int
    size: int
    requested: int
    state: str
    stack: Stack

    @property
    def allocated(self) -> bool:
        """Whether a tensor has it."""
        return self.state == "active_allocated"

    @property
    def waiting(self) -> bool:
        """Whether it is freed, and not free yet: another stream may still use it."""
        return self.state in ("active_awaiting_free", "active_pending_free")


@immutable()
class Segment:
    """What was taken from the device at once."""

    device: int
    address: int
    size: int
    stream: int
    kind: str  # small or large
    pool: tuple[int, ...]
    expandable: bool
    blocks: tuple[Block, ...]


@dataclass(slots=True)
class Events:
    """The events of one device, in order, as columns. `free` has the bytes that CUDA had free, by the event's place."""

    actions: array[int] = field(default_factory=lambda: array("B"))
    addresses: array[int] = field(default_factory=lambda: array("Q"))
    sizes: array[int] = field(default_factory=lambda: array("q"))
    stacks: array[int] = field(default_factory=lambda: array("i"))
    times: array[int] = field(default_factory=lambda: array("q"))  # microseconds since 1970, 0 where not told
    free: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.actions)

    def part(self, start: int, end: int) -> Events:
        """The events from one place to another."""
        return Events(
            self.actions[start:end],
            self.addresses[start:end],
            self.sizes[start:end],
            self.stacks[start:end],
            self.times[start:end],
            {place - start: free for place, free in self.free.items() if start <= place < end},
        )


@immutable()
class Annotation:
    """Where something that was named began or ended, such as an optimizer's step."""

    name: str
    starts: bool
    device: int
    time: int


@dataclass(slots=True)
class Snapshot:
    """A whole snapshot. `stacks` are call stacks, the innermost frame first, as numbers of `frames`."""

    segments: tuple[Segment, ...]
    traces: Mapping[int, Events]
    frames: list[Frame]
    stacks: list[tuple[int, ...]]
    settings: Mapping[str, Any]
    annotations: tuple[Annotation, ...]

    def stack(self, number: int) -> Iterator[Frame]:
        """The frames of a call stack."""
        return map(self.frames.__getitem__, self.stacks[number])

    @property
    def devices(self) -> list[int]:
        """The devices that have segments or events."""
        used = {segment.device for segment in self.segments}
        return sorted(used | {device for device, events in self.traces.items() if len(events)})

    def of(self, device: int) -> list[Segment]:
        """The segments of a device, by address."""
        return sorted((one for one in self.segments if one.device == device), key=lambda one: one.address)

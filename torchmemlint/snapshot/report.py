"""What `torchmemlint oom` found out, as plain data. Bytes unless said otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from torchmemlint.immutable import immutable
from torchmemlint.runtime.curve import NO_CURVE, Curve
from torchmemlint.runtime.ledger import Site


@immutable()
class Explained:
    """A finding of the linter that speaks of a line. `how` is `here`, or `caller` where it speaks of a calling line."""

    code: str
    path: str
    line: int
    message: str
    fix: str  # empty: none
    applicability: str  # of the fix; empty: none
    confidence: str
    how: str


@immutable()
class LineUse:
    """The bytes of one line at a moment, by what they were for."""

    site: Site
    nbytes: int
    blocks: int
    kinds: Mapping[str, int]
    findings: tuple[Explained, ...] = ()


@immutable()
class FunctionUse:
    """The bytes that the lines of one function allocated."""

    path: str
    function: str
    nbytes: int


@immutable()
class Branch:
    """A node of the calls that allocated what lived: its bytes, and those of the calls that it made."""

    label: str
    nbytes: int
    calls: tuple[Branch, ...] = ()


@immutable()
class Moment:
    """What lived on a device at once. `doubtful` are the bytes whose kind is concluded from their line alone."""

    allocated: int
    reserved: int | None
    step: int
    lines: tuple[LineUse, ...]
    functions: tuple[FunctionUse, ...]
    kinds: Mapping[str, int]
    doubtful: int
    calls: Branch
    hints: tuple[str, ...] = ()


@immutable()
class Remedy:
    """Findings, or lines, whose bytes together are at least those that were missing; each with its own bytes.

    The bytes are those that lived: a fix saves at most these.
    """

    nbytes: int
    enough: bool
    findings: tuple[tuple[Explained, int], ...] = ()
    lines: tuple[tuple[Site, int], ...] = ()


@immutable()
class Failed:
    """A request that failed."""

    requested: int
    device_free: int
    needed: int  # what torch asked the device for
    missing: int
    largest_free: int
    free: int  # reserved and not allocated, in the pool that serves such a request
    pieces: int
    joined_would_fit: bool
    expandable: bool
    site: Site
    moment: Moment
    by_findings: Remedy
    by_lines: Remedy


@immutable()
class Growing:
    """Bytes of a line that every step adds, and that stay."""

    site: Site
    bytes_per_step: float
    steps: int
    nbytes: int
    steady: bool
    findings: tuple[Explained, ...] = ()


@immutable()
class DeviceReport:
    """One device of a snapshot."""

    device: str
    events: int
    allocated: int  # at the end: asked for by tensors
    active: int  # at the end, in the allocator's blocks, with what waits to be free
    reserved: int
    segments: int
    steps: int
    peak: Moment
    failures: tuple[Failed, ...]
    growing: tuple[Growing, ...]
    whole: bool  # whether the history shows the program from its beginning
    notes: tuple[str, ...]
    curve: Curve = NO_CURVE


@immutable()
class OomReport:
    """A snapshot, device by device."""

    snapshot: str
    devices: tuple[DeviceReport, ...]
    settings: Mapping[str, Any]
    checked: int | None  # files of SRC that the linter was run on; None without SRC
    notes: tuple[str, ...] = ()
    ranks: int = 1  # snapshots that were read, one of each rank

    @property
    def failed(self) -> bool:
        """Whether memory ran out."""
        return any(one.failures for one in self.devices)

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        values = asdict(self)
        for device, made in zip(values["devices"], self.devices, strict=True):
            device["curve"] = made.curve.to_json()
        return {"out_of_memory": self.failed, **values}

"""A memory snapshot as a run that `torchmemlint diff` compares: the device with the highest peak."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path, PurePath

from torchmemlint.runtime.changes import Function, Usage
from torchmemlint.runtime.ledger import Site
from torchmemlint.snapshot.analysis import analyse
from torchmemlint.snapshot.callers import words
from torchmemlint.snapshot.reader import read_snapshot


def usage_of(path: Path, directory: Path) -> Usage:
    """What a snapshot says of its device with the highest peak; files below `directory` as seen from it.

    Raises OSError, and Refused for a file that is no snapshot.
    """
    report = analyse(read_snapshot(path), path.name)
    device = max(report.devices, key=lambda one: (bool(one.failures), one.peak.allocated))

    def function(site: Site) -> Function:
        if told := words(site):
            return Function(told, "<module>")
        where = PurePath(site.path)
        inside = where.is_relative_to(directory)
        return Function((where.relative_to(directory) if inside else where).as_posix(), site.function)

    at_peak: Counter[Function] = Counter()
    for line in device.peak.lines:
        at_peak[function(line.site)] += line.nbytes
    growing: defaultdict[Function, float] = defaultdict(float)
    for one in device.growing:
        growing[function(one.site)] += one.bytes_per_step
    return Usage(
        "memory snapshots",
        f"snapshot, {device.device}, {device.steps} steps",
        device.peak.allocated,
        device.peak.reserved,
        float(sum(one.bytes_per_step for one in device.growing)),
        at_peak,
        growing,
        report.failed,
    )

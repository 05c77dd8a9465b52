"""The reports on the snapshots of several ranks, as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from torchmemlint.snapshot.report import DeviceReport, OomReport


def merged(reports: Sequence[OomReport]) -> OomReport:
    """One report of all devices, those that say most first: where memory ran out, then by their peaks.

    A device is named with its snapshot. What all snapshots note is noted once.
    """
    if len(reports) == 1:
        return reports[0]
    names = [PurePath(one.snapshot).name for one in reports]
    whole = names if len(set(names)) == len(names) else [one.snapshot for one in reports]
    devices = [
        replace(device, device=f"{name} {device.device}")
        for name, report in zip(whole, reports, strict=True)
        for device in report.devices
    ]
    notes = dict.fromkeys(note for report in reports for note in report.notes)
    checked = [report.checked for report in reports if report.checked is not None]
    return OomReport(
        ", ".join(one.snapshot for one in reports),
        tuple(sorted(devices, key=_weight)),
        reports[0].settings,
        max(checked) if checked else None,
        tuple(notes),
        len(reports),
    )


def _weight(device: DeviceReport) -> tuple[bool, int]:
    return not device.failures, -device.peak.allocated

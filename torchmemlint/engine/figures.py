"""What earlier runs of a program told of the findings, from the files of measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from torchmemlint.config.settings import Settings
from torchmemlint.findings import Finding
from torchmemlint.measured import Measured, Measurements, MeasurementsError, read_measurements


def attach(
    findings: Iterable[Finding], settings_for: Callable[[Path], Settings]
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings with their figures, and one line for each file that should have some but cannot be read.

    A finding is worth reporting without its figure, so such a file does not end the run.
    """
    kept: dict[Path, Measurements | None] = {}
    problems: list[str] = []
    told = []
    for finding in findings:
        path = settings_for(finding.filename.parent).measurements_file
        if path not in kept:
            try:
                kept[path] = read_measurements(path)
            except MeasurementsError as error:
                kept[path] = None
                problems.append(f"{error}; findings are shown without their figures")
        measurements = kept[path]
        figures = None if measurements is None else _of(finding, measurements)
        told.append(finding if figures is None else replace(finding, measured=figures))
    return tuple(told), tuple(problems)


def _of(finding: Finding, measurements: Measurements) -> Measured | None:
    """The figures of a finding, also where they were recorded when fingerprints were other ones."""
    marks = (finding.fingerprint, finding.former_fingerprint)
    return next((found for mark in marks if (found := measurements.of(mark, finding.filename))), None)

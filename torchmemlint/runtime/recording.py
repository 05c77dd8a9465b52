"""Keeping what a verification told of the findings, so that they are shown with their figures from then on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torchmemlint.fixes.write import write_atomically
from torchmemlint.measured import Measured, Measurements, MeasurementsError, Verdict, read_measurements
from torchmemlint.runtime.compare import saved_where
from torchmemlint.runtime.verification import Comparison, FindingResult, VerifyReport


def record(report: VerifyReport, file_for: Callable[[Path], Path], date: str) -> dict[Path, int]:
    """Write the figures into the files that `file_for` gives for the findings' own; how many went into each.

    What is there of other findings stays. `date` is YYYY-MM-DD. Raises MeasurementsError, and leaves a file as it
    is that it cannot read.
    """
    files: dict[Path, Measurements] = {}
    counts: dict[Path, int] = {}
    for result in report.findings:
        figures = measured(result, report, date)
        if figures is None:
            continue
        finding = result.finding
        filename = Path(finding["filename"])
        path = file_for(filename)
        kept = files.get(path) or read_measurements(path) or Measurements(path.parent)
        files[path] = kept.with_figures(finding["fingerprint"], finding["code"], filename, figures)
        counts[path] = counts.get(path, 0) + 1
    for path, measurements in files.items():
        _write(path, measurements)
    return counts


def check(path: Path) -> None:
    """Raise MeasurementsError where `record` could not write the file: before a program is run, not after."""
    read_measurements(path)
    if not path.absolute().parent.is_dir():
        raise MeasurementsError(f"{path}: cannot be written: there is no such folder")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise MeasurementsError(f"{path}: cannot be written: permission denied")


def measured(result: FindingResult, report: VerifyReport, date: str) -> Measured | None:
    """The figures of a finding; None where the run told nothing of it."""
    about: dict[str, Any] = {
        "verdict": result.verdict,
        "backend": report.before.backend,
        "card": report.before.card,
        "torch": report.before.torch,
        "date": date,
        "program": report.program,
    }
    if result.verdict is Verdict.NOT_REACHED:
        return None
    if result.comparison is not None:
        return Measured(**about, **dict(_saved(result.comparison)))
    if result.growing is not None:
        series, growth = result.growing
        return Measured(**{**about, f"{_family(series)}_per_step": round(growth.bytes_per_step, 1)})
    return Measured(**about) if result.verdict is Verdict.FIX_FAILS else None


def _saved(compared: Comparison) -> Iterator[tuple[str, Any]]:
    """What falls with the fix; 0 for what does not, or not by more than chance."""
    falls = saved_where(compared)
    before, after = compared.before, compared.after
    yield "per_step", round(compared.growth_saved, 1) if "growth" in falls else 0
    yield "peak", compared.peak_saved if "peak" in falls else 0
    if before.peak_reserved is not None and after.peak_reserved is not None:
        yield "reserved", before.peak_reserved - after.peak_reserved if "reserved" in falls else 0
    if before.host_growth is not None and after.host_growth is not None:
        yield "host_per_step", round(compared.host_growth_saved, 1) if "host" in falls else 0


def _family(series: str) -> str:
    return "line" if series.startswith("line ") else "loop"


def _write(path: Path, measurements: Measurements) -> None:
    try:
        write_atomically(path, measurements.to_text().encode("utf-8", "backslashreplace"), create=True)
    except OSError as error:
        raise MeasurementsError(f"{path}: cannot be written: {error.strerror or error}") from None

"""JSON Lines: the objects of the format `json`, one to a line, for what reads as it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.report.json_format import finding_object
from torchmemlint.report.paint import Paint


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """A line for each finding, in ASCII."""
    for finding in report.findings:
        yield json.dumps(finding_object(finding, root), sort_keys=True)

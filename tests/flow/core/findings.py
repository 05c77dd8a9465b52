"""What is shown of some files where nothing else is asked for."""

from __future__ import annotations

from collections.abc import Mapping

from torchmemlint.doubts import Confidence
from torchmemlint.flow.fact.cases import cases


def found(files: Mapping[str, str]) -> set[tuple[str, int, str]]:
    """The findings as (file, line, code), without those that are only possible."""
    return {(case.file, case.line, case.code) for case in cases(files) if case.confidence is not Confidence.POSSIBLE}

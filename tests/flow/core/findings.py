"""What is shown of some files where nothing else is asked for."""

from __future__ import annotations

from collections.abc import Mapping

from torchmemlint.doubts import Confidence
from torchmemlint.flow.fact.cases import cases


def found(files: Mapping[str, str]) -> set[tuple[str, int, str]]:
    """The findings as (file, line, code) of what keeps or records a graph, without those that are only possible."""
    shown = [case for case in cases(files) if case.confidence is not Confidence.POSSIBLE]
    places = [(case.place if case.remark else case.within or case.place, case.code) for case in shown]
    return {(str(place.path).lstrip("/"), place.span[0], code) for place, code in places}

"""What is shown of some files where nothing else is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torchmemlint.doubts import OF_WORTH, Confidence
from torchmemlint.flow.fact import cases as facts
from torchmemlint.flow.fact.outcomes import Case

BESIDE = frozenset(
    {
        "TML109",
        "TML110",
        "TML204",
        "TML205",
        "TML207",
        "TML401",
        "TML402",
        "TML403",
        "TML404",
        "TML405",
        "TML406",
        "TML407",
        "TML502",
        "TML503",
        "TML508",
        "TML602",
        "TML605",
        "TML702",
        "TML802",  # of a hook, and a program that runs again and again
    }
)  # of rules with programs of their own
FIXTURES = frozenset(
    {"TML301", "TML302", "TML501", "TML504", "TML506", "TML510", "TML601", "TML603"}
)  # are their programs


def cases(files: Mapping[str, str], beside: bool = False) -> list[Case]:
    """The cases of what keeps or records a graph; `beside`: of the other rules."""
    return [case for case in facts.cases(files) if case.code not in FIXTURES and (case.code in BESIDE) is beside]


def found(files: Mapping[str, str], beside: bool = False) -> set[tuple[str, int, str]]:
    """The findings as (file, line, code), without those that are only possible, whatever they are worth."""
    certain = (replace(case, doubts=case.doubts - OF_WORTH) for case in cases(files, beside))
    shown = [case for case in certain if case.confidence is not Confidence.POSSIBLE]
    places = [(case.within or case.place if _is_kept(case) else case.place, case.code) for case in shown]
    return {(str(place.path).lstrip("/"), place.span[0], code) for place, code in places}


def _is_kept(case: Case) -> bool:
    return case.how is not None

"""What `torchmemlint verify` found out, as plain data that goes through JSON unchanged. Knows nothing of torch.

`schema.json` beside this module describes the JSON.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from torchmemlint.immutable import immutable
from torchmemlint.measured import Verdict
from torchmemlint.runtime.growth import Growth
from torchmemlint.runtime.results import RunResult


class Sameness(enum.Enum):
    """How two runs' losses and parameters agree."""

    EQUAL = "equal"  # to the bit
    ROUNDING = "equal up to rounding"
    AS_UNSTEADY = "as different as two runs of the unchanged program"
    CHANGED = "different"
    UNKNOWN = "not compared"


@immutable()
class Difference:
    """The largest differences between two runs' losses and parameters; None where there are none to compare.

    `largest_loss` gives the scale, which mixed precision's loss scaling may make a large one.
    """

    sameness: Sameness
    losses: float | None = None
    parameters: float | None = None
    largest_loss: float | None = None
    note: str = ""


@immutable()
class Figures:
    """What a run costs. Bytes and seconds."""

    peak: int
    peak_reserved: int | None
    growth: Growth  # of what is held, from step to step or turn to turn
    seconds_per_step: float | None
    with_tracker: bool  # whether the time includes the tracker's
    host_growth: Growth | None = None  # of the C heap beside tensors; None where it was not measured


@immutable()
class Comparison:
    """Before and after a fix."""

    before: Figures
    after: Figures
    growth_series: str  # what grew, in words: `loop train.py:12`, `optimizer 1`; empty where nothing did
    difference: Difference
    peak_within: tuple[str, int, int] | None = None  # a loop whose own peak fell, where the run's did not
    place: str = ""  # of several processes or devices, the one that this is about: `rank 1, cuda:1`

    @property
    def peak_saved(self) -> int:
        """Bytes by which the peak falls."""
        return self.before.peak - self.after.peak

    @property
    def growth_saved(self) -> float:
        """Bytes per step by which the growth falls."""
        return self.before.growth.certain_bytes - self.after.growth.certain_bytes

    @property
    def host_growth_saved(self) -> float:
        """The same on the host's heap; 0.0 where it was not measured."""
        if self.before.host_growth is None or self.after.host_growth is None:
            return 0.0
        return self.before.host_growth.certain_bytes - self.after.host_growth.certain_bytes


@immutable()
class FindingResult:
    """One finding and what its measurement says. `finding` is as in the JSON of `check`."""

    finding: Mapping[str, Any]
    verdict: Verdict
    costs: bool = False  # bytes are saved without it, whatever else its fix does
    reached: int | None = None  # times that its statement was; None where that was not counted
    comparison: Comparison | None = None
    growing: tuple[str, Growth] | None = None  # a line of the finding, or the loop around it, with its growth
    collected: bool = False  # what grows is collected to be used, and goes when the loop is over
    note: str = ""


@immutable()
class VerifyReport:
    """All of a verification. `before` is the program as it is."""

    program: str
    directory: str
    steps: int  # the budget
    before: RunResult
    findings: tuple[FindingResult, ...]
    steady: Difference  # two runs of the unchanged program against each other
    seconds_per_step: float | None = None  # of the program as it is, without the tracker
    host_growth: Growth | None = None  # likewise
    together: Comparison | None = None  # all fixes at once
    together_fixes: int = 0
    notes: tuple[str, ...] = ()

    @property
    def confirmed(self) -> bool:
        """Whether any finding costs bytes."""
        return any(one.costs for one in self.findings)

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        plain = _plain(asdict(self))
        assert isinstance(plain, dict)
        return plain

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> VerifyReport:
        """Back from them."""
        known = dict(values)
        known["before"] = RunResult.from_json(known["before"])
        known["findings"] = tuple(_finding(one) for one in known["findings"])
        known["steady"] = _difference(known["steady"])
        known["host_growth"] = _growth(known["host_growth"])
        known["together"] = _comparison(known["together"])
        known["notes"] = tuple(known["notes"])
        return cls(**known)


def _plain(value: Any) -> Any:
    match value:
        case enum.Enum():
            return value.value
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
    return value


def _growth(values: Any) -> Growth | None:
    return None if values is None else Growth(**values)


def _difference(values: Mapping[str, Any]) -> Difference:
    return Difference(**{**values, "sameness": Sameness(values["sameness"])})


def _figures(values: Mapping[str, Any]) -> Figures:
    return Figures(**{**values, "growth": Growth(**values["growth"]), "host_growth": _growth(values["host_growth"])})


def _comparison(values: Any) -> Comparison | None:
    if values is None:
        return None
    within = values["peak_within"]
    return Comparison(
        _figures(values["before"]),
        _figures(values["after"]),
        values["growth_series"],
        _difference(values["difference"]),
        None if within is None else (within[0], within[1], within[2]),
        values["place"],
    )


def _finding(values: Mapping[str, Any]) -> FindingResult:
    known = dict(values)
    known["verdict"] = Verdict(known["verdict"])
    known["comparison"] = _comparison(known["comparison"])
    growing = known["growing"]
    known["growing"] = None if growing is None else (growing[0], Growth(**growing[1]))
    return FindingResult(**known)

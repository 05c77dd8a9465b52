"""What a finding says to people. It is made here once, and every format shows it.

A message has six parts: what happens, why that costs memory, what it costs here, how to fix it, how sure the linter is,
and where to read more. Formats choose the parts that they have room for, and their order; they make no words of
their own.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from torchmemlint.codes import is_own
from torchmemlint.doubts import Confidence, Doubt
from torchmemlint.findings import Applicability, Finding
from torchmemlint.immutable import immutable

DOCUMENTATION = "https://torchmemlint.readthedocs.io/rules/"
PLUGINS = "https://torchmemlint.readthedocs.io/plugins/"
_TRUST = {
    Applicability.SAFE: "safe",
    Applicability.UNSAFE: "unsafe: may change results",
    Applicability.HINT: "",
}


class Basis(enum.Enum):
    """Where a cost comes from."""

    MEASURED = "measured"  # a run of the program, recorded by `torchmemlint verify --record`
    ESTIMATED = "estimated"  # the sizes in the source


@immutable()
class Cost:
    """What a finding costs."""

    text: str  # `+48.0 MiB per step (simulated A100 40GB, 2026-11-21)`
    brief: str  # the same without the conditions
    basis: Basis

    @property
    def line(self) -> str:
        """`measured: +48.0 MiB per step (simulated A100 40GB, 2026-11-21)`."""
        return f"{self.basis.value}: {self.text}"


@immutable()
class Repair:
    """How to fix a finding."""

    text: str
    applicability: Applicability

    @property
    def label(self) -> str:
        """`fix`, or `help` where only a person can make the change."""
        return "help" if self.applicability is Applicability.HINT else "fix"

    @property
    def trust(self) -> str:
        """How far the fix may be trusted; "" for a hint."""
        return _TRUST[self.applicability]


@immutable()
class Note:
    """One part of a message below its first line."""

    label: str
    text: str
    aside: str = ""  # behind the label, in brackets

    @property
    def line(self) -> str:
        """`fix (safe): Add `()``."""
        return f"{self.label}{f' ({self.aside})' if self.aside else ''}: {self.text}"


@immutable()
class Message:
    """What one finding says."""

    what: str
    why: str  # "" where there is nothing to add
    cost: Cost | None  # None where it is not known
    fix: Repair | None
    confidence: Confidence
    doubts: tuple[Doubt, ...]  # why it is not certain
    url: str

    @property
    def doubted(self) -> str:
        """What could not be determined, in one line; "" for a certain finding."""
        return "; ".join(doubt.value for doubt in self.doubts)

    @property
    def caveat(self) -> str:
        """How sure the finding is: `likely: the result is handed to code that was not seen`; "" for a certain one."""
        return f"{self.confidence.value}: {self.doubted}" if self.doubts else ""

    @property
    def asides(self) -> tuple[str, ...]:
        """The caveat and the cost, in brackets, for formats that have one line."""
        told = [self.caveat] if self.doubts else []
        if self.cost is not None:
            told.append(f"{self.cost.basis.value}: {self.cost.brief}")
        return tuple(f"({one})" for one in told)

    def notes(self, *, url: bool = True) -> Iterator[Note]:
        """The parts below the first line, each with its label: doubts, reason, cost, fix, and the page."""
        if self.doubts:
            yield Note(self.confidence.value, self.doubted)
        if self.why:
            yield Note("why", self.why)
        if self.cost is not None:
            yield Note(self.cost.basis.value, self.cost.text)
        if self.fix is not None:
            yield Note(self.fix.label, self.fix.text, self.fix.trust)
        if url:
            yield Note("learn more", self.url)


def message_of(finding: Finding) -> Message:
    """What a finding says."""
    fix = None if finding.fix is None else Repair(finding.fix.message, finding.fix.applicability)
    url = rule_url(finding.code)
    return Message(finding.message, finding.why, _cost(finding), fix, finding.confidence, finding.doubts, url)


def _cost(finding: Finding) -> Cost | None:
    """What a run measured, else what the sizes in the source come to."""
    if finding.measured is not None:
        return Cost(finding.measured.sentence, finding.measured.brief, Basis.MEASURED)
    if finding.amount is not None:
        return Cost(finding.amount.words, finding.amount.words, Basis.ESTIMATED)
    return None


def rule_url(code: str) -> str:
    """The page of a rule; for a plugin's rule the address that it gives, else the page about plugins."""
    if is_own(code):
        return f"{DOCUMENTATION}{code}/"
    from torchmemlint.rules import registry

    rule = registry.find(code)
    return (rule.url if rule is not None else "") or PLUGINS

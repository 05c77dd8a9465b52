"""TML001 unused-ignore."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import SilentRule, Tag


class UnusedIgnore(SilentRule):
    """A suppression comment silences nothing."""

    code = "TML001"
    name = "unused-ignore"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    tag = Tag.UNNECESSARY
    why = "a suppression that silences nothing hides the next leak on its line"

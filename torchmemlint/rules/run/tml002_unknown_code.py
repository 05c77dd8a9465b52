"""TML002 unknown-code."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import SilentRule


class UnknownCode(SilentRule):
    """A suppression comment names a rule that does not exist."""

    code = "TML002"
    name = "unknown-code"
    severity = Severity.WARNING
    fix = Applicability.HINT
    why = "a suppression that names no rule silences nothing"

"""TML104 carried-hidden-state."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class CarriedHiddenState(CaseRule):
    """A recurrent state enters the next step with the graph of the last one."""

    code = "TML104"
    name = "carried-hidden-state"
    severity = Severity.ERROR
    fix = Applicability.UNSAFE
    why = "the graph of every earlier step hangs on the state of the current one"

"""TML701 lightning-step-outputs."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class LightningStepOutputs(CaseRule):
    """A Lightning `training_step` keeps its outputs with their graph until the epoch ends."""

    code = "TML701"
    name = "lightning-step-outputs"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "what a step keeps with its graph stays until the epoch ends, once for each step"

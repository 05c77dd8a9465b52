"""TML201 eval-without-no-grad."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class EvalWithoutNoGrad(CaseRule):
    """A forward pass whose results are never differentiated runs with gradients on."""

    code = "TML201"
    name = "eval-without-no-grad"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "every layer keeps its activations for a backward pass that never comes"

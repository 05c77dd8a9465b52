"""TML203 forward-then-detach."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class ForwardThenDetach(CaseRule):
    """A forward pass whose gradients go nowhere: every output is detached, or no optimizer wants them."""

    code = "TML203"
    name = "forward-then-detach"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "a graph with all its activations is built only to be dropped"

"""TML106 hook-keeps-graph."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class HookKeepsGraph(CaseRule):
    """A module hook stores outputs together with their graph."""

    code = "TML106"
    name = "hook-keeps-graph"
    severity = Severity.ERROR
    fix = Applicability.UNSAFE
    why = "each stored output holds the graph of the forward pass that made it"

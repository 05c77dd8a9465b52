"""TML101 graph-accumulation."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class GraphAccumulation(CaseRule):
    """A graph-carrying value is added up over iterations."""

    code = "TML101"
    name = "graph-accumulation"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "the running value keeps the autograd graph of every iteration alive"

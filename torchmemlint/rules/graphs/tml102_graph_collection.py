"""TML102 graph-collection."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class GraphCollection(CaseRule):
    """A graph-carrying value is collected in a container that outlives the iteration."""

    code = "TML102"
    name = "graph-collection"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "every element keeps the autograd graph of its iteration alive"

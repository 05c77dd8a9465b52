"""TML103 graph-on-attribute."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class GraphOnAttribute(CaseRule):
    """A graph-carrying value is kept on an object, in a global or in a cache."""

    code = "TML103"
    name = "graph-on-attribute"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "the graph, with all activations that it saved, lives as long as the object that holds it"

"""What a plugin's rule may rely on; described in `docs/plugins.md`.

What this package exports, and the facts that its documentation names, change only with a new minor version, and are
listed in the change log then. Everything else in torchmemlint may change at any time.
"""

from torchmemlint.doubts import Confidence, Doubt
from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Position, Severity, Span
from torchmemlint.flow.facts import FileFacts, Retention
from torchmemlint.plugins.calling import Call, calls, span_of
from torchmemlint.plugins.editing import add_argument, append_call, wrap_in
from torchmemlint.plugins.queries import carries_graph, gradients_on, made_by
from torchmemlint.plugins.reporting import report
from torchmemlint.rules.base import Rule, Stage, Tag

__all__ = [
    "Applicability",
    "Call",
    "Confidence",
    "Doubt",
    "Edit",
    "Evidence",
    "FileFacts",
    "Finding",
    "Fix",
    "Position",
    "Retention",
    "Rule",
    "Severity",
    "Span",
    "Stage",
    "Tag",
    "add_argument",
    "append_call",
    "calls",
    "carries_graph",
    "gradients_on",
    "made_by",
    "report",
    "span_of",
    "wrap_in",
]

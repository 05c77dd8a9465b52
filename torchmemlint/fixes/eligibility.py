"""Which fixes may be applied."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding


def eligible(finding: Finding, *, unsafe: bool) -> bool:
    """Whether the finding has a fix that may be applied: a safe one, or with `unsafe` an unsafe one; never a hint."""
    if finding.fix is None or not finding.fix.edits:
        return False
    match finding.fix.applicability:
        case Applicability.SAFE:
            return True
        case Applicability.UNSAFE:
            return unsafe
        case Applicability.HINT:
            return False

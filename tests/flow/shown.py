"""What is shown of a text where nothing else is asked for: nothing that is only possible."""

from __future__ import annotations

from typing import Any

from torchmemlint.doubts import Confidence
from torchmemlint.engine import checking
from torchmemlint.findings import Finding


def check_text(*given: Any, **named: Any) -> list[Finding]:
    """As `checking.check_text`, without what is only possible."""
    found = checking.check_text(*given, **named)
    return [finding for finding in found if finding.confidence is not Confidence.POSSIBLE]

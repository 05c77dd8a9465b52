"""TML000 unreadable-file."""

from __future__ import annotations

from torchmemlint.findings import Severity
from torchmemlint.rules.base import SilentRule


class UnreadableFile(SilentRule):
    """A file could not be analysed."""

    code = "TML000"
    name = "unreadable-file"
    severity = Severity.ERROR
    why = "nothing is known about a file that cannot be analysed"

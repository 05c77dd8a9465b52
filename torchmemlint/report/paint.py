"""What a terminal shows besides plain text: colours and links, as escape sequences, in lines of its width."""

from __future__ import annotations

from torchmemlint.findings import Severity
from torchmemlint.immutable import immutable

_SEVERITY = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.ADVICE: "1;36"}


@immutable()
class Paint:
    """Paints text for one stream."""

    on: bool
    width: int = 0  # columns that lines are wrapped to; 0: they are not
    links: bool = False  # does the terminal know links?

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text

    def severity(self, severity: Severity, text: str) -> str:
        """Red, yellow or cyan."""
        return self._wrap(_SEVERITY[severity], text)

    def strong(self, text: str) -> str:
        """Bold."""
        return self._wrap("1", text)

    def gutter(self, text: str) -> str:
        """Line numbers and rules: bold blue, as in compilers."""
        return self._wrap("1;34", text)

    def label(self, text: str) -> str:
        """What is said of a stretch of source."""
        return self._wrap("34", text)

    def link(self, address: str, text: str) -> str:
        """Text that leads to an address, where the terminal can be clicked on."""
        return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\" if self.links else text

    def faint(self, text: str) -> str:
        """What may be skipped in reading."""
        return self._wrap("2", text)

    def fixable(self, text: str) -> str:
        """The mark of a fix."""
        return self._wrap("36", text)

    def added(self, text: str) -> str:
        """A line that a fix writes."""
        return self._wrap("32", text)

    def removed(self, text: str) -> str:
        """A line that a fix takes away."""
        return self._wrap("31", text)

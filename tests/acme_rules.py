"""The module that the examples of `plugins` name."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.plugins import FileFacts, Finding, Rule, Severity


class Acme(Rule):
    """A rule.

    ## What it does
    Nothing.

    ## Why it costs memory
    It does not.
    """

    code, name, severity, why = "ACM101", "nothing", Severity.ADVICE, "it does not"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        return iter(())

"""TML509 allocator-config-too-late."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.allocation import allocator_settings
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation, written

_ALL = frozenset({"ALLOC_CONF"})
# What starts other processes, which get the environment as it is then.
_STARTING = ("subprocess", "multiprocessing", "spawn", "Popen", "os.exec", "os.system", "ray.", "fork", "launch")


class AllocatorConfigTooLate(Rule):
    """The allocator's settings are put into the environment when it has read them already."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield settings that nobody reads any more."""
        if any(word in facts.source.text for word in _STARTING):
            return
        settings = (late for formula in facts.formulas(frozenset(), _ALL) for late in allocator_settings.find(formula))
        for late in settings:
            yield report_operation(
                self,
                facts,
                late.op,
                f"`{late.variable}` is set here after PyTorch has read it",
                evidence=[
                    (late.before, f"it is read here: `{written(facts, late.before, 50)}`"),
                    (late.op, "not read again in this process"),
                ],
                fix=Fix("Set it before torch is imported, or where the program is started", Applicability.HINT),
            )

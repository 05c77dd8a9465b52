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
                    (late.before, f"PyTorch has read the variable when it runs `{written(facts, late.before, 50)}`"),
                    (late.op, "PyTorch does not read it again in this process"),
                ],
                fix=Fix("Set the variable before torch is imported, or in the shell", Applicability.HINT),
            )

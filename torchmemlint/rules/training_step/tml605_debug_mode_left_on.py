"""TML605 debug-mode-left-on."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.flow.fact.details import Serving
from torchmemlint.knowledge.services import ANOMALY_CONTEXT, PROFILING, RECORDING
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.removal import removing
from torchmemlint.rules.told import Told


class DebugModeLeftOn(TellingRule):
    """A mode for debugging is on whenever the program trains."""

    def tell(self, told: Told) -> Finding:
        """Say which mode stays on."""
        serving = told.about(Serving)
        if serving.name in RECORDING:
            what = "keeps a stack trace of every allocation in CPU memory, which nothing reads"
            fix = Fix("Dump the recording, or remove the call", Applicability.HINT)
        elif serving.name in ANOMALY_CONTEXT:
            what = "makes every step slow, and stores stack traces in CPU memory"
            fix = Fix("Make this a command-line option", Applicability.HINT)
        elif serving.name in PROFILING:
            what = "keeps every event of every step in CPU memory: no `schedule` is given"
            fix = Fix("Record some steps only: `torch.profiler.profile` with a `schedule`", Applicability.HINT)
        else:
            what = "makes every step slow, and stores stack traces in CPU memory"
            fix = _switched_off(told)
        place = told.case.place
        links = [told.link(place, "on in every run"), *told.called()]
        if serving.shown is not None:
            links.append(told.link(serving.shown, "every batch of this loop is recorded"))
        return told.finding(self, f"`{told.text_of(place)}` {what}", links, fix=fix)


def _switched_off(told: Told) -> Fix:
    """Take the statement out; turn the mode off where it is a part of another one."""
    mode = told.call.argument("mode", 0) if told.call is not None else None
    edits = removing(told.facts, told.span) if mode is not None else ()
    if told.call is not None and mode is not None and not edits:
        edits = told.call.replacing(mode, "False")
    return Fix("Turn anomaly detection off", Applicability.UNSAFE, edits)

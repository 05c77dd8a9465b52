"""TML605 debug-mode-left-on."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.flow.fact.outcomes import Serving
from torchmemlint.knowledge.services import ANOMALY_CONTEXT, RECORDING
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class DebugModeLeftOn(TellingRule):
    """A mode for debugging is on whenever the program trains."""

    def tell(self, told: Told) -> Finding:
        """Say which mode stays on."""
        serving = told.about(Serving)
        if serving.name in RECORDING:
            what = "a stack is kept on the host for every allocation, and nothing reads or stops it"
            fix = Fix("Dump what is recorded, or do not record", Applicability.HINT)
        elif serving.name in ANOMALY_CONTEXT:
            what = "anomaly detection is on for every step in it: it costs time, and stack traces on the host"
            fix = Fix("Make it an option of the program", Applicability.HINT)
        else:
            what = "anomaly detection is on for every step: it costs time, and stack traces on the host"
            fix = _switched_off(told)
        place = told.case.place
        return told.finding(
            self, f"`{told.text_of(place)}`: {what}", [told.link(place, "on in every run"), *told.called()], fix=fix
        )


def _switched_off(told: Told) -> Fix:
    mode = told.call.argument("mode", 0) if told.call is not None else None
    edits = told.call.replacing(mode, "False") if told.call is not None and mode is not None else ()
    return Fix("Switch anomaly detection off", Applicability.UNSAFE, edits)

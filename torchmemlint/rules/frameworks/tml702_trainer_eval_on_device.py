"""TML702 trainer-eval-on-device."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.flow.fact.trainers import STEPS
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class TrainerEvalOnDevice(TellingRule):
    """transformers' Trainer keeps the predictions for the whole evaluation set on the device."""

    def tell(self, told: Told) -> Finding:
        """Say that predictions are collected, and what shows that they are large."""
        case = told.case
        links = [told.link(place, "predicts something for every token or pixel of an example") for place in case.graphs]
        if case.within is not None:
            links.append(told.link(case.within, f"the training arguments do not set `{STEPS}`"))
        links += [told.link(place, "evaluates, and keeps the predictions until the end") for place in case.runs]
        return told.finding(
            self,
            f"`{told.text.partition('(')[0]}` keeps all predictions on the GPU: `{STEPS}` is not set",
            links,
            fix=_fix(told),
        )


def _fix(told: Told) -> Fix:
    call = told.call_at(told.case.within)
    if call is None:
        return Fix(f"Set `{STEPS}=8` in the training arguments", Applicability.HINT)
    given = call.argument(STEPS)
    edits = call.replacing(given, "8") if given is not None else call.adding(f"{STEPS}=8")
    return Fix(f"Set `{STEPS}=8`, and tune it", Applicability.UNSAFE, edits)

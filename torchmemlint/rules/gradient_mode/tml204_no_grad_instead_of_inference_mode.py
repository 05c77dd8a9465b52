"""TML204 no-grad-instead-of-inference-mode."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Span
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told

_SHOWN = 3
_WRITTEN = "torch.no_grad()"


class NoGradInsteadOfInferenceMode(TellingRule):
    """A forward pass runs under `torch.no_grad()` although no tensor leaves it."""

    def tell(self, told: Told) -> Finding:
        """Say which guard could be stricter."""
        return told.finding(
            self,
            f"no tensor leaves this `{told.text}` block: `torch.inference_mode()` costs less",
            [
                told.link(one, "runs in this block, and no tensor of its results is used after it")
                for one in told.case.runs[:_SHOWN]
            ],
            fix=_fix(told),
        )


def _fix(told: Told) -> Fix:
    start = told.span.start
    if told.text != _WRITTEN:
        return Fix("Use `torch.inference_mode()`", Applicability.HINT)
    dot, end = _WRITTEN.index("."), len(_WRITTEN) - len("()")
    name = Span(Position(start.row, start.column + dot + 1), Position(start.row, start.column + end))
    return Fix("Use `torch.inference_mode()`", Applicability.UNSAFE, (Edit(name, "inference_mode"),))

"""TML111 tensor-on-ctx."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.owners import OnContext
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told

_SAID = {
    OnContext.OUTPUT: (
        "holds an output of the operation, which holds the context: only the garbage collector frees the two",
        "output, `grad_fn`, context, output: a circle",
    ),
    OnContext.VIEW: (
        "holds a view of an output of the operation, which holds the context: nothing ever frees the two",
        "output, `grad_fn`, context, view, output: a circle that the garbage collector does not see",
    ),
    OnContext.INPUT: (
        "holds an input of the operation also after backward, as long as anything holds its result",
        "backward frees what was saved by `save_for_backward`, and no attributes",
    ),
}


class TensorOnCtx(TellingRule):
    """An input or output of an operation with a gradient of its own is an attribute of the context."""

    def tell(self, told: Told) -> Finding:
        """Say what the context holds, and what that means."""
        what = told.about(OnContext)
        message, link = _SAID[what]
        return told.finding(
            self,
            f"`{told.text_of(told.case.place).partition(' =')[0]}` {message}",
            [told.link(told.case.place, link)],
            severity=Severity.ADVICE if told.case.advice else Severity.WARNING,
            fix=Fix("Hand it to `ctx.save_for_backward`, and take it from `ctx.saved_tensors`", Applicability.HINT),
        )

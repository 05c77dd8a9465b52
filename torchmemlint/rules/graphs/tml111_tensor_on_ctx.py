"""TML111 tensor-on-ctx."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.owners import OnContext
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told

_SAID = {
    OnContext.OUTPUT: (
        "makes a reference cycle with an output: only the garbage collector frees its memory",
        "output → `grad_fn` → `ctx` → output",
    ),
    OnContext.VIEW: (
        "makes a reference cycle with a view of an output: its memory is never freed",
        "output → `grad_fn` → `ctx` → view → output: a cycle that the garbage collector does not see",
    ),
    OnContext.INPUT: (
        "keeps an input in memory even after backward, for as long as the result exists",
        "backward frees what `save_for_backward` saved, but not attributes of `ctx`",
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
            fix=Fix("Use `ctx.save_for_backward` and `ctx.saved_tensors`", Applicability.HINT),
        )

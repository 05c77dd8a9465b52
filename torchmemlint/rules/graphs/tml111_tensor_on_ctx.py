"""TML111 tensor-on-ctx."""

from __future__ import annotations

from torchmemlint.findings import Finding
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
            f"`{told.brief.partition(' =')[0]}` {message}",
            [told.here(link)],
            hint="Use `ctx.save_for_backward` and `ctx.saved_tensors`",
        )

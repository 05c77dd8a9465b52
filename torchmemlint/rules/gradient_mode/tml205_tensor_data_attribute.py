"""TML205 tensor-data-attribute."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Span
from torchmemlint.flow.fact.data import Access
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.guarding import wrap
from torchmemlint.rules.told import Told
from torchmemlint.syntax.text import shortened


class TensorDataAttribute(TellingRule):
    """A tensor is read or changed by way of `.data`."""

    def tell(self, told: Told) -> Finding:
        """Say what is read or changed by way of `.data`."""
        access, within = told.about(Access), told.case.within
        assert within is not None
        owner, by = shortened(told.text.removesuffix(_DATA), 40), told.text_of(within)
        message, what = _SAID[access]
        return told.finding(
            self,
            message.format(owner=owner, by=by),
            [*told.begun(), told.here(what.format(by=by)), *told.called()],
            fix=_fix(told, access, told.span_of(within)),
        )


_DATA = ".data"
_SAID = {
    Access.READ: (
        "`{owner}.data` bypasses autograd: `.detach()` is the same view and detects in-place changes",
        "autograd does not see what `{by}` does with it",
    ),
    Access.CHANGED: (
        "`{by}` changes `{owner}` unseen by autograd: do so under `torch.no_grad()`",
        "`{by}` changes the tensor, and its version counter stays the same",
    ),
    Access.NEEDLESS: (
        "`{owner}.data` is not needed: `{by}` runs with gradients off",
        "`{by}` changes the tensor, and its version counter stays the same",
    ),
}


def _fix(told: Told, access: Access, by: Span) -> Fix | None:
    if not told.text.endswith(_DATA):
        return None
    end = told.span.end
    attribute = Span(Position(end.row, end.column - len(_DATA)), end)
    if access is Access.READ:
        return Fix("Use `.detach()`", Applicability.UNSAFE, (Edit(attribute, ".detach()"),))
    without = Edit(attribute, "")
    if access is Access.NEEDLESS:
        return Fix("Remove `.data`", Applicability.UNSAFE, (without,))
    alone = told.span.start == by.start == told.statement.start  # nothing else is bound or computed there
    around = wrap(told.facts, told.statement, Applicability.UNSAFE) if alone else None
    if around is None or not around.edits:
        return Fix("Change the tensor itself under `torch.no_grad()`", Applicability.HINT)
    return Fix("Change the tensor itself under `torch.no_grad()`", Applicability.UNSAFE, (*around.edits, without))

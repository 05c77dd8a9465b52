"""TML205 tensor-data-attribute."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Severity, Span
from torchmemlint.flow.fact.data import Access
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.guarding import wrap
from torchmemlint.rules.told import Told
from torchmemlint.syntax.text import shortened


class TensorDataAttribute(TellingRule):
    """A tensor is read or changed by way of `.data`.

    ## What it does
    Reports `x.data` where the value of a tensor that has a graph is read, and where a parameter or another tensor is
    changed through it (`p.data.mul_(0.9)`, `p.data[0] = 0`, `nn.init.zeros_(p.data)`). Off by default: most such code
    is right as it is.

    ## Why it costs memory
    It does not by itself: `.data` and `.detach()` give the same view of the same storage. What `.data` leaves out is
    the version counter, by which autograd knows that a tensor that it saved has been overwritten since. So whoever
    overwrites a tensor through `.data` to save a copy gets wrong gradients where `.detach()` raises: the place where
    memory was saved is where the training silently goes wrong.

    ## Example
    ```python
    for p, average in zip(model.parameters(), averages):
        average.lerp_(p.data, 0.01)
        p.data.clamp_(-1, 1)
    ```

    ## Use instead
    ```python
    with torch.no_grad():
        for p, average in zip(model.parameters(), averages):
            average.lerp_(p, 0.01)
            p.clamp_(-1, 1)
    ```

    ## Fix safety
    Unsafe: the values are the same, but a change is counted from then on, so that a backward that used a tensor
    overwritten in the meantime (and gave wrong gradients) raises. A read becomes `.detach()`; a change loses its
    `.data` and is put under `torch.no_grad()` where nothing else turns gradients off. The functions of `torch.nn.init`
    turn them off themselves.

    ## When it stays silent
    Nothing shows that it is a tensor (packed sequences, batches and data sets have an attribute of that name, too); a
    read with gradients off, or of what has no graph; `p.grad.data`; `p.data = ...`, which gives a parameter another
    storage and cannot be said otherwise; metadata such as `x.data.shape` and `x.data.data_ptr()`; tests.

    ## References
    - [torch.Tensor.detach](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html)
    - [PyTorch 0.4.0 migration guide: what about .data?](https://pytorch.org/blog/pytorch-0_4_0-migration-guide/)
    - [In-place correctness checks](https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks)
    """

    code = "TML205"
    name = "tensor-data-attribute"
    severity = Severity.ADVICE
    on = False
    fix = Applicability.UNSAFE
    why = "autograd does not see changes that are made through it: gradients may be wrong where they should raise"

    def tell(self, told: Told) -> Finding:
        """Say what is read or changed by way of `.data`."""
        access, within = told.about(Access), told.case.within
        assert within is not None
        owner, by = shortened(told.text.removesuffix(_DATA), 40), told.text_of(within)
        message, what = _SAID[access]
        return told.finding(
            self,
            message.format(owner=owner, by=by),
            [*told.begun(), told.link(told.case.place, f"`{by}` {what}"), *told.called()],
            fix=_fix(told, access, told.span_of(within)),
        )


_DATA = ".data"
_SAID = {
    Access.READ: (
        "`{owner}.data` is read past autograd: `.detach()` is the same view, and notices when it is overwritten",
        "reads it without its version counter",
    ),
    Access.CHANGED: (
        "`{by}` changes `{owner}` behind autograd's back: change it under `torch.no_grad()`",
        "changes it without counting the change",
    ),
    Access.NEEDLESS: (
        "`{owner}.data` is not needed: `{by}` runs with gradients off",
        "changes it without counting the change",
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
        return Fix("Leave `.data` out", Applicability.UNSAFE, (without,))
    alone = told.span.start == by.start == told.statement.start  # nothing else is bound or computed there
    around = wrap(told.facts, told.statement, Applicability.UNSAFE) if alone else None
    if around is None or not around.edits:
        return Fix("Change the tensor itself under `torch.no_grad()`", Applicability.HINT)
    return Fix("Change the tensor itself, with gradients off", Applicability.UNSAFE, (*around.edits, without))

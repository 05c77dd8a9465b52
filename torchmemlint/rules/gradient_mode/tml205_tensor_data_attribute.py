"""TML205 tensor-data-attribute."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Severity, Span
from torchmemlint.flow import data_attributes
from torchmemlint.flow.data_attributes import DataUse, How
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import is_test, report
from torchmemlint.rules.gradient_mode.guarding import wrap
from torchmemlint.syntax.text import shortened
from torchmemlint.syntax.walking import contains


class TensorDataAttribute(Rule):
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

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield uses of `.data`."""
        if is_test(facts):
            return
        for use in data_attributes.uses(facts):
            by = shortened(use.by, 50)
            yield report(
                self,
                facts,
                use.site,
                _MESSAGES[use.how].format(owner=shortened(use.owner, 40), by=by),
                evidence=[use.shown, (use.site, f"`{by}` {_EVIDENCE[use.how]}")],
                fix=_fix(facts, use),
            )


_MESSAGES = {
    How.READ: "`{owner}.data` is read past autograd: `.detach()` is the same view, and notices when it is overwritten",
    How.CHANGED: "`{by}` changes `{owner}` behind autograd's back: change it under `torch.no_grad()`",
    How.INITIALISED: "`{owner}.data` is not needed: `{by}` turns gradients off itself",
}
_EVIDENCE = {
    How.READ: "reads it without its version counter",
    How.CHANGED: "changes it without counting the change",
    How.INITIALISED: "is handed the view instead of the tensor",
}


def _fix(facts: FileFacts, use: DataUse) -> Fix | None:
    node = use.site.node
    assert isinstance(node, cst.Attribute)
    name = use.site.piece.span(node.attr)
    if use.how is How.READ:
        return Fix("Use `.detach()`", Applicability.UNSAFE, (Edit(name, "detach()"),))
    dot = Position(name.start.row, name.start.column - 1)
    if facts.source.rows[dot.row - 1][dot.column - 1] != ".":
        return None
    without = Edit(Span(dot, name.end), "")
    if use.how is How.INITIALISED or use.guarded:
        return Fix("Leave `.data` out", Applicability.UNSAFE, (without,))
    around = _around(facts, use)
    if around is None or not around.edits:
        return Fix("Change the tensor itself under `torch.no_grad()`", Applicability.HINT)
    return Fix("Change the tensor itself, with gradients off", Applicability.UNSAFE, (*around.edits, without))


def _around(facts: FileFacts, use: DataUse) -> Fix | None:
    """`with torch.no_grad():` around the statement, where it only changes the tensor."""
    statement = use.statement
    if not isinstance(statement.node, cst.Expr | cst.Assign | cst.AugAssign):
        return None
    span = statement.span
    line = facts.source.rows[span.end.row - 1][span.end.column - 1 :].strip()
    if line and not line.startswith("#"):  # others share its row
        return None
    if isinstance(statement.node, cst.Assign) and len(statement.node.targets) > 1:
        return None
    if isinstance(statement.node, cst.Assign) and not contains(statement.node.targets[0], use.site.node):
        return None  # `y = x.data.clamp_(0) * z`: what the statement binds would have no graph either
    return wrap(facts, None, span, Applicability.UNSAFE)

"""TML202 no-op-grad-mode."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Severity, Span
from torchmemlint.flow.domain.manners import Remark
from torchmemlint.rules.base import Tag, TellingRule
from torchmemlint.rules.told import Told
from torchmemlint.syntax.text import shortened


class NoOpGradModeRule(TellingRule):
    """A gradient mode that does nothing where it stands.

    ## What it does
    Reports `torch.no_grad()` (or `inference_mode`, `enable_grad`) as a statement of its own, `with torch.no_grad:`
    without the call, a class decorated with `no_grad` (only its construction is covered), `Variable(x, volatile=True)`
    (without effect since torch 0.4: an advice; a pass that needs no gradients is TML201 or TML203), and
    `module.requires_grad = False` (an attribute that nobody reads).

    ## Why it costs memory
    The code means to run without a graph and does not: every activation of the forward pass is kept for a backward
    that never comes. Measured for a small network: a peak of 18.4 instead of 10.5 MB.

    ## Example
    ```python
    torch.no_grad()
    out = model(x)

    encoder.requires_grad = False
    ```

    ## Use instead
    ```python
    with torch.no_grad():
        out = model(x)

    encoder.requires_grad_(False)
    ```

    ## Fix safety
    Safe: `with torch.no_grad:` raises today and gets its call. Unsafe: `module.requires_grad = False` becomes
    `module.requires_grad_(False)`, which is what it says; but where an optimizer has the module's parameters, it was
    trained until now and no longer is. A bare statement has no fix: only its author knows what it was to cover; a class
    needs the decorator on its methods.

    ## When it stays silent
    - `torch.set_grad_enabled(False)` as a statement does take effect, and is not reported.
    - Only callers that were not seen decide whether `volatile` is set, or whether it is a module.
    - Tests are not run.

    ## References
    - [torch.no_grad](https://pytorch.org/docs/stable/generated/torch.no_grad.html)
    - [Migration guide to 0.4: volatile](https://pytorch.org/blog/pytorch-0_4_0-migration-guide/)
    """

    code = "TML202"
    name = "no-op-grad-mode"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    tag = Tag.UNNECESSARY
    why = "the forward pass keeps all its activations, although the code says that it should not"

    def tell(self, told: Told) -> Finding:
        """Say which mode has no effect, and why."""
        remark, text = told.case.remark, shortened(" ".join(told.text.split()), 50)
        assert remark is not None
        if remark is Remark.MODULE_ATTRIBUTE:
            text = text.removesuffix(_ATTRIBUTE)
        message, what = _SAID[remark]
        return told.finding(
            self,
            message.format(text=text),
            [Evidence(what, told.span) if told.case.within is None else told.link(told.case.within, what)],
            severity=Severity.ADVICE if remark is Remark.VOLATILE else None,
            fix=_fix(told, remark),
        )


_ATTRIBUTE = ".requires_grad"
_SAID = {
    Remark.DROPPED_MODE: (
        "`{text}` as a statement has no effect: use it as a context manager or decorator",
        "makes a context manager, which is dropped without being entered",
    ),
    Remark.UNCALLED_MODE: (
        "`with {text}:` lacks the call: the context is never entered",
        "is the class itself, which cannot be entered",
    ),
    Remark.MODE_OF_CLASS: (
        "`@{text}` on a class covers only its construction, not its methods",
        "wraps `__init__` alone",
    ),
    Remark.VOLATILE: ("`volatile` has had no effect since torch 0.4", "is accepted and ignored"),
    Remark.MODULE_ATTRIBUTE: (
        "`{text}.requires_grad` is an attribute that nobody reads: the parameters of the module keep their own",
        "is a module: its parameters keep their own `requires_grad`",
    ),
}


def _fix(told: Told, remark: Remark) -> Fix | None:
    if remark is Remark.UNCALLED_MODE:
        return Fix("Call it", Applicability.SAFE, (Edit(Span(told.span.end, told.span.end), "()"),))
    if remark is not Remark.MODULE_ATTRIBUTE:
        return None
    target, _, flag = told.statement.text(told.facts.source.rows).partition("=")
    if target.strip() != told.text or flag.strip() not in ("True", "False") or not told.text.endswith(_ATTRIBUTE):
        return None
    setter = f"requires_grad_({flag.strip()})"
    edit = Edit(told.statement, f"{told.text.removesuffix(_ATTRIBUTE)}.{setter}")
    return Fix(f"Use `{setter}`", Applicability.UNSAFE, (edit,))

"""TML202 no-op-grad-mode."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity, Span
from torchmemlint.flow.facts import FileFacts, ModuleCall, NoOpGradMode
from torchmemlint.rules.base import Rule, Tag
from torchmemlint.rules.findings import Link, report
from torchmemlint.syntax.text import shortened, text_of
from torchmemlint.syntax.walking import contains


class NoOpGradModeRule(Rule):
    """A gradient mode that does nothing where it stands.

    ## What it does
    Reports `torch.no_grad()` (or `inference_mode`, `enable_grad`) as a statement of its own, `with torch.no_grad:`
    without the call, a class decorated with `no_grad` (only its construction is covered), `Variable(x, volatile=True)`
    (without effect since torch 0.4; an advice where no forward pass is seen to start from it), and
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
    `torch.set_grad_enabled(False)` as a statement does take effect, and is not reported.

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

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield modes without effect."""
        for mode in facts.no_op_modes:
            form, entered = mode.form, _entered(facts, mode)
            if form == "volatile" and entered is None:
                form = "volatile-aside"
            yield report(
                self,
                facts,
                mode.site,
                _MESSAGES[form].format(text=shortened(mode.text, 50)),
                severity=Severity.ADVICE if form == "volatile-aside" else None,
                evidence=[(mode.site, _EVIDENCE[mode.form]), *_recorded(entered)],
                fix=_fix(mode),
            )


def _recorded(entered: ModuleCall | None) -> list[Link]:
    if entered is None:
        return []
    return [(entered.site, f"`{shortened(text_of(entered.site.node), 50)}` records a graph")]


def _entered(facts: FileFacts, mode: NoOpGradMode) -> ModuleCall | None:
    """The forward pass of the same function that starts from the variable (and no loss, which takes what came out)."""
    if mode.form != "volatile":
        return None
    statement = mode.statement.node
    names = {text_of(target.target) for target in statement.targets} if isinstance(statement, cst.Assign) else set()
    made = {call.origin for call in facts.module_calls}
    for call in facts.module_calls:
        if call.scope.function is not mode.scope.function or call.input_origins & (made - {call.origin}):
            continue
        for argument in call.site.node.args if isinstance(call.site.node, cst.Call) else ():
            if text_of(argument.value) in names or contains(argument.value, mode.site.node):
                return call
    return None


_MESSAGES = {
    "statement": "`{text}` as a statement has no effect: use it as a context manager or decorator",
    "uncalled": "`with {text}:` lacks the call: the context is never entered",
    "class": "`@{text}` on a class covers only its construction, not its methods",
    "volatile": "`volatile` has had no effect since torch 0.4: this forward pass records a graph",
    "volatile-aside": "`volatile` has had no effect since torch 0.4",
    "module-attribute": "`{text}.requires_grad = False` sets an attribute that nobody reads: the module still trains",
}


_EVIDENCE = {
    "statement": "makes a context manager, which is dropped without being entered",
    "uncalled": "is the class itself, which cannot be entered",
    "class": "wraps `__init__` alone",
    "volatile": "is accepted and ignored",
    "module-attribute": "is a module: its parameters keep their own `requires_grad`",
}


def _fix(mode: NoOpGradMode) -> Fix | None:
    span = mode.site.span
    if mode.form == "uncalled":
        end = span.end
        return Fix("Call it", Applicability.SAFE, (Edit(Span(end, end), "()"),))
    if mode.form == "module-attribute" and isinstance(mode.site.node, cst.Attribute):
        statement = mode.statement
        return Fix(
            "Use `requires_grad_(False)`",
            Applicability.UNSAFE,
            (Edit(statement.span, f"{mode.text}.requires_grad_(False)"),),
        )
    return None

"""TML202 no-op-grad-mode."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Severity, Span
from torchmemlint.flow.domain.manners import Remark
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told
from torchmemlint.syntax.text import shortened


class NoOpGradModeRule(TellingRule):
    """A gradient mode that does nothing where it stands."""

    def tell(self, told: Told) -> Finding:
        """Say which mode has no effect, and why."""
        remark, text = told.case.remark, shortened(told.text, 50)
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
        "creates a context manager, which is dropped without being entered",
    ),
    Remark.PASSED_MODE: (
        "`{text}` before `and` is never entered: `with` gets only the value after `and`",
        "this context manager counts as true, so `and` drops it",
    ),
    Remark.UNCALLED_MODE: (
        "`with {text}:` is missing `()`",
        "this is the class itself, which cannot be entered",
    ),
    Remark.MODE_OF_CLASS: (
        "`@{text}` on a class covers only its construction, not its methods",
        "wraps only `__init__`",
    ),
    Remark.VOLATILE: ("`volatile` has had no effect since torch 0.4", "torch accepts and ignores it"),
    Remark.MODULE_ATTRIBUTE: (
        "`{text}.requires_grad = …` has no effect on a module: its parameters keep their own setting",
        "this is a module: its parameters keep their own `requires_grad`",
    ),
}


def _fix(told: Told, remark: Remark) -> Fix | None:
    if remark is Remark.UNCALLED_MODE:
        return Fix("Add `()`", Applicability.SAFE, (Edit(Span(told.span.end, told.span.end), "()"),))
    if remark is Remark.PASSED_MODE:
        return Fix("Replace `and` by a comma", Applicability.HINT)
    if remark is not Remark.MODULE_ATTRIBUTE:
        return None
    target, _, flag = told.statement.text(told.facts.source.rows).partition("=")
    if target.strip() != told.text or flag.strip() not in ("True", "False") or not told.text.endswith(_ATTRIBUTE):
        return None
    setter = f"requires_grad_({flag.strip()})"
    edit = Edit(told.statement, f"{told.text.removesuffix(_ATTRIBUTE)}.{setter}")
    return Fix(f"Use `{setter}`", Applicability.UNSAFE, (edit,))

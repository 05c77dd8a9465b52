"""TML303 ineffective-inplace."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Edit, Finding, Fix
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir.ops import Constant
from torchmemlint.flow.names.suites import tests_live_here
from torchmemlint.knowledge import activations
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation


class IneffectiveInplace(Rule):
    """An activation works in place, which saves nothing in training."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield in-place forms that save nothing for backward."""
        if tests_live_here(facts.program.within):
            return
        for formula, op, name in facts.calls("inplace"):
            kind = _kind(name)
            given = next((formula.made(one.temp) for one in op.arguments if one.name == "inplace"), None)
            if kind is None or not isinstance(given, Constant) or given.value is not True:
                continue
            if kind in activations.IGNORES_INPLACE:
                message = f"`{kind}` ignores `inplace=True`: no memory is saved"
                says = f"torch's `{kind}` makes a new tensor either way"
            else:
                message = (
                    f"`{kind}(inplace=True)` saves no memory in training: backward needs the input, so it is copied"
                )
                says = f"measured: with and without `inplace=True`, `{kind}` keeps as much for backward"
            edit = Edit(facts.source.span_of(given.span), "False")
            fix = Fix("Remove `inplace=True`", Applicability.HINT, (edit,))
            yield report_operation(self, facts, op, message, evidence=[(given, says)], fix=fix)


def _kind(qualified: str) -> str | None:
    """The short name of the class of an activation that saves nothing in place, or of that which a function is of."""
    function = activations.functional(qualified)
    name = (function or qualified).rpartition(".")[2]
    known = name in activations.SAVES_NOTHING | activations.IGNORES_INPLACE
    return name if known and (function is not None or qualified.startswith("torch.nn")) else None

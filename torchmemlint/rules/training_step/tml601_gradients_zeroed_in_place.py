"""TML601 gradients-zeroed-in-place."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding
from torchmemlint.flow.fact.zeroing import Shown
from torchmemlint.rules.arguments import WrittenCall
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.told import Told
from torchmemlint.syntax import cst
from torchmemlint.syntax.walking import inside


class GradientsZeroedInPlace(TellingRule):
    """Gradients are set to zero where they lie, and stay allocated through the next forward pass."""

    def tell(self, told: Told) -> Finding:
        """Say which gradients stay allocated."""
        callee = told.call.callee if told.call is not None else told.text
        return told.finding(
            self,
            f"`{callee}` keeps gradients allocated during the next forward pass",
            [told.here(told.about(Shown).value), *told.called()],
            fix=offered("Set `grad = None`", Applicability.UNSAFE, _edits(told.call)),
        )


def _edits(call: WrittenCall | None) -> tuple[Edit, ...]:
    if call is None:
        return ()
    owner, _, method = call.callee.rpartition(".")
    if method == "zero_grad":
        flag = call.argument("set_to_none", 0)
        return call.replacing(flag, "True") if flag is not None else ()
    return call.replacing(call.node, f"{owner.removesuffix('.data')} = None") if _is_statement(call) else ()


def _is_statement(call: WrittenCall) -> bool:
    """Does the call stand by itself, so that an assignment may stand there?"""
    return any(isinstance(part, cst.Expr) and part.value is call.node for part in inside(call.piece.module))

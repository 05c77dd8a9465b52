"""TML803 hook-leftovers."""

from __future__ import annotations

from torchmemlint.findings import Finding, Severity
from torchmemlint.flow.fact.owners import Left, Remaining
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told

_WORDS = {  # message and fix
    Left.POPPED: (
        "`{}` grows with each pass that has no backward: only a backward hook takes from it",
        "Push only where a backward follows: `if torch.is_grad_enabled():`",
    ),
    Left.REMOVED: (
        "the hook is removed, but `{}` keeps what it stored, on every module it was registered on",
        "Delete `{}` where the hooks are removed, or collect the tensors in a variable",
    ),
    Left.GROWN: (
        "`{}` gets a tensor from every pass, and nothing takes one away: they pile up in memory",
        "Keep the last one only, move what you keep to the CPU, or empty `{}` after each pass",
    ),
}


_PLACES = {
    Left.POPPED: ("this pass has no backward",),
    Left.REMOVED: ("the hook is registered here, and removed later",),
    Left.GROWN: ("the hook is registered here, and never removed", "this pass runs it"),
}


class HookLeftovers(TellingRule):
    """What hooks put onto a module or a list stays there when no hook is left to take it away."""

    def tell(self, told: Told) -> Finding:
        """Say what stays, and since when."""
        holder, left = (about := told.about(Remaining)).holder, about.left
        message, title = _WORDS[left]
        return told.finding(
            self,
            message.format(holder),
            [
                told.here("the hook stores what the pass gives it"),
                *told.links(told.case.moves, "only this hook removes it, when backward runs"),
                *(told.link(place, word) for place, word in zip(told.case.calls, _PLACES[left], strict=False)),
                *told.around("repeated by this loop"),
            ],
            severity=Severity.ADVICE if left is Left.REMOVED else Severity.WARNING,
            hint=title.format(holder),
        )

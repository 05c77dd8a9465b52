"""TML301 out-of-place-activation."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Span
from torchmemlint.flow.fact.details import Activating
from torchmemlint.knowledge import activations, saved_tensors
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class OutOfPlaceActivation(TellingRule):
    """An activation makes a new tensor where it could overwrite its input."""

    def tell(self, told: Told) -> Finding:
        """Say what the activation allocates or keeps beyond what it needs."""
        kind = told.about(Activating).kind
        if kind in activations.SAVES_ONE:
            message = f"`{kind}(inplace=True)` would store one activation less per call"
        else:
            message = f"`{kind}` allocates a second output tensor; `inplace=True` avoids it (no difference in training)"
        edits = _edits(told)
        fix = Fix("Pass `inplace=True`", Applicability.UNSAFE, edits) if edits else None
        return told.finding(self, message, _evidence(told), fix=fix)


def _evidence(told: Told) -> Iterator[Evidence]:
    case = told.case
    links: list[Evidence] = []
    for producer, made, applied in told.about(Activating).uses:
        if made is not None:
            name = saved_tensors.short(producer)
            links.append(told.link(made, f"`{name}` computes the input, and does not need it for backward"))
        if applied is not None and applied != case.place:
            links.append(told.link(applied, "applied here; nothing else reads the input"))
    yield from dict.fromkeys(links)
    yield told.link(case.place, f"`{told.about(Activating).kind}` works out of place")


def _edits(told: Told) -> tuple[Edit, ...]:
    call = told.call
    if call is None:
        return ()
    if call.callee.rpartition(".")[0] == "torch":  # torch.relu takes no `inplace`; torch.relu_ does it
        end = call.piece.span(call.node.func).end
        return (Edit(Span(end, end), "_"),)
    return call.adding("inplace=True")

"""TML511 cast-after-create."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Span
from torchmemlint.flow.fact.details import Casting
from torchmemlint.rules.arguments import WrittenCall
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.told import Told


class CastAfterCreate(TellingRule):
    """A tensor is created as one type and copied to another at once."""

    def tell(self, told: Told) -> Finding:
        """Say that a tensor is created only to be cast."""
        place, casting = told.case.place, told.about(Casting)
        created = told.call_at(casting.created)
        callee = created.callee if created is not None else ""
        return told.finding(
            self,
            f"`{callee}(…)` allocates {casting.before} numbers that are copied to {casting.dtype} at once",
            [
                told.link(casting.created, f"created as {casting.before}"),
                told.link(place, f"copied to {casting.dtype}: both tensors are in memory at once"),
            ],
            fix=_fix(casting, told.call, created),
        )


def _fix(casting: Casting, cast: WrittenCall | None, created: WrittenCall | None) -> Fix:
    edits: tuple[Edit, ...] = ()
    if cast is not None and created is not None and created.argument("dtype") is None:
        written, module = created.piece.written, created.callee.rpartition(".")[0]
        text = written(created.node)
        if module and "#" not in written(cast.node)[len(text) :] and not text.startswith("("):
            added = created.adding(f"dtype={module}.{casting.dtype}")
            edits = (*added, Edit(Span(created.span.end, cast.span.end), ""))
    return offered("Pass `dtype=`", Applicability.SAFE if casting.exact else Applicability.UNSAFE, edits)

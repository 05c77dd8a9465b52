"""TML506 checkpoint-kept-alive."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Span
from torchmemlint.flow.fact.details import Bound
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class CheckpointKeptAlive(TellingRule):
    """A checkpoint that was copied into the model stays in memory while the program works."""

    def tell(self, told: Told) -> Finding:
        """Say that nobody needs a checkpoint any more."""
        bound = told.about(Bound)
        where = "in CPU memory" if bound.on_host else "in GPU memory"
        if bound.as_saved:
            where = "on the device of its saved tensors"
        return told.finding(
            self,
            f"`{bound.names[0]}` keeps the checkpoint {where} after its last use",
            [
                told.link(bound.copied, "its tensors are copied to the model here"),
                told.link(bound.last, "last use of the checkpoint"),
                told.link(bound.work, f"`{told.text_of(bound.work)}` runs while the checkpoint is still in memory"),
            ],
            fix=_fix(told, bound),
        )


def _fix(told: Told, bound: Bound) -> Fix:
    description = f"Add `del {', '.join(bound.names)}`"
    if bound.after is None or told.facts.path.suffix == ".ipynb":
        return Fix(description, Applicability.HINT)
    span, statement, rows = told.span_of(bound.after), told.facts.source.statement_span, told.facts.source.rows
    first = rows[statement(Span(span.start, span.start)).start.row - 1]
    row = statement(Span(span.end, span.end)).end.row
    indent, end = first[: len(first) - len(first.lstrip())], Position(row, len(rows[row - 1].rstrip("\r\n")) + 1)
    return Fix(description, Applicability.SAFE, (Edit(Span(end, end), f"\n{indent}del {', '.join(bound.names)}"),))

"""TML107 undetached-generator."""

from __future__ import annotations

from dataclasses import replace

from torchmemlint.doubts import is_sure
from torchmemlint.findings import Applicability, Edit, Finding, Fix
from torchmemlint.flow.domain.manners import Stored
from torchmemlint.flow.fact.details import Discarding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import detach_fix
from torchmemlint.rules.guarding import without_gradients
from torchmemlint.rules.told import Told
from torchmemlint.syntax.source_module import Site


class UndetachedGenerator(TellingRule):
    """A discriminator's step differentiates the generator as well, for gradients that are thrown away."""

    def tell(self, told: Told) -> Finding:
        """Say into which networks backward goes on."""
        case, how = told.case, told.about(Discarding)
        assert case.backward is not None
        makers = " and ".join(f"`{told.text_of(place)}`" for place in case.graphs[:2])
        return told.finding(
            self,
            f"`{told.text_of(case.place)}` backpropagates into {makers}, whose gradients are never used",
            [
                *told.begun(),
                told.link(case.backward, "backward runs through both networks"),
                told.link(how.step, "this step does not use the gradients of the first network"),
                told.link(how.zeroed, "the gradients are zeroed here, before that network's optimizer steps"),
                *told.called(),
            ],
            fix=_fix(told),
        )


def _fix(told: Told) -> Fix | None:
    """Generate without gradients where nothing else wants the graph, or detach what the discriminator is given."""
    how, certain = told.about(Discarding), is_sure(told.doubts)
    if how.alone is not None and how.alone.path == told.facts.path:
        made = Told(told.facts, replace(told.case, place=how.alone))
        if not made.statement.contains(told.span):
            return without_gradients(made, wholly=False)
    given, call = how.argument, told.call
    value = call.given_at(given.position) if call is not None and given is not None else None
    if call is None or given is None or value is None:
        return Fix("Detach the argument, and call `requires_grad_()` on it if you need its gradient", _HINT)
    fix = detach_fix(Site(call.piece, value), safe=certain and given.stored is Stored.TENSOR)
    return replace(fix, edits=(*fix.edits, *_without_retaining(told)))


def _without_retaining(told: Told) -> tuple[Edit, ...]:
    """Take `retain_graph=True` out of a backward that kept the graph for the generator's sake alone."""
    call = told.call_at(told.case.backward)
    return call.without("retain_graph") if call is not None and told.about(Discarding).spares else ()


_HINT = Applicability.HINT

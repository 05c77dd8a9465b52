"""TML404 loader-respawns-workers."""

from __future__ import annotations

import ast

from torchmemlint.findings import Applicability, Edit, Finding
from torchmemlint.flow.fact.details import Feeding
from torchmemlint.rules.arguments import shown
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.loading.alike import loaders_alike
from torchmemlint.rules.told import Told
from torchmemlint.syntax import statements


class LoaderRespawnsWorkers(TellingRule):
    """A loader starts its workers again in every epoch."""

    since = (1, 7)  # torch's release notes

    def tell(self, told: Told) -> Finding:
        """Say where a loader with workers is iterated over again and again."""
        feeding = told.about(Feeding)
        assert feeding.iterated is not None
        assert feeding.again is not None
        counted = str(feeding.workers).isdecimal() and not feeding.chosen
        number = f"{feeding.workers} workers" if counted else "workers"
        return told.finding(
            self,
            f"`{told.callee_of(told.case.place)}` restarts its {number} for every pass over it",
            [
                told.here("the loader is built without `persistent_workers=True`"),
                told.link(feeding.iterated, "the loader is iterated over here"),
                told.link(feeding.again, "repeated by this loop"),
            ],
            fix=offered("Pass `persistent_workers=True`", Applicability.UNSAFE, _edits(told, chosen=feeding.chosen)),
        )


def _edits(told: Told, *, chosen: bool) -> tuple[Edit, ...]:
    """Add the argument; where the number of workers may be chosen, it depends on that."""
    calls = list(loaders_alike(told))
    given = [shown(call.argument("num_workers", 5)) for call in calls]
    asks = chosen or (given != [] and given[0] in _parameters(told))
    if not calls or (asks and not given[0]):
        return ()
    text = f"persistent_workers={f'{given[0]} > 0' if asks else 'True'}"
    alike = (call for call, workers in zip(calls, given, strict=True) if workers == given[0])
    return tuple(edit for call in alike for edit in call.adding(text))


def _parameters(told: Told) -> set[str]:
    """The parameters of the function that makes the loader: its callers choose them."""
    source = told.facts.source
    around = statements.around(source.statements, told.span, source.rows)
    functions = [one for one in around if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    given = functions[-1].args if functions else ast.arguments([], [], None, [], [], None, [])
    return {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}

"""TML105 needless-retain-graph."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.flow.fact.details import Again
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class NeedlessRetainGraph(TellingRule):
    """A graph is retained that nothing differentiates again."""

    def tell(self, told: Told) -> Finding:
        """Say which option keeps the graph, or which graph it keeps for a step that has become another one."""
        if isinstance(told.case.about, Again) and (step := told.case.about.step) is not None:
            return told.finding(
                self,
                f"`retain_graph=True` keeps a graph from before the loop, whose weights `{told.text_of(step)}` changes",
                [
                    *told.begun(),
                    told.link(step, "changes the parameters that the graph was recorded with"),
                    *told.around("every iteration differentiates the same graph again"),
                    *told.called(),
                ],
            )
        if isinstance(told.case.about, Again):
            return told.finding(
                self,
                "`retain_graph=True` in the last iteration keeps the graph while the next batch builds its own",
                [
                    *told.begun(),
                    *told.around("every iteration differentiates a part of the same graph"),
                    told.here("after the last iteration, no other backward runs through it"),
                    *told.called(),
                ],
                hint="Call `backward()` once on the sum of the losses, or retain in all but the last iteration",
            )
        option = "create_graph" if told.case.creates else "retain_graph"  # the first retains, too
        alone = told.here("no other backward runs through it afterwards")
        return told.finding(
            self,
            f"`{option}=True` keeps a graph that no later backward uses",
            [*told.begun(), alone, *told.called()],
            fix=_fix(told, option),
        )


def _fix(told: Told, option: str) -> Fix | None:
    edits = told.call.without("retain_graph", "create_graph") if told.call is not None else ()
    return Fix(f"Remove `{option}=True`", Applicability.UNSAFE, edits) if edits else None

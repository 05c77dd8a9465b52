"""TML105 needless-retain-graph."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.outcomes import Again
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class NeedlessRetainGraph(TellingRule):
    """A graph is retained that nothing differentiates again.

    ## What it does
    Reports `retain_graph=True` (or `create_graph=True`) where no second backward or `autograd.grad` over a shared part
    of the graph can follow. Also reports it where the only one that follows is that of the loop's next iteration, and
    an optimizer has changed the parameters by then: of values that were recorded before the loop, for example.

    ## Why it costs memory
    Backward frees saved tensors as it goes, unless the graph is retained: then all of them stay until the last
    reference to the result is gone. Measured for a small network: peak 26.8 instead of 22.1 MB. `create_graph` in
    addition builds a graph of the gradients. A graph from before the loop is kept through all its iterations; with
    more than one layer, its second backward raises, for the step has changed weights that it saved.

    ## Example
    ```python
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward(retain_graph=True)
        optimizer.step()
    ```

    ## Use instead
    ```python
        loss.backward()
    ```

    What each iteration needs of a pass is computed within the loop, or detached before it.

    ## Fix safety
    Unsafe: where code out of view does differentiate again, it raises without the retained graph. None is offered where
    the graph comes from before the loop.

    ## When it stays silent
    Another backward, or `autograd.grad`, runs through a part of the graph afterwards: later in the same iteration, or
    in the next one through a graph that is carried from step to step, or that was built before the loop with parameters
    which the loop does not change.

    The finding is only possible, and not shown by default, where code that is not in view may differentiate again:

    - the graph is returned, stored in an object, or handed to a method that trains (`step(loss)`);
    - an argument may bring the graph along, and other functions run backward, too;
    - after `loss.backward(create_graph=True)`, `p.grad` is read, or something steps that is no optimizer of torch;
    - hooks may collect gradients with their graph.

    ## References
    - [torch.Tensor.backward](https://pytorch.org/docs/stable/generated/torch.Tensor.backward.html)
    - [pytorch#40005](https://github.com/pytorch/pytorch/issues/40005)
    """

    code = "TML105"
    name = "needless-retain-graph"
    severity = Severity.WARNING
    fix = Applicability.UNSAFE
    why = "a retained graph keeps every tensor that backward would have freed"

    def tell(self, told: Told) -> Finding:
        """Say which option keeps the graph, or which graph it keeps for a step that has become another one."""
        if isinstance(told.case.about, Again):
            step = told.about(Again).step
            return told.finding(
                self,
                f"`retain_graph=True` keeps a graph from before the loop that `{told.text_of(step)}` outdates",
                [
                    *told.begun(),
                    told.link(step, "changes the parameters that the graph was recorded with"),
                    *told.around("every iteration differentiates the same graph again"),
                    *told.called(),
                ],
            )
        option = "create_graph" if told.case.creates else "retain_graph"  # the first retains, too
        alone = told.link(told.case.place, "no other backward runs through it afterwards")
        return told.finding(
            self,
            f"`{option}=True` keeps a graph that is not differentiated again",
            [*told.begun(), alone, *told.called()],
            fix=_fix(told, option),
        )


def _fix(told: Told, option: str) -> Fix | None:
    edits = told.call.without("retain_graph", "create_graph") if told.call is not None else ()
    return Fix(f"Remove `{option}=True`", Applicability.UNSAFE, edits) if edits else None

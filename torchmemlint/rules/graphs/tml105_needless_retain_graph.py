"""TML105 needless-retain-graph."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.rules import arguments
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class NeedlessRetainGraph(TellingRule):
    """A graph is retained that nothing differentiates again.

    ## What it does
    Reports `retain_graph=True` (or `create_graph=True`) where no second backward or `autograd.grad` over a shared part
    of the graph can follow.

    ## Why it costs memory
    Backward frees saved tensors as it goes, unless the graph is retained: then all of them stay until the last
    reference to the result is gone. Measured for a small network: peak 26.8 instead of 22.1 MB. `create_graph` in
    addition builds a graph of the gradients.

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

    ## Fix safety
    Unsafe: where code out of view does differentiate again, it raises without the retained graph.

    ## When it stays silent
    Another backward, or `autograd.grad`, runs through a part of the graph afterwards: later in the same iteration, or
    in the next one through a graph that was built before the loop or is carried from step to step.

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
        """Say which option keeps the graph."""
        option = "create_graph" if told.case.creates else "retain_graph"  # the first retains, too
        alone = told.link(told.case.place, "no other backward runs through it afterwards")
        return told.finding(
            self,
            f"`{option}=True` keeps a graph that is not differentiated again",
            [*told.begun(), alone, *told.called()],
            fix=_fix(told, option),
        )


def _fix(told: Told, option: str) -> Fix | None:
    call = told.call_at(told.case.place)
    edits = arguments.without(call, "retain_graph", "create_graph") if call is not None else ()
    return Fix(f"Remove `{option}=True`", Applicability.UNSAFE, edits) if edits else None

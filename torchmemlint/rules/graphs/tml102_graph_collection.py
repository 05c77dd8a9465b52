"""TML102 graph-collection."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class GraphCollection(CaseRule):
    """A graph-carrying value is collected in a container that outlives the iteration.

    ## What it does
    Reports `losses.append(loss)`, `history["loss"].append(loss)`, `preds += [out]`, `outputs[key] = out` with another
    key each time, and comprehensions over a loader, where what is added holds an autograd graph. A dict or tuple of
    statistics counts if one of its entries does. The loop may be in another function or file.

    ## Why it costs memory
    Each element keeps its iteration's graph. Graphs that no backward has freed hold every saved activation: measured,
    660,480 bytes per step for a small network (severity `error`). Where backward has run, the graph's nodes stay in
    CPU memory, and each kept CUDA scalar holds one 512-byte block on the GPU (severity `warning`).

    ## Example
    ```python
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        history["loss"].append(loss)
    ```

    ## Use instead
    ```python
        history["loss"].append(loss.detach())  # or loss.item()
    ```

    ## Fix safety
    Safe where the finding is certain and one tensor is added on all paths: it is detached. Unsafe otherwise. Nothing
    is detached inside a dict or tuple.

    ## When it stays silent
    - The container is bounded (`deque(maxlen=...)`), emptied, or created in every iteration.
    - Its elements are differentiated later, or a backward after the loop runs through the same graphs.
    - Gradients are disabled, or what is added has no graph.
    - Backward has run through the graphs, and an optimizer step follows the loop: the rounds belong to one step.
    - If a forward pass needs no gradients at all, TML201 or TML203 reports the pass, with severity `error` where its
      graph is kept.

    What cannot be determined lowers the confidence of a finding instead of hiding it. Only `certain` and `likely`
    findings are shown by default. Tests are not run.

    ## References
    - [PyTorch FAQ: my model reports out of memory](https://pytorch.org/docs/stable/notes/faq.html)
    - [CUDA semantics: memory management](https://pytorch.org/docs/stable/notes/cuda.html#memory-management)
    """

    code = "TML102"
    name = "graph-collection"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "every element keeps the autograd graph of its iteration alive"

"""TML101 graph-accumulation."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class GraphAccumulation(CaseRule):
    """A graph-carrying value is added up over iterations.

    ## What it does
    Reports a variable, attribute, element or meter that lives longer than one iteration and to which a tensor is added
    with its autograd graph: `total += loss`, `ema = 0.9 * ema + 0.1 * loss`, or `meter.update(loss)` where `update`
    adds up its argument. The loop may be in another function or file.

    ## Why it costs memory
    The running value hangs on the graph of every iteration so far. Where no backward has run through them, each graph
    still holds all its saved activations: measured, 661,508 bytes per step for a small network, on the device, in a
    straight line (severity `error`). Where backward has run, the saved activations are gone and the graph's nodes
    stay: nothing on the device, 19 KB of host memory per step for 8 layers, 71 KB for 32 (severity `warning`).

    ## Example
    ```python
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss
    ```

    ## Use instead
    ```python
        total += loss.detach()  # stays on the device, no synchronisation
        total += loss.item()  # a Python number, waits for the device
    ```

    ## Fix safety
    Safe where the finding is certain and the tensor is one on all paths: its value, device and type stay the same.
    Unsafe otherwise.

    ## When it stays silent
    - The sum, or something computed from it, is differentiated.
    - The sum is reset in every iteration, or the loop runs over a short list in the code, such as `for x in (a, b)`.
    - Gradients are disabled, or the value has no graph: a number, a detached tensor, integers.
    - Backward has run through the graphs, and an optimizer step follows the loop: the rounds belong to one step.
    - If a forward pass needs no gradients at all, TML201 or TML203 reports the pass, with severity `error` where its
      graph is kept.

    What cannot be determined lowers the confidence of a finding instead of hiding it. Only `certain` and `likely`
    findings are shown by default. Tests are not run.

    ## References
    - [PyTorch FAQ: my model reports out of memory](https://pytorch.org/docs/stable/notes/faq.html)
    """

    code = "TML101"
    name = "graph-accumulation"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "the running value keeps the autograd graph of every iteration alive"

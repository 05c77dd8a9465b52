"""TML103 graph-on-attribute."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class GraphOnAttribute(CaseRule):
    """A graph-carrying value is kept on an object, in a global or in a cache.

    ## What it does
    Reports a tensor with its autograd graph that outlives the call that made it and is never differentiated: in an
    attribute or global that is only read later, or in a cache such as `functools.lru_cache`.

    ## Why it costs memory
    A cache holds the graphs of all calls, with every saved activation (severity `error`). An attribute holds one graph
    until it is replaced. If backward has run through it, it costs no GPU memory, only the nodes in CPU memory
    (severity `advice`).

    ## Example
    ```python
    def forward(self, x):
        out = self.net(x)
        self.last_output = out
        return out

    def plot(self):
        return self.last_output.detach().cpu().numpy()
    ```

    ## Use instead
    ```python
        self.last_output = out.detach()
    ```

    ## Fix safety
    Safe where the finding is certain and the value is one tensor on all paths: it is detached. Unsafe otherwise.

    ## When it stays silent
    - A later backward goes through what is kept.
    - It is replaced or deleted before the program goes on, or gradients are disabled.
    - Code that is not in the project may read and differentiate it: then the finding is only possible.

    What cannot be determined lowers the confidence of a finding instead of hiding it. Only `certain` and `likely`
    findings are shown by default. Tests are not run.

    ## References
    - [Autograd mechanics: saved tensors](https://pytorch.org/docs/stable/notes/autograd.html#saved-tensors)
    """

    code = "TML103"
    name = "graph-on-attribute"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "the graph, with all activations that it saved, lives as long as the object that holds it"

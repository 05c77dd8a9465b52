"""TML106 hook-keeps-graph."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class HookKeepsGraph(CaseRule):
    """A module hook stores outputs together with their graph.

    ## What it does
    Reports a forward or backward hook, or a closure registered as one, that puts what it is given into a list, dict or
    attribute without detaching it, where nothing in the file differentiates it later.

    ## Why it costs memory
    The stored output holds the graph of the whole forward pass up to that module: measured, 524,288 bytes per step for
    one small layer in a list that grows (severity `error`, where a training loop is in view). Under a key or in an
    attribute it lives until the next pass puts another in its place (severity `warning`).

    ## Example
    ```python
    def hook(module, inputs, output):
        features.append(output)

    model.layer4.register_forward_hook(hook)
    ```

    ## Use instead
    ```python
    def hook(module, inputs, output):
        features.append(output.detach())
    ```

    ## Fix safety
    Unsafe: only the stored reference is detached, but a module may give a tuple, which has no `detach`.

    ## When it stays silent
    The captured features are differentiated (style and perceptual losses, attribution), or gradients are off while the
    hooked module runs. Where they are handed on to code that was not seen, the finding says so, and is not shown by
    default. An advice where the next output takes the place of the last: that is one graph, and whoever reads it in
    between may want it.

    ## References
    - [torch.nn.Module.register_forward_hook](https://pytorch.org/docs/stable/generated/torch.nn.Module.html)
    - [pytorch#46386](https://github.com/pytorch/pytorch/issues/46386)
    """

    code = "TML106"
    name = "hook-keeps-graph"
    severity = Severity.ERROR
    fix = Applicability.UNSAFE
    why = "each stored output holds the graph of the forward pass that made it"

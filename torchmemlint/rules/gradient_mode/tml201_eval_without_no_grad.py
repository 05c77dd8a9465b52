"""TML201 eval-without-no-grad."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class EvalWithoutNoGrad(CaseRule):
    """A forward pass whose results are never differentiated runs with gradients on.

    ## What it does
    Reports evaluation, validation, prediction, feature extraction and sampling that run a network with gradients
    enabled, although nothing differentiates what comes out. The network is in eval mode, or only numbers are read from
    its results, or nothing takes them (a loop that renews running statistics), or what runs it evaluates or predicts
    and trains nothing.

    ## Why it costs memory
    Every layer keeps what its backward would need until the result is dropped: measured for a small network, a peak of
    18.4 instead of 10.5 MB. Where results are kept over iterations, so are their graphs, and memory grows with the
    data set (severity `error`).

    ## Example
    ```python
    def validate(model, loader):
        model.eval()
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    ```

    ## Use instead
    ```python
    @torch.no_grad()
    def validate(model, loader):
        ...
    ```

    ## Fix safety
    Safe where the finding is certain. The function is decorated with `@torch.no_grad()` if it runs no pass that is
    differentiated; else the statement is put under `torch.no_grad()`. Unsafe where the finding is not certain, and
    where what runs stores something that other code may differentiate: in an attribute, a global, a cache or a forward
    hook. Only a hint where a pass that needs gradients is in the same statement, or another statement on the same
    line. Where the file imports only parts of torch (`from torch import nn`), `import torch` is added.

    ## When it stays silent
    - Gradients are disabled by any route: a context, a decorator, `set_grad_enabled`, a framework's hook, or all
      callers.
    - The network has no parameters, or all of them are frozen, and the input needs no gradient.
    - Something differentiates the result, or the network differentiates something itself (forces from an energy).
    - The input requires gradients: saliency, attacks.

    What cannot be determined lowers the confidence of a finding instead of hiding it. Only `certain` and `likely`
    findings are shown by default. Tests are not run. The severity is `advice` for a pass that happens once (in a
    constructor, or at the end of a script) and for a small graph: one linear layer, one row of numbers through linear
    layers, or a network of a script that never mentions a device. It is `error` where the graphs are kept across
    iterations.

    ## References
    - [Autograd mechanics: locally disabling gradient computation](https://pytorch.org/docs/stable/notes/autograd.html)
    - [transformers#7232](https://github.com/huggingface/transformers/issues/7232)
    """

    code = "TML201"
    name = "eval-without-no-grad"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "every layer keeps its activations for a backward pass that never comes"

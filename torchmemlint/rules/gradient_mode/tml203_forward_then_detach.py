"""TML203 forward-then-detach."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class ForwardThenDetach(CaseRule):
    """A forward pass in gradient mode whose gradients go nowhere: every output is detached, or no optimizer wants them.

    ## What it does
    Reports `target_net(x).detach()`, `teacher(x).data`, `critic(s).detach().max(1)` and the like: a network runs with
    gradients enabled, and everything that comes out is detached before it is used. Also a network whose results are
    differentiated although nothing trains it: a target network, a teacher, or a backbone under a new head, where the
    optimizers step other networks only; and a reference or reward model that a subclass of transformers' `Trainer`
    keeps beside the `model` that it trains.

    ## Why it costs memory
    The whole graph of the forward pass, with every activation that its layers save, is built and kept until the
    detach, only to be dropped. It stands on top of the training step's own activations at its peak.

    ## Example
    ```python
    with torch.enable_grad():
        target = target_net(next_state).detach().max(1).values
    ```

    ## Use instead
    ```python
    with torch.no_grad():
        target = target_net(next_state).max(1).values
    ```

    ## Fix safety
    Safe where the finding is certain and all that the statement computes comes from the pass: it is put under
    `torch.no_grad()`. Unsafe otherwise, and where what runs stores something that other code may differentiate. Only a
    hint where a pass that needs gradients is in the same statement, where another statement is on the same line, where
    the statement also assigns a name (`target(h := encoder(s))`), and where it waits (`await`, `yield`).

    ## When it stays silent
    - Some output is differentiated, and an optimizer steps the network's parameters.
    - The network is frozen or has no parameters, and its inputs need no gradient: then there is no graph.
    - Gradients are disabled, here or in all callers.
    - The network differentiates something itself, or its input's gradients are used.

    What cannot be determined lowers the confidence of a finding instead of hiding it. Only `certain` and `likely`
    findings are shown by default. Tests are not run. The severity is `advice` for a pass that happens once, for a
    small graph (see TML201), and where the result becomes an array without `.cpu()`: then it is in CPU memory. It is
    `error` where the graphs are kept across iterations.

    ## References
    - [torch.no_grad](https://pytorch.org/docs/stable/generated/torch.no_grad.html)
    - [transformers: Trainer.create_optimizer](https://huggingface.co/docs/transformers/main_classes/trainer)
    """

    code = "TML203"
    name = "forward-then-detach"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "a graph with all its activations is built only to be dropped"

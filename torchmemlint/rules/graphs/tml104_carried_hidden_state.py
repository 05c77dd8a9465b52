"""TML104 carried-hidden-state."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class CarriedHiddenState(CaseRule):
    """A recurrent state enters the next step with the graph of the last one.

    ## What it does
    Reports `out, h = rnn(x, h)` in a loop that also runs backward on the result, where nothing detaches the state
    between two iterations: in variables, or in an attribute of the network.

    ## Why it costs memory
    Step n+1's graph contains step n's. Without `retain_graph` the second backward raises ("Trying to backward through
    the graph a second time"); with it, every step keeps all earlier ones alive: measured, 491,520 bytes per step for a
    small network, and time that grows with the number of steps.

    ## Example
    ```python
    h = None
    for x, y in loader:
        out, h = rnn(x, h)
        loss = criterion(out, y)
        loss.backward(retain_graph=True)
        optimizer.step()
    ```

    ## Use instead
    ```python
        out, h = rnn(x, h)
        h = h.detach()  # of an LSTM: tuple(s.detach() for s in h)
    ```

    ## Fix safety
    Unsafe: the state is detached as it enters the module, where it may be `None` at first, or a tuple. Where
    `retain_graph=True` keeps the program running, no fix is offered: cutting the history is truncated
    backpropagation, which changes the results.

    ## When it stays silent
    The state is detached on every path between two iterations, or the losses of the whole sequence are differentiated
    after the loop. Where it is detached on some paths only (truncated backpropagation every k steps), the finding is
    only possible: it is not shown by default.

    ## References
    - [pytorch#2198](https://github.com/pytorch/pytorch/issues/2198)
    """

    code = "TML104"
    name = "carried-hidden-state"
    severity = Severity.ERROR
    fix = Applicability.UNSAFE
    why = "the graph of every earlier step hangs on the state of the current one"

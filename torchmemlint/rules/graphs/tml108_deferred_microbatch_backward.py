"""TML108 deferred-microbatch-backward."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.domain.manners import How
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class DeferredMicrobatchBackward(TellingRule):
    """The losses of several batches are summed and differentiated in one backward.

    ## What it does
    Reports a backward through the sum (or mean) of losses that a loop gathers, where each iteration runs a forward
    pass on a batch of its own: the next one of a loader, or a piece of a larger batch.

    ## Why it costs memory
    Each loss holds the graph of its forward pass, with all saved activations, until backward runs. Differentiated
    after the loop, the graphs of all iterations are alive together, so that peak memory grows with their number and
    splitting a batch into pieces saves little. The gradient of a sum is the sum of the gradients: backward in each
    iteration adds them up in `.grad`, and holds one graph at a time. Measured for three convolutions and a batch in 8
    pieces: peak 60.6 instead of 17.3 MB.

    ## Example
    ```python
    optimizer.zero_grad()
    total = 0.0
    for x, y in zip(inputs.chunk(4), targets.chunk(4)):
        total = total + criterion(model(x), y)
    (total / 4).backward()
    optimizer.step()
    ```

    ## Use instead
    ```python
    optimizer.zero_grad()
    total = 0.0
    for x, y in zip(inputs.chunk(4), targets.chunk(4)):
        loss = criterion(model(x), y) / 4  # divided by the number of steps
        loss.backward()  # gradients add up, the graph is freed
        total += loss.detach()
    optimizer.step()
    ```

    ## Fix safety
    A hint: where backward moves, and what the losses are divided by, is for the author to decide. With several
    processes, all iterations but the last belong under `no_sync()`.

    ## When it stays silent
    - The iterations share a part of their graph, or one's forward pass needs another's result (heads, time steps,
      recurrent states).
    - What is differentiated is no sum or mean of the losses: a variance over them, a contrastive loss over all
      outputs, losses that are weighted by what is known later.
    - Gradients of gradients are wanted, or the graph is retained.

    The finding is only possible, and not shown by default, where

    - it was not seen that each iteration works on a batch of its own: the next one of a loader, a piece of a larger
      batch, or what is moved to a device;
    - the loop stands in the code of a network, or code that was not seen makes one loss of several.

    ## References
    - [PyTorch: automatic mixed precision examples, gradient accumulation](https://pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation)
    """

    code = "TML108"
    name = "deferred-microbatch-backward"
    severity = Severity.WARNING
    fix = Applicability.HINT
    why = "until backward runs, the saved activations of every iteration are alive at once"

    def tell(self, told: Told) -> Finding:
        """Say what is kept until backward runs."""
        case = told.case
        assert case.kept is not None
        verb = "sums" if case.how is How.SUM else "collects"
        return told.finding(
            self,
            f"`{told.text_of(case.place)}` waits for several batches: all their graphs are in GPU memory at once",
            [
                *told.begun(),
                told.link(case.kept, f"{verb} the losses, with their graphs"),
                told.link(case.place, "backward runs through all of them"),
                *told.called(),
            ],
            fix=Fix(_ADVICE, Applicability.HINT),
        )


_ADVICE = (
    "Call `backward()` on each loss inside the loop, divided by the number of steps where a mean is wanted: gradients "
    "add up in `.grad`"
)

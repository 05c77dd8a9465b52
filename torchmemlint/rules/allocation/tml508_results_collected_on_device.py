"""TML508 results-collected-on-device."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.detaching import bring_to_host
from torchmemlint.rules.told import Told


class ResultsCollectedOnDevice(TellingRule):
    """The results of a whole pass over the data wait on the device and go to the host only after it.

    ## What it does
    Reports `preds.append(model(x))` in a loop over batches that computes on an accelerator, where all that happens to
    the list after the loop is that it is joined and brought to the host: `torch.cat(preds).cpu().numpy()`.

    ## Why it costs memory
    The list grows with the data set, in the memory that the model needs; joining it needs the same amount once more.
    A pass that fits with a few batches runs out of memory with all of them. An advice, since what is collected is often
    a number for each sample, which is little.

    ## Example
    ```python
    for x, _ in loader:
        logits.append(model(x.to(device)))
    logits = torch.cat(logits).cpu().numpy()
    ```

    ## Use instead
    ```python
    for x, _ in loader:
        logits.append(model(x.to(device)).cpu())
    logits = torch.cat(logits).numpy()
    ```

    ## Fix safety
    Unsafe: the values are the same, but each copy waits for its batch to be computed, which costs time where the loop
    waits for nothing else.

    ## When it stays silent
    It is not shown that the loop computes on a device (its batches are moved there, or its loader is prepared by a
    framework that does so); anything else is done with the list or with what it is joined to, such as a metric on the
    device or a `gather`; elements are brought to the host already; what is collected may be single numbers (`stack`);
    the values carry a graph, which is TML102; the list is an attribute, returned, or emptied on the way; tests.
    The rule is off by default: what published projects collect so is mostly a number for each sample
    (docs/precision.md). It is for passes that collect feature maps, logits of many classes or images.

    ## References
    - [transformers: `eval_accumulation_steps`, the same for its Trainer](https://huggingface.co/docs/transformers/main_classes/trainer)
    - [PyTorch FAQ: my model reports out of memory](https://pytorch.org/docs/stable/notes/faq.html)
    """

    code = "TML508"
    name = "results-collected-on-device"
    severity = Severity.ADVICE
    on = False
    fix = Applicability.UNSAFE
    why = "the list grows with the data set, in the memory that the model needs"

    def tell(self, told: Told) -> Finding:
        """Say what is filled on the device, and wanted on the host."""
        on_device, to_host = told.case.moves
        edits = bring_to_host(told.piece, told.span) if told.piece is not None else ()
        return told.finding(
            self,
            f"`{told.text_of(told.case.place)}` keeps every iteration's result on the device, to be moved only later",
            [
                told.link(on_device, "the batches of this loop come to the device here"),
                told.link(told.case.place, "keeps each result there"),
                told.link(to_host, "all of them go to the host here"),
                *told.called(),
            ],
            fix=Fix("Bring each result to the host", self.fix, edits) if edits else None,
        )

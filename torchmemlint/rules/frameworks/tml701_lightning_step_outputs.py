"""TML701 lightning-step-outputs."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import CaseRule


class LightningStepOutputs(CaseRule):
    """A Lightning `training_step` keeps its outputs with their graph until the epoch ends.

    ## What it does
    Reports a `training_step` of a LightningModule (or a method that it calls) that puts a graph-carrying value into a
    container of the module: what code does since Lightning 2 took `training_epoch_end` away. Where the class has a
    `training_epoch_end(self, outputs)` (Lightning 1), it also reports graph-carrying values that the step returns
    beside its loss: Lightning keeps the outputs of all steps for this hook.

    ## Why it costs memory
    Each step's value keeps its graph. What Lightning's backward has not run through holds every saved activation of
    its step, and training runs out of memory within the epoch (severity `error`). Graphs that it has run through, such
    as the returned loss's, hold their nodes on the host and each tensor in them on the device (severity `warning`).
    Lightning detaches the loss that it keeps itself; the extras beside it only up to version 1.5.

    ## Example
    ```python
    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        self.training_step_outputs.append(loss)
        return loss

    def on_train_epoch_end(self):
        self.log("train_loss_epoch", torch.stack(self.training_step_outputs).mean())
        self.training_step_outputs.clear()
    ```

    ## Use instead
    ```python
        self.training_step_outputs.append(loss.detach())
    ```

    or let Lightning do the averaging: `self.log("train_loss", loss, on_epoch=True)`.

    ## Fix safety
    Safe where the finding is certain and the value is a tensor on all paths: it is detached where it is kept, the
    returned loss is untouched. A dict that is kept as a whole gets no fix: it may be differentiated elsewhere.

    ## When it stays silent
    - The values are numbers or detached, or the elements are differentiated later.
    - A `training_step_end` makes something else of what the step returns.
    - Validation, test and prediction steps: Lightning runs them with gradients off.

    The finding is only possible, and not shown by default, where the container is emptied during the steps.

    ## References
    - [Lightning 2: migration from epoch-end hooks](https://github.com/Lightning-AI/pytorch-lightning/pull/16520)
    - [Lightning: out of memory with training_epoch_end](https://github.com/Lightning-AI/pytorch-lightning/issues/15514)
    """

    code = "TML701"
    name = "lightning-step-outputs"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "what a step keeps with its graph stays until the epoch ends, once for each step"

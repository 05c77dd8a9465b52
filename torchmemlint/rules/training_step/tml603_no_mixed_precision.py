"""TML603 no-mixed-precision."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import is_test
from torchmemlint.rules.told import Told
from torchmemlint.rules.training_step import precision


class NoMixedPrecision(TellingRule):
    """A model is trained on an accelerator in float32 alone.

    ## What it does
    Reports a training loop that brings its batches to an accelerator, in a project that nowhere speaks of autocast,
    gradient scaling or half precision. Off by default: for a small model there is nothing to gain.

    ## Why it costs memory
    Every saved activation of a convolution or matrix product takes four bytes for each number, where under autocast it
    takes two. Parameters, gradients and optimizer state stay as they are, and a copy of each weight in half precision
    comes on top: so it saves where activations dominate (large batches, images, long sequences), and may even cost a
    little where the weights do.

    ## Example
    ```python
    for x, y in loader:
        loss = criterion(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
    ```
    With `float16` a `torch.amp.GradScaler` is needed as well, or small gradients become zero.

    ## Fix safety
    Only a hint: results are rounded, and losses that take logarithms or large sums by hand may need float32.

    ## When it stays silent
    Nothing shows that the loop trains on an accelerator; the file chooses a precision (also float64) or leaves it to a
    framework (accelerate, Fabric, Lightning, DeepSpeed); another file of the project speaks of autocast, `GradScaler`,
    `bfloat16` or `fp16`, which the loop may come to; the project is too large to be searched; tests.

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    - [Performance tuning guide: use mixed precision](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code = "TML603"
    name = "no-mixed-precision"
    severity = Severity.ADVICE
    on = False
    fix = Applicability.HINT
    why = "activations take four bytes for each number where two would do"

    def tell(self, told: Told) -> Finding | None:
        """Say which backward pass runs in float32, unless somebody has thought of it."""
        if is_test(told.facts) or precision.spoken_of(told.facts):
            return None
        place, (moved, *_) = told.case.place, told.case.moves
        return told.finding(
            self,
            f"`{told.text_of(place)}`: forward and backward run in float32 alone on the accelerator",
            [
                told.link(moved, "brings the batches of this loop to the device"),
                told.link(place, "differentiates what was computed in float32: nothing asks for another precision"),
                *told.called(),
            ],
            fix=Fix('Compute the forward pass under `torch.autocast("cuda", dtype=torch.bfloat16)`', self.fix),
        )

"""TML310 implicit-reentrant-checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.names.suites import tests_live_here
from torchmemlint.knowledge import versions
from torchmemlint.rules.activations import recomputing
from torchmemlint.rules.activations.recomputing import Recomputation
from torchmemlint.rules.arguments import adding
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import is_test, report

# Releases whose function takes `use_reentrant`: docs.pytorch.org/docs/1.11/checkpoint.html, pytorch#86331.
_CHOICE_SINCE = {
    "torch.utils.checkpoint.checkpoint": (1, 11),
    "torch.utils.checkpoint.checkpoint_sequential": (2, 0),
}


class ImplicitReentrantCheckpoint(Rule):
    """A checkpoint does not say whether it is reentrant, and so is.

    ## What it does
    Reports calls of `torch.utils.checkpoint.checkpoint` and `checkpoint_sequential` without `use_reentrant`. Torch then
    takes the reentrant form, and since 2.1 (`checkpoint_sequential`: 2.2) warns that this will become an error.

    ## Why it costs memory
    A little: the reentrant form runs a backward within the backward for each block, and holds its gradients beside
    those of the outer one; the other form measured 3 to 6 per cent less at the peak. What counts more is that the
    reentrant form gives no gradients to the parameters of the block where none of its inputs needs one (the first
    block, above a frozen embedding), that it raises where there are keyword arguments for the block, and that
    `torch.autograd.grad` and most hooks do not work through it.

    ## Example
    ```python
    for block in self.blocks:
        x = checkpoint(block, x)
    ```

    ## Use instead
    ```python
    for block in self.blocks:
        x = checkpoint(block, x, use_reentrant=False)
    ```

    ## Fix safety
    Unsafe: gradients are the same where the reentrant form gives any, but parameters that were silently left out are
    trained from then on; hooks see the block's own operations; and a block that computes something else the second time
    raises where it passed unseen.

    ## When it stays silent
    `use_reentrant` is given, or may be (`**kwargs`, a fourth argument of `checkpoint_sequential`); the name is bound
    anew in the file (`checkpoint = partial(checkpoint, use_reentrant=False)`); the function comes from somewhere else
    (timm, DeepSpeed, fairscale); files of a test suite; the project supports a torch whose function does not take the
    keyword (`target-torch`, else the nearest `requirements.txt` or the like).

    ## References
    - [torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html)
    """

    code = "TML310"
    name = "implicit-reentrant-checkpoint"
    severity = Severity.ADVICE
    fix = Applicability.UNSAFE
    why = "the reentrant form holds more at its peak, and leaves parameters without gradients where no input needs one"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield checkpoints that leave the choice to torch's default."""
        if is_test(facts) or tests_live_here(facts.path):
            return
        target = versions.release_of(facts.target_torch)
        for call in recomputing.undecided(facts.program):
            if target < _CHOICE_SINCE[call.qualified]:
                continue
            yield report(
                self,
                facts,
                call.site,
                f"`{call.callee}` without `use_reentrant` takes the reentrant form, {_trouble(call)}",
                evidence=[(call.site, f"`{call.qualified}` is called without `use_reentrant`")],
                fix=Fix(
                    "Give `use_reentrant=False`", Applicability.UNSAFE, adding(facts, call.site, "use_reentrant=False")
                ),
            )


def _trouble(call: Recomputation) -> str:
    if not call.refused:
        return "of which torch warns"
    return f"which takes no {', '.join(f'`{name}`' for name in call.refused)}: this call raises"

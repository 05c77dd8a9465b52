"""TML204 no-grad-instead-of-inference-mode."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow import guarded_results
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.guarded_results import Closed
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import is_test, report
from torchmemlint.syntax.text import shortened, text_of

_SHOWN = 3  # forward passes named as evidence


class NoGradInsteadOfInferenceMode(Rule):
    """A forward pass runs under `torch.no_grad()` although no tensor leaves it.

    ## What it does
    Reports `with torch.no_grad():` and `@torch.no_grad()` around forward passes whose results all end as numbers,
    arrays or text, so that `torch.inference_mode()` would do. Off by default: what it gains is small.

    ## Why it costs memory
    It hardly does: a graph is recorded under neither. `inference_mode` also leaves out the version counter of each
    tensor and the notes on views, a few dozen bytes on the host and a little of the work for each operation. In the
    time of a step it did not show, though the model measured below has 64 small layers: not on the host, nor on a GPU.

    ## Example
    ```python
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
    ```

    ## Use instead
    ```python
    with torch.inference_mode():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
    ```

    ## Fix safety
    Unsafe: a tensor made in inference mode must not be used with autograd later, not even by way of what a module keeps
    to itself. A model that makes a table in its first forward pass (rotary embeddings, masks) and is trained after it
    was evaluated raises "Inference tensors cannot be saved for backward".

    ## When it stays silent
    A tensor is returned, yielded, stored, handed to code that is not understood (metrics among it) or used outside of
    the block; something is changed in place; a forward pass is run for what it leaves behind (hooks, statistics), and
    its result dropped; the block defines functions; gradients are off for another reason; tests.

    ## References
    - [torch.inference_mode](https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html)
    - [Autograd mechanics: inference mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#inference-mode)
    """

    code = "TML204"
    name = "no-grad-instead-of-inference-mode"
    severity = Severity.ADVICE
    on = False
    fix = Applicability.UNSAFE
    why = "each tensor gets a version counter and each view a note on what it is a view of, and nobody reads them"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield guards that could be stricter."""
        if is_test(facts):
            return
        for found in guarded_results.closed(facts):
            text = text_of(found.guard.node)
            yield report(
                self,
                facts,
                found.guard,
                f"no tensor leaves what runs under `{text}()`: `torch.inference_mode()` costs less",
                evidence=[
                    (call.site, f"`{shortened(call.callee, 40)}(...)` runs in it, and its results end in it")
                    for call in found.calls[:_SHOWN]
                ],
                fix=_fix(found),
            )


def _fix(found: Closed) -> Fix:
    node = found.guard.node
    if isinstance(node, cst.Attribute) and text_of(node.value) == "torch":
        edit = Edit(found.guard.piece.span(node.attr), "inference_mode")
        return Fix("Use `torch.inference_mode()`", Applicability.UNSAFE, (edit,))
    return Fix("Use `torch.inference_mode()`", Applicability.HINT)

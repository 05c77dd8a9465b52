"""TML204 no-grad-instead-of-inference-mode."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Severity, Span
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told

_SHOWN = 3
_WRITTEN = "torch.no_grad()"


class NoGradInsteadOfInferenceMode(TellingRule):
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
    - A tensor is returned to unknown callers, stored, or handed to code that is not understood (metrics among it).
    - It is used outside of the block in an operation that may record a graph, also by a caller.
    - A tensor from outside is changed in place.
    - A forward pass is run for what it leaves behind (hooks, statistics), and its result dropped.
    - The block defines functions or yields; tests.

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

    def tell(self, told: Told) -> Finding:
        """Say which guard could be stricter."""
        return told.finding(
            self,
            f"no tensor leaves what runs under `{told.text}`: `torch.inference_mode()` costs less",
            [told.link(one, "runs in it, and its results end in it") for one in told.case.runs[:_SHOWN]],
            fix=_fix(told),
        )


def _fix(told: Told) -> Fix:
    start = told.span.start
    if told.text != _WRITTEN:
        return Fix("Use `torch.inference_mode()`", Applicability.HINT)
    dot, end = _WRITTEN.index("."), len(_WRITTEN) - len("()")
    name = Span(Position(start.row, start.column + dot + 1), Position(start.row, start.column + end))
    return Fix("Use `torch.inference_mode()`", Applicability.UNSAFE, (Edit(name, "inference_mode"),))

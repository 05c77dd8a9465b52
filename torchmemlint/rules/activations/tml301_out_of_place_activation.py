"""TML301 out-of-place-activation."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Severity, Span
from torchmemlint.flow.fact.outcomes import Activating
from torchmemlint.knowledge import activations, saved_tensors
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class OutOfPlaceActivation(TellingRule):
    """An activation makes a new tensor where it could overwrite its input.

    ## What it does
    Reports activations and feature dropouts without `inplace=True` whose input is the fresh, otherwise unused output
    of an operation that does not need it for backward (convolution, linear, norms, addition): neighbours in
    `nn.Sequential`, and calls in `forward`. A module that is applied in several places is reported only where it is
    safe in all of them. A layer that a parameter names the class of (`norm_layer=nn.BatchNorm2d`) counts as the
    default.

    ## Why it costs memory
    Measured, in training, after a convolution and after convolution and batch norm: `LeakyReLU`, `ELU`, `SELU`, `CELU`
    and `RReLU` keep their input for backward, next to the output that the following layer keeps. In place they keep
    one full activation less per layer (six LeakyReLU layers: 20.0 to 14.0 MiB). `ReLU` and the feature dropouts save
    nothing for backward: in place they only do without a second tensor while the layer itself runs, which counts where
    the peak lies just there (often in inference, hardly ever in training). Other activations have in-place forms that
    save nothing in training and are not reported.

    ## Example
    ```python
    nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.LeakyReLU(0.1), nn.Conv2d(64, 64, 3))
    ```

    ## Use instead
    ```python
    nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.LeakyReLU(0.1, inplace=True), nn.Conv2d(64, 64, 3))
    ```

    ## Fix safety
    Unsafe: results and gradients stay the same, but what is not in view may still look at the overwritten tensor: a
    hook that someone registers, a subclass, a caller that takes the Sequential apart or gives another class of norm
    that needs its output. `LeakyReLU` with a negative slope
    cannot work in place.

    ## When it stays silent
    - `inplace` is given, also as `False`.
    - The input comes from outside (the first layer, an argument of `forward`, what a module of the project returns),
      or something else reads or keeps it.
    - The input belongs to an operation that needs it (sigmoid, softmax, tanh, exp, another ReLU: there it would be
      TML302).
    - What follows keeps nothing of the output (an addition, an interpolation), so that nothing is gained.
    - The module is handed to code that was not seen, or the file registers forward hooks.
    - The activation is called in a function for TorchScript, which merges it with its neighbours itself.
    - Files of a test suite.

    ## References
    - [torch.nn.LeakyReLU](https://docs.pytorch.org/docs/stable/generated/torch.nn.LeakyReLU.html)
    - [Autograd mechanics: in-place operations](https://docs.pytorch.org/docs/stable/notes/autograd.html)
    """

    code = "TML301"
    name = "out-of-place-activation"
    severity = Severity.ADVICE
    fix = Applicability.UNSAFE
    why = "the activation's input stays in memory beside its output"

    def tell(self, told: Told) -> Finding:
        """Say what the activation allocates or keeps beyond what it needs."""
        kind = told.about(Activating).kind
        if kind in activations.SAVES_ONE:
            message = f"`{kind}` keeps its input beside its output; `inplace=True` stores one activation less per call"
        else:
            message = f"`{kind}` allocates a second tensor as it runs; `inplace=True` does not (no change in training)"
        edits = _edits(told)
        fix = Fix("Pass `inplace=True`", Applicability.UNSAFE, edits) if edits else None
        return told.finding(self, message, _evidence(told), fix=fix)


def _evidence(told: Told) -> Iterator[Evidence]:
    case = told.case
    links: list[Evidence] = []
    for producer, made, applied in told.about(Activating).uses:
        if made is not None:
            name = saved_tensors.short(producer)
            links.append(told.link(made, f"`{name}` makes its input, and does not need it for backward"))
        if applied is not None and applied != case.place:
            links.append(told.link(applied, "applied here; nothing else reads the input"))
    yield from dict.fromkeys(links)
    yield told.link(case.place, f"`{told.about(Activating).kind}` works out of place")


def _edits(told: Told) -> tuple[Edit, ...]:
    call = told.call
    if call is None:
        return ()
    if call.callee.rpartition(".")[0] == "torch":  # torch.relu takes no `inplace`; torch.relu_ does it
        end = call.piece.span(call.node.func).end
        return (Edit(Span(end, end), "_"),)
    return call.adding("inplace=True")

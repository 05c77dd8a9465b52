"""TML303 ineffective-inplace."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir.ops import Constant
from torchmemlint.flow.names.suites import tests_live_here
from torchmemlint.knowledge import activations
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation


class IneffectiveInplace(Rule):
    """An activation works in place, which saves nothing in training.

    ## What it does
    Reports `inplace=True` for activations and dropouts whose in-place form was measured to keep exactly as much for
    backward as the other one: `SiLU`, `Mish`, `Hardswish`, `Hardsigmoid`, `Hardtanh`, `ReLU6`, `Threshold`, `Dropout`;
    and for those that take the argument and do not use it (`AlphaDropout`, `FeatureAlphaDropout`).

    ## Why it costs memory
    It costs none; it also saves none. Backward needs the input of these, so that autograd copies it before it is
    overwritten, and the second tensor is there after all. Only without gradients (`no_grad`, inference) does the
    in-place form do without one tensor while the layer runs. What it does bring in training is the hazard: whoever
    reads the input later reads something else. `LeakyReLU`, `ELU` and their kin are different: in place they keep one
    activation less per layer (TML301).

    ## Example
    ```python
    self.act = nn.SiLU(inplace=True)
    ```

    ## Use instead
    ```python
    self.act = nn.SiLU()
    ```

    ## Fix safety
    A hint: results and gradients are the same either way, and inference loses a copy that in place it did without.

    ## When it stays silent
    `inplace` is not a literal `True`; the in-place form saves something in training (`ReLU` and the feature dropouts:
    one tensor while the layer runs; `LeakyReLU`, `ELU`, `SELU`, `CELU`, `RReLU`: one for backward); files of a test
    suite.
    Off by default: much code sets it for inference, where it helps a little.

    ## References
    - [Autograd mechanics: in-place operations](https://docs.pytorch.org/docs/stable/notes/autograd.html)
    - [torch.nn.SiLU](https://docs.pytorch.org/docs/stable/generated/torch.nn.SiLU.html)
    """

    code = "TML303"
    name = "ineffective-inplace"
    severity = Severity.ADVICE
    on = False
    fix = Applicability.HINT
    why = "autograd copies the input before it is overwritten, so that nothing is saved in training"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield in-place forms that save nothing for backward."""
        if tests_live_here(facts.program.within):
            return
        for formula, op, name in facts.calls("inplace"):
            kind = _kind(name)
            given = next((formula.made(one.temp) for one in op.arguments if one.name == "inplace"), None)
            if kind is None or not isinstance(given, Constant) or given.value is not True:
                continue
            if kind in activations.IGNORES_INPLACE:
                message = f"`{kind}` takes `inplace` and does not use it: nothing is saved"
                says = f"torch's `{kind}` makes a new tensor either way"
            else:
                message = (
                    f"`{kind}` in place saves nothing in training: backward needs its input, which is copied "
                    "first (without gradients it needs one tensor less while it runs)"
                )
                says = f"measured: with and without `inplace=True`, `{kind}` keeps as much for backward"
            edit = Edit(facts.source.span_of(given.span), "False")
            fix = Fix("Do not work in place", Applicability.HINT, (edit,))
            yield report_operation(self, facts, op, message, evidence=[(given, says)], fix=fix)


def _kind(qualified: str) -> str | None:
    """The short name of the class of an activation that saves nothing in place, or of that which a function is of."""
    function = activations.functional(qualified)
    name = (function or qualified).rpartition(".")[2]
    known = name in activations.SAVES_NOTHING | activations.IGNORES_INPLACE
    return name if known and (function is not None or qualified.startswith("torch.nn")) else None

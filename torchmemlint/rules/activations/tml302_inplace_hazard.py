"""TML302 inplace-hazard."""

from __future__ import annotations

from torchmemlint.doubts import Confidence
from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.outcomes import Overwriting
from torchmemlint.flow.fact.overwriting import Need
from torchmemlint.rules.activations.out_of_place import not_in_place, out_of_place
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class InplaceHazard(TellingRule):
    """A tensor is overwritten in place although it is still needed.

    ## What it does
    Reports in-place activations (`inplace=True`, `relu_`), in-place operators (`x += y`, `x.mul_(y)`) and assigned
    elements whose target

    - a later line reads under its old name, which then sees the new values;
    - is needed for backward by the operation that made it (sigmoid, softmax, tanh, exp, ReLU, ...) or by one that it
      was given to (convolution, linear, norms, ...);
    - is a parameter that requires gradients, or an expanded view, which torch refuses to overwrite.

    What torch refuses is an error, and so is what backward will refuse in the forward of a module and where the
    function runs a backward itself. Elsewhere it is a warning that is only possible, and not shown by default: who
    calls the function may run it with gradients off. A value that is read after it was overwritten is a warning:
    nothing fails.

    ## Why it costs memory
    The result is silently wrong in the first case, and backward (or the operation itself) raises in the others. Either
    way it is how people come to turn in-place operations off everywhere, also where they save an activation per layer.

    ## Example
    ```python
    self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.conv(self.relu(x))
        return out + x  # x has been overwritten: this adds relu(x)
    ```

    ## Use instead
    ```python
    self.relu = nn.ReLU(inplace=False)
    ```

    ## Fix safety
    Safe where the program raises today once gradients are wanted: `inplace=True` becomes `inplace=False`, `x += y`
    becomes `x = x + y`, `x.mul_(y)` as a statement `x = x.mul(y)`. Unsafe where it silently computes something else:
    results change, and weights that were trained with the old ones may not like the new. No fix is offered for
    parameters, views and assigned elements.

    ## When it stays silent
    - Nothing is known to need the old value, or only its shape, device or type is looked at afterwards.
    - The result is bound to the same name, or to one that is not read, or the call is a statement by itself: it works
      in place on purpose.
    - Gradients are off, the tensor was cloned, or the ways exclude each other.
    - The module is not training (`else` of `if self.training`) and only its backward would need the value.
    - `state.copy_(state * decay)` outside of a forward and of training.
    - Tests.

    `out += identity; out = relu(out)` of a residual block is fine: neither batch norm nor addition needs what it made.
    The rule is off by default: code that has been trained with hardly ever has such a hazard, and of what was found in
    published projects little was true (docs/precision.md). It is for code that is being written, as in an editor.

    ## References
    - [Autograd mechanics: in-place operations](https://docs.pytorch.org/docs/stable/notes/autograd.html)
    - [pytorch#5687](https://github.com/pytorch/pytorch/issues/5687)
    - [vision#807](https://github.com/pytorch/vision/issues/807)
    """

    code = "TML302"
    name = "inplace-hazard"
    severity = Severity.ERROR
    on = False
    fix = Applicability.SAFE
    why = "a value that is still needed is overwritten: wrong results or errors, which get in-place turned off for good"

    def tell(self, told: Told) -> Finding:
        """Say what is overwritten, and what needs it."""
        case, how = told.case, told.about(Overwriting)
        operation = how.sign or (f"{told.call.callee}()" if told.call is not None else "")
        target = told.text_of(how.target) if how.target is not None else "the result"
        match how.need:
            case Need.READ:
                message = f"overwrites `{target}`, which is read afterwards"
                reason = "the overwritten value is read here"
            case Need.OUTPUT:
                message = f"overwrites the output of `{how.what}`, which its backward needs"
                reason = f"`{how.what}` keeps its output for backward"
            case Need.INPUT:
                message = f"overwrites `{target}`, which `{how.what}` keeps for backward"
                reason = f"`{how.what}` keeps `{target}` for backward"
            case Need.LEAF:
                message = "overwrites a parameter that requires gradients: torch raises"
                reason = "the parameter is made here"
            case Need.EXPANDED:
                message = "overwrites an expanded view, whose elements share memory: torch raises"
                reason = "the view is made here"
        links = [told.link(how.built, "the activation is built with `inplace=True`")] if how.built is not None else []
        links.append(told.link(case.place, f"`{target}` is overwritten in place here"))
        if how.other is not None:
            links.insert(len(links) if how.need is Need.READ else 0, told.link(how.other, reason))
        severity = Severity.ERROR if how.refused else Severity.WARNING
        return told.finding(self, f"`{operation}` {message}", links, severity=severity, fix=_fix(told, how))


def _fix(told: Told, how: Overwriting) -> Fix | None:
    if how.need in (Need.LEAF, Need.EXPANDED):
        return None
    safe = how.need is not Need.READ and told.confidence is Confidence.CERTAIN
    edits = not_in_place(told.call_at(how.built)) if how.built is not None else out_of_place(told)
    return Fix("Do not work in place", Applicability.SAFE if safe else Applicability.UNSAFE, edits) if edits else None

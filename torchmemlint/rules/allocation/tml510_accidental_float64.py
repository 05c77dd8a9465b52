"""TML510 accidental-float64."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow.fact.outcomes import Precision
from torchmemlint.rules.arguments import WrittenCall
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import call_method, offered
from torchmemlint.rules.told import Told
from torchmemlint.syntax import cst
from torchmemlint.syntax.source_module import Site


class AccidentalFloat64(TellingRule):
    """numpy's default precision goes to the device: twice the bytes, and everything computed from it.

    ## What it does
    Reports a tensor that is made by `torch.from_numpy`, `torch.tensor` or `torch.as_tensor` from an array of numpy's
    default type, float64 (`np.zeros`, `np.random.rand`, `np.linspace` and their like without a dtype), and moved to a
    device as it is. An advice where it is cast to less right after the move.

    ## Why it costs memory
    Every number takes eight bytes instead of four on the way to the device and on it. What is computed from such a
    tensor and one of float32 is float64 as well, so that one mask or noise doubles the activations behind it, and most
    GPUs compute with it at a fraction of their speed.

    ## Example
    ```python
    noise = torch.from_numpy(np.random.randn(batch, length)).to(device)
    signal = signal + noise
    ```

    ## Use instead
    ```python
    noise = torch.from_numpy(np.random.randn(batch, length)).float().to(device)
    signal = signal + noise
    ```

    ## Fix safety
    Unsafe: numbers are rounded to float32, and so is all that is computed from them. Where double precision is wanted,
    say so (`dtype=torch.float64`), and the rule is silent.

    ## When it stays silent
    The file speaks of double precision anywhere (`float64`, `.double()`, `set_default_dtype`): it knows what it does;
    the array's type is not known (it is read, handed in or computed from other arrays) or given; a single number, which
    promotes nothing; less than 1024 numbers, or a single row (`np.random.randn(1, n)`); the tensor is cast before the
    move, or by it; where it goes is not known to be a device; tests. `.double()` is never reported: somebody
    asked for it.
    The rule is off by default: it seldom speaks, and half of what it found in published projects was too small to
    matter (docs/precision.md).

    ## References
    - [Tensor attributes: type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    - [torch.from_numpy](https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html)
    """

    code = "TML510"
    name = "accidental-float64"
    severity = Severity.WARNING
    on = False
    fix = Applicability.UNSAFE
    why = "float64 takes twice the bytes of float32, and makes float64 of what is computed with it"

    def tell(self, told: Told) -> Finding:
        """Say that float64 goes to a device."""
        place, precision = told.case.place, told.about(Precision)
        links = [told.link(precision.array, f"`{precision.maker}` makes float64 unless it is told otherwise")]
        if precision.taken is not None and precision.taken != place:
            links.append(told.link(precision.taken, "the tensor takes over the array's type"))
        cast = ", and is cast there" if precision.cast else ""
        return told.finding(
            self,
            f"`{told.text_of(place)}` brings float64 to the device, numpy's default",
            [*links, told.link(place, f"it goes to the device here{cast}")],
            severity=Severity.ADVICE if precision.cast else None,
            fix=_fix(told, precision),
        )


def _fix(told: Told, precision: Precision) -> Fix:
    taken = told.call_at(precision.taken)
    edits = _making(taken) if taken is not None else _casting(told.call) if told.call is not None else ()
    return offered("Make it float32 first", Applicability.UNSAFE, edits)


def _making(taken: WrittenCall) -> tuple[Edit, ...]:
    owner, _, name = taken.callee.rpartition(".")
    if owner and name != "from_numpy":
        return taken.adding(f"dtype={owner}.float32")
    return call_method(Site(taken.piece, taken.node), "float")


def _casting(moved: WrittenCall) -> tuple[Edit, ...]:
    """`x.to(device)` becomes `x.float().to(device)`."""
    function = moved.node.func
    return call_method(Site(moved.piece, function.value), "float") if isinstance(function, cst.Attribute) else ()

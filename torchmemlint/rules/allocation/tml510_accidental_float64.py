"""TML510 accidental-float64."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow.fact.details import Precision
from torchmemlint.rules.arguments import WrittenCall
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import call_method, offered
from torchmemlint.rules.told import Told
from torchmemlint.syntax import cst
from torchmemlint.syntax.source_module import Site


class AccidentalFloat64(TellingRule):
    """numpy's default precision goes to the device: twice the bytes, and everything computed from it."""

    def tell(self, told: Told) -> Finding:
        """Say that float64 goes to a device."""
        place, precision = told.case.place, told.about(Precision)
        links = [told.link(precision.array, f"`{precision.maker}` makes float64 unless a `dtype` is given")]
        if precision.taken is not None and precision.taken != place:
            links.append(told.link(precision.taken, "the tensor takes the array's dtype"))
        cast = ", and is cast there" if precision.cast else ""
        return told.finding(
            self,
            f"`{told.text_of(place)}` copies float64, NumPy's default, to the GPU",
            [*links, told.link(place, f"the array is copied to the GPU here{cast}")],
            severity=Severity.ADVICE if precision.cast else None,
            fix=_fix(told, precision),
        )


def _fix(told: Told, precision: Precision) -> Fix:
    taken = told.call_at(precision.taken)
    edits = _making(taken) if taken is not None else _casting(told.call) if told.call is not None else ()
    return offered("Convert to float32 first", Applicability.UNSAFE, edits)


def _making(taken: WrittenCall) -> tuple[Edit, ...]:
    owner, _, name = taken.callee.rpartition(".")
    if owner and name != "from_numpy":
        return taken.adding(f"dtype={owner}.float32")
    return call_method(Site(taken.piece, taken.node), "float")


def _casting(moved: WrittenCall) -> tuple[Edit, ...]:
    """`x.to(device)` becomes `x.float().to(device)`."""
    function = moved.node.func
    return call_method(Site(moved.piece, function.value), "float") if isinstance(function, cst.Attribute) else ()

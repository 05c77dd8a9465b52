"""TML302 inplace-hazard."""

from __future__ import annotations

from torchmemlint.doubts import is_sure
from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.details import Overwriting
from torchmemlint.flow.fact.overwriting import Need
from torchmemlint.rules.activations.out_of_place import not_in_place, out_of_place
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class InplaceHazard(TellingRule):
    """A tensor is overwritten in place although it is still needed."""

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
                message = f"overwrites the output of `{how.what}`, which `{how.what}` keeps for backward"
                reason = f"`{how.what}` keeps its output for backward"
            case Need.INPUT:
                message = f"overwrites `{target}`, which `{how.what}` keeps for backward"
                reason = f"`{how.what}` keeps `{target}` for backward"
            case Need.LEAF:
                message = "overwrites a parameter that requires gradients: torch raises"
                reason = "the parameter is created here"
            case Need.EXPANDED:
                message = "overwrites an expanded view, whose elements share memory: torch raises"
                reason = "the view is created here"
        links = [told.link(how.built, "the activation is built with `inplace=True`")] if how.built is not None else []
        links.append(told.link(case.place, f"`{target}` is overwritten in place here"))
        if how.other is not None:
            links.insert(len(links) if how.need is Need.READ else 0, told.link(how.other, reason))
        severity = Severity.ERROR if how.refused else Severity.WARNING
        return told.finding(self, f"`{operation}` {message}", links, severity=severity, fix=_fix(told, how))


def _fix(told: Told, how: Overwriting) -> Fix | None:
    if how.need in (Need.LEAF, Need.EXPANDED):
        return None
    safe = how.need is not Need.READ and is_sure(told.doubts)
    edits = not_in_place(told.call_at(how.built)) if how.built is not None else out_of_place(told)
    title = "Pass `inplace=False`" if how.built is not None else "Use the out-of-place form"
    return Fix(title, Applicability.SAFE if safe else Applicability.UNSAFE, edits) if edits else None

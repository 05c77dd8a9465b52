"""Conditions: tests that are met each time, on a machine with an accelerator, in a program that is run."""

from __future__ import annotations

from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import If
from torchmemlint.flow.ir.defuse import DefUse, definitions
from torchmemlint.flow.ir.places import Temp
from torchmemlint.knowledge import services as known

_ABOUT_DATA = frozenset({"hasattr", "isinstance", "len"})


def is_met(fork: Effect, branch: bool) -> bool:
    """Is a condition met each time, on a machine with an accelerator, in a program that is run?"""
    site = fork.point.site
    return branch and type(site) is If and _holds(definitions(site.owner), site.test)


def _holds(flow: DefUse, test: Temp) -> bool:
    """`torch.cuda.is_available()`, `device.type == "cuda"`, `"cuda" in str(device)`, `__name__ == "__main__"`."""
    match flow.made.get(test):
        case ops.CallMethod(name="is_available"):
            return True
        case ops.Call(callee=callee):
            return flow.name(callee).endswith(".is_available")
        case ops.Compare(operator="==" | "in", operands=operands):
            found = [made.value for t in operands if isinstance(made := flow.made.get(t), ops.Constant)]
            texts = [text for text in found if isinstance(text, str)]
            return "__main__" in texts or any(text.startswith(known.ACCELERATORS) for text in texts)
        case ops.Choose(operator="and", operands=operands):
            return all(_holds(flow, operand) for operand in operands)
    return False


def is_about_data(fork: Effect) -> bool:
    """Does a condition ask what it was given, by its type, what it has or how long it is?"""
    site = fork.point.site
    if type(site) is not If:
        return False
    flow = definitions(site.owner)
    made = flow.made.get(site.test)
    return type(made) is ops.Call and flow.path(made.callee) in _ABOUT_DATA

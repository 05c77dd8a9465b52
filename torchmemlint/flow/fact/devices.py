"""Devices: where a call is told to put a tensor, as far as the operations of a function show it."""

from __future__ import annotations

from torchmemlint.flow.ir.defuse import DefUse
from torchmemlint.flow.ir.ops import Call, CallMethod, Constant, Load
from torchmemlint.flow.ir.places import Temp
from torchmemlint.knowledge.services import ACCELERATORS

_DEPTH = 3


def is_device(flow: DefUse, temp: Temp, depth: int = 0) -> bool:
    """Is it an accelerator, or a device of which it is not known which one it is?"""
    made = flow.made.get(temp)
    match made:
        case Constant(value=str()):
            return is_accelerator(flow, temp)
        case Call() | CallMethod() if flow.called(made) == "torch.device" and made.arguments:
            given = made.arguments[0].temp
            return not isinstance(flow.made.get(given), Constant) or is_accelerator(flow, given)
        case Load(name=name) if name.text in flow.bound and depth < _DEPTH:
            constants = [flow.made.get(source) for source in flow.bound[name.text]]
            if all(isinstance(one, Constant | Call | CallMethod) for one in constants):
                return any(is_device(flow, source, depth + 1) for source in flow.bound[name.text]) or (
                    name.text.endswith("device") and not any(isinstance(one, Constant) for one in constants)
                )
    return flow.path(temp).endswith("device")


def is_accelerator(flow: DefUse, temp: Temp) -> bool:
    """Is it known to be one?"""
    made = flow.made.get(temp)
    match made:
        case Constant(value=str(text)):
            return text.startswith(ACCELERATORS)
        case Constant(value=int(number)):
            return not isinstance(number, bool)
        case Call() | CallMethod() if flow.called(made) == "torch.device" and made.arguments:
            return is_accelerator(flow, made.arguments[0].temp)
    return False

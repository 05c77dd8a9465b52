"""Tensors that are created on the host only to be moved: `torch.zeros(n).to(device)`."""

from __future__ import annotations

import math

import libcst as cst

from torchmemlint.flow.arguments import Argument, Arguments
from torchmemlint.flow.facts import HostCreation
from torchmemlint.flow.gradient_modes import called_per_batch
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.sizes import Sizes
from torchmemlint.flow.values import Constant, Container, Device, Known, Tensor, Unknown, Value
from torchmemlint.knowledge import operations
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.text import text_of

_DEFAULT_DEVICE = ("set_default_device", "set_default_tensor_type", "with torch.device(")
_WITH_OTHER_MEANING = frozenset({"device", "out", "pin_memory", "**", "*", "names", "layout"})


def moved(it: Interpreter, node: cst.Call, owner: Tensor, name: str, arguments: Arguments, device: Device) -> None:
    """A transfer of what the receiver of the call has just created."""
    receiver = node.func.value if isinstance(node.func, cst.Attribute) else None
    if not it.recording or owner.made is None or owner.made.node is not receiver or not isinstance(receiver, cst.Call):
        return
    known = operations.function(f"torch.{owner.producer}")
    place = _place(name, arguments, device)
    if known is None or not known.factory or place is None:
        return
    if any(word in it.program.source.text for word in _DEFAULT_DEVICE):
        return
    created = it.creations.get(owner.made)
    if created is None or any(item.name in _WITH_OTHER_MEANING for item in created.items):
        return
    function = it.frame.function
    sizes = Sizes(it.program, function)
    it.facts.tests[it.site(node)] = it.frame.tests
    it.facts.host_creations.append(
        HostCreation(
            it.site(node),
            it.scope,
            owner.made,
            owner.producer,
            text_of(receiver.func),
            place,
            _numbers(owner.producer, created, sizes),
            sizes.axes_of_data(size.node for size in _shape(owner.producer, created)),
            _is_one_per_item(owner.producer, created, sizes),
            any(isinstance(item.node, cst.Float) for item in created.items),
            function is not None and called_per_batch(function),
            name != "cuda" or not _given(arguments) or _names_one(_given(arguments)[0]),
        )
    )


def _place(name: str, arguments: Arguments, device: Device) -> str | None:
    """Source text of the device that the tensor goes to; None where the call may do something else."""
    given = _given(arguments)
    if name == "cuda" and not given:
        return '"cuda"'
    if len(given) != 1 or given[0].name not in ("0", "device") or name not in ("cuda", "to"):
        return None
    if device is Device.HOST or not (device is Device.ACCELERATOR or name == "cuda" or _is_device(given[0])):
        return None
    return text_of(given[0].node)


def _given(arguments: Arguments) -> list[Argument]:
    return [item for item in arguments.items if item.name not in ("non_blocking", "async")]


def _names_one(given: Argument) -> bool:
    """Is it known to be an accelerator, and not None, which `cuda()` takes for the current one?"""
    from torchmemlint.flow.tensors import device_of_value

    return device_of_value(given.value) is Device.ACCELERATOR


def _is_device(given: Argument) -> bool:
    """Is it a device, though not known which: a `torch.device`, or an attribute or parameter that is called so?"""
    if isinstance(given.value, Known):
        return given.value.role in ("device", "default")
    return isinstance(given.value, Unknown) and dotted_text(given.node).rpartition(".")[2].endswith("device")


def _numbers(factory: str, created: Arguments, sizes: Sizes) -> int | None:
    """How many numbers the tensor holds; None where that is not known."""
    if factory in ("arange", "range"):
        ends = [_integer(item.value) for item in created.items if item.name.isdigit()]
        return max((abs(end) for end in ends if end is not None), default=None) if None not in ends else None
    if factory == "eye":
        rows, columns = _integer(created.get("0", "n")), created.get("1", "m")
        second = rows if columns is None else _integer(columns)
        return rows * second if rows is not None and second is not None else None
    found: list[int] = []
    for size in _shape(factory, created):
        if isinstance(size.value, Container):
            numbers = [_integer(item) for item in size.value.items] if size.value.items is not None else [None]
        else:
            known = _integer(size.value)
            numbers = [known if known is not None else sizes.at_most(size.node)]
        found += [number for number in numbers if number is not None]
        if None in numbers:
            return None
    return math.prod(found)


def _shape(factory: str, created: Arguments) -> list[Argument]:
    """The arguments that say how large the tensor is: its axes, or all of them in one."""
    given = created.find("size")
    if given is not None:
        return [given]
    positional = [item for item in created.items if item.name.isdigit()]
    match factory:
        case "randint":
            return positional[-1:]
        case "full":
            return positional[:1]
    return positional


def _is_one_per_item(factory: str, created: Arguments, sizes: Sizes) -> bool:
    """Has it a single axis, as long as a batch?"""
    shape = _shape(factory, created)
    if len(shape) != 1:
        return False
    match shape[0].node:
        case cst.Tuple(elements=[cst.Element(value=only)]) | cst.List(elements=[cst.Element(value=only)]):
            return sizes.is_one_per_item(only)
        case cst.Tuple() | cst.List():
            return False
        case only:
            return factory != "eye" and sizes.is_one_per_item(only)


def _integer(value: Value | None) -> int | None:
    if isinstance(value, Known) and value.role == "default":  # what an argument of the command line is left at
        value = value.element
    return value.value if isinstance(value, Constant) and value.known and isinstance(value.value, int) else None

"""float64 that nobody asked for: numpy's default, kept by `torch.from_numpy`, on its way to a device.

An array is a value by its maker (`numpy.zeros`), a tensor made from one is known by the place that makes it
(`Interpreter.doubles`), and so is what views and copies of it are made from.
"""

from __future__ import annotations

import math

import libcst as cst

from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.facts import DoubleOnDevice
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import Program
from torchmemlint.flow.sizes import Sizes
from torchmemlint.flow.units import Unit
from torchmemlint.flow.values import Constant, Device, Known, Tensor, Unknown, Value
from torchmemlint.knowledge import arrays
from torchmemlint.knowledge.arrays import Maker
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.walking import contains

_KEEPING = frozenset(
    "view reshape flatten squeeze unsqueeze transpose permute t expand expand_as clone contiguous repeat roll flip "
    "pin_memory requires_grad_ view_as unflatten narrow detach".split()
)
_NAMES = frozenset(name.rpartition(".")[2] for name in arrays.MAKERS)
_MOVING = frozenset({"to", "cuda"})


# -- arrays ----------------------------------------------------------------------------------------------------------


def drawn(owner: Known, name: str, site: Site) -> Known | None:
    """`rng.normal(size=n)` of one of numpy's generators."""
    if owner.qualified in arrays.GENERATORS and name in arrays.OF_GENERATORS:
        return Known("context", 0, f"numpy.random.{name}", site)
    return None


def array_method(owner: Known, name: str) -> Known | None:
    """What a method of an array of float64 gives, where that is one too."""
    return owner if name in arrays.KEEPING and is_array(owner) else None


def is_array(value: Value | None) -> bool:
    """Is it an array of float64, because its maker was told nothing else?"""
    maker = _maker(value)
    if maker is None:
        return False
    given = _given(value)
    if given is None or "dtype" in given or str(maker.dtype_at) in given:
        return False
    sizes = [name for name in given if name.isdigit()] if maker.dims else [maker.size, str(maker.at)]
    return not maker.optional or any(name in given for name in sizes)


def _maker(value: Value | None) -> Maker | None:
    if not isinstance(value, Known) or value.role != "context" or value.made is None:
        return None
    return arrays.MAKERS.get(value.qualified)


def _given(value: Value | None) -> dict[str, cst.BaseExpression] | None:
    """The arguments of the call that made an array; None where they are not known."""
    call = value.made.node if isinstance(value, Known) and value.made is not None else None
    if not isinstance(call, cst.Call) or any(argument.star == "**" for argument in call.args):
        return None
    return {
        argument.keyword.value if argument.keyword is not None else str(index): argument.value
        for index, argument in enumerate(call.args)
    }


def _numbers(value: Value | None, sizes: Sizes | None) -> int | None:
    """How many numbers an array holds; None where that is not known."""
    maker, given = _maker(value), _given(value)
    if maker is None or given is None:
        return None
    if maker.dims:
        given_sizes = [node for name, node in given.items() if name.isdigit()]  # one may be `*shape`, and is no number
    else:
        found = given.get(maker.size, given.get(str(maker.at)))
        given_sizes = [found] if found is not None else []
    counts = [_count(node, sizes) for node in given_sizes]
    return None if None in counts or not counts else math.prod(count for count in counts if count is not None)


def _is_row(value: Value | None) -> bool:
    """Is it a single row, `(1, n)`? What one sample starts from takes little, whatever its width."""
    maker, given = _maker(value), _given(value)
    if maker is None or given is None:
        return False
    sizes = [node for name, node in given.items() if name.isdigit()]
    if not maker.dims:
        found = given.get(maker.size, given.get(str(maker.at)))
        sizes = [element.value for element in found.elements] if isinstance(found, cst.Tuple | cst.List) else []
    return len(sizes) == 2 and _count(sizes[0]) == 1


def _count(node: cst.BaseExpression, sizes: Sizes | None = None) -> int | None:
    match node:
        case cst.Integer():
            return node.evaluated_value
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            parts = [_count(element.value, sizes) for element in elements]
            return None if None in parts else math.prod(part for part in parts if part is not None)
    return sizes.at_most(node) if sizes is not None else None


def _sizes(it: Interpreter, array: Known) -> Sizes | None:
    """What the function tells of its names, where it is the one that makes the array."""
    function = it.frame.function
    if array.made is None:
        return None
    here = contains(function.node, array.made.node) if function is not None else array.made.piece.kind == "code"
    return Sizes(it.program, function) if here else None


# -- tensors ---------------------------------------------------------------------------------------------------------


def taken(it: Interpreter, node: cst.Call, name: str, arguments: Arguments, where: Device) -> None:
    """`torch.from_numpy(array)`, `torch.tensor(array)` without a dtype."""
    first = arguments.find("0", "data", "ndarray", "obj")
    if first is None or not is_array(first.value) or arguments.find("dtype", "**") is not None:
        return
    array = first.value
    made = it.site(node)
    it.doubles[made] = array if isinstance(array, Known) else None
    if arguments.find("device") is not None and _is_device(arguments, where, "device"):
        _note(it, made, made)


def derived(it: Interpreter, made: Site, name: str, owner: Value) -> None:
    """A view or copy of a tensor of float64 is one."""
    if name in _KEEPING and isinstance(owner, Tensor) and owner.made in it.doubles:
        it.doubles[made] = it.doubles[owner.made]
    elif name in ("float", "half", "bfloat16") and isinstance(owner, Tensor) and owner.made in it.facts.doubles:
        it.facts.cast.add(owner.made)  # only after it was moved


def combined(it: Interpreter, made: Site, left: Value, right: Value) -> None:
    """An operator's result is of float64 where one of its operands is a tensor of float64, unless that is a number."""
    for operand in (left, right):
        if isinstance(operand, Tensor) and operand.made in it.doubles:
            it.doubles[made] = it.doubles[operand.made]


def moved(it: Interpreter, node: cst.Call, owner: Tensor, name: str, arguments: Arguments, device: Device) -> None:
    """A transfer of a tensor."""
    if owner.made is None or owner.made not in it.doubles or name not in _MOVING:
        return
    made = it.site(node)
    given = [item for item in arguments.items if item.name not in ("non_blocking", "async", "copy", "memory_format")]
    if (name == "cuda" and not given) or (
        len(given) == 1 and given[0].name in ("0", "device") and _is_device(arguments, device, "device", "0")
    ):
        _note(it, made, owner.made)


def _is_device(arguments: Arguments, device: Device, *names: str) -> bool:
    """Does it go to an accelerator, or to a device of which it is not known which one it is?"""
    if device is not Device.UNKNOWN:
        return device is Device.ACCELERATOR
    given = arguments.find(*names)
    if given is None:
        return False
    if isinstance(given.value, Known):
        return given.value.role in ("device", "default")
    return isinstance(given.value, Unknown | Constant) and dotted_text(given.node).rpartition(".")[2].endswith("device")


def _note(it: Interpreter, site: Site, tensor: Site) -> None:
    array = it.doubles[tensor]
    if not it.recording or array is None or array.made is None or _is_row(array):
        return
    root = _taken_at(tensor.node) if contains(site.node, tensor.node) else None
    it.facts.doubles[site] = DoubleOnDevice(
        site,
        it.scope,
        array.made,
        array.qualified,
        _numbers(array, _sizes(it, array)),
        it.site(root) if root is not None else None,
    )


def _taken_at(node: cst.CSTNode) -> cst.Call | None:
    """The call of `torch.from_numpy` at the start of a chain of methods, where it stands there."""
    while isinstance(node, cst.Call):
        if dotted_text(node.func).rpartition(".")[2] in arrays.TAKING:
            return node
        if not isinstance(node.func, cst.Attribute):
            break
        node = node.func.value
    return None


def is_met(unit: Unit) -> bool:
    """Does a function take an array of numpy's into a tensor and move it? (`flow.relevance` asks.)"""
    outline = unit.outline
    if outline.calls.isdisjoint(arrays.TAKING) or outline.calls.isdisjoint(_NAMES):
        return False
    return not outline.calls.isdisjoint(_MOVING) or "device" in outline.names


def is_asked_for(program: Program) -> bool:
    """Does a file speak of double precision, but in comments? Then it knows what it does."""
    if any(word in program.source.text for word in _ASKING_TEXTS):
        return True
    return any(not _ASKING.isdisjoint(outline.names) for outline in program.outlines())


_ASKING = frozenset({"float64", "double", "DoubleTensor", "set_default_dtype", "complex128"})
_ASKING_TEXTS = ('"float64"', "'float64'", "DoubleTensor")

"""Extents: what shows that a tensor has something for every token or pixel, and not a few numbers for each example."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Object, Ref
from torchmemlint.flow.ir.defuse import DefUse
from torchmemlint.flow.ir.ops import Call, CallMethod, Constant, GetAttribute, GetItem, Load, Make, Op, Operate, Unpack
from torchmemlint.flow.ir.places import NO_TEMP, Argument, ConstantKey, SliceKey, Spread, Temp
from torchmemlint.knowledge import torch_api
from torchmemlint.knowledge.contracts import Contracts

DIMENSIONS = 3  # at least: examples, positions, and what is said of each


def wide_class(known: Contracts, network: Ref) -> str | None:
    """Return the class of a library's network that predicts something for every token or pixel; None for others."""
    if type(network) is not Object or network.kind is not Kind.MODULE or not isinstance(network.about, str):
        return None
    name = network.about.partition(":")[0]  # "class: parameter"
    owner, _, last = name.rpartition(".")
    name = owner if last[:1].islower() else name  # `AutoModel.from_pretrained`
    return name if name in known.names("wide-outputs") else None


def is_pretrained(known: Contracts, network: Ref) -> bool:
    """Is it a network, or a pipeline of networks, that a library loads with its weights? Those are large."""
    about = str(network.about) if type(network) is Object else ""
    return about.endswith(".from_pretrained") or known.is_pipeline(about)


def shown(flow: DefUse, op: Op) -> Op | None:
    """Return a use of what an operation gives, or of a part of it, that only a tensor of so many dimensions allows."""
    todo = [op]
    for made in todo:
        whole: Temp = getattr(made, "dst", NO_TEMP)
        for use in flow.following(made):
            if _needs_dimensions(flow, whole, use):
                return use
            if _keeps_dimensions(whole, use):
                todo.append(use)
    return None


def is_wide(flow: DefUse, *temps: Temp) -> bool:
    """Does a use of what values are computed from show so many dimensions, also by way of variables?"""
    for op in flow.origins(*temps):
        read = flow.loads.get(op.name.text, ()) if isinstance(op, Load) else ()
        if any(shown(flow, one) is not None for one in (op, *read)):
            return True
    return False


def _keeps_dimensions(whole: Temp, use: Op) -> bool:
    """Is it a part of a result by its name, or the same numbers in another type or place?"""
    match use:
        case GetItem(base=base, key=ConstantKey(value=str())):
            return base == whole
        case GetAttribute(base=base, name=name):
            return base == whole and name not in torch_api.METADATA_ATTRIBUTES
        case CallMethod(base=base, name=name):
            return base == whole and name in torch_api.SAME_DIMENSIONS
    return False


def _needs_dimensions(flow: DefUse, whole: Temp, use: Op) -> bool:
    """`x[:, :, 0]`, `x.permute(0, 2, 3, 1)`, `x.size(2)`, `x.argmax(dim=-3)`, `F.interpolate(x, ...)`."""
    match use:
        case GetItem(base=base, key=SliceKey(dimensions=dimensions)):
            return base == whole and dimensions >= DIMENSIONS
        case GetAttribute(base=base, name="shape") if base == whole:
            return any(_asks_of_shape(part) for part in flow.following(use))
        case CallMethod(base=base, name="size", arguments=()) if base == whole:
            return any(_asks_of_shape(part) for part in flow.following(use))
        case CallMethod(base=base, name="permute", arguments=arguments) if base == whole:
            made = flow.made.get(arguments[0].temp) if len(arguments) == 1 else None
            return len(made.entries if isinstance(made, Make) else arguments) >= DIMENSIONS
        case CallMethod(base=base, name=name, arguments=arguments) if base == whole:
            return any(_is_late(flow, temp) for temp in _dimensions(name, arguments, 0))
        case Call(callee=callee, arguments=(first, *_) as arguments) if first.temp == whole:
            name = flow.name(callee)
            last = name.rpartition(".")[2]
            return name in torch_api.OF_IMAGES or (
                name.startswith("torch.") and any(_is_late(flow, temp) for temp in _dimensions(last, arguments, 1))
            )
    return False


def _asks_of_shape(use: Op) -> bool:
    """`b, c, h, w = x.shape`, `x.shape[2]`."""
    match use:
        case Unpack(targets=targets, star=-1):
            return len(targets) >= DIMENSIONS
        case GetItem(key=ConstantKey(value=value)):
            return _lies_late(value)
    return False


def _dimensions(name: str, arguments: tuple[Argument, ...], first: int) -> Iterator[Temp]:
    """Yield the arguments of an operation that are dimensions of what it is given; `first`: by position, from there."""
    for number, argument in enumerate(arguments):
        if argument.spread is Spread.NAMED:
            is_dimension = argument.name in ("dim", "start_dim", "end_dim") and name not in torch_api.ADDING_DIMENSIONS
        else:
            is_dimension = argument.spread is Spread.PLAIN and number >= first and name in torch_api.BY_DIMENSIONS
        if is_dimension:
            yield argument.temp


def _is_late(flow: DefUse, temp: Temp) -> bool:
    match flow.made.get(temp):
        case Constant(value=value):
            return _lies_late(value)
        case Operate(operator="-", operands=(operand,)):
            made = flow.made.get(operand)
            return isinstance(made, Constant) and isinstance(made.value, int) and _lies_late(-made.value)
    return False


def _lies_late(dimension: object) -> bool:
    """Is it the number of a dimension that only so many have, from the front or the back?"""
    if type(dimension) is not int:
        return False
    return dimension >= DIMENSIONS - 1 or dimension <= -DIMENSIONS

"""Which axes of a tensor hold features and which positions, as far as reshapes tell.

A product over features gives one score for each pair of positions: attention. A product over positions gives one for
each pair of features: "channel attention", whose scores are few and which no fused kernel computes.
"""

from __future__ import annotations

import ast
import enum
import re

from torchmemlint.rules.activations.attention.operations import Operations, argument, integer
from torchmemlint.rules.activations.attention.stages import Definition, Names
from torchmemlint.syntax.outline import dotted

_DEPTH = 12
_SAME = frozenset(
    {"contiguous", "clone", "float", "half", "to", "type_as", "type", "mul", "mul_", "div", "div_", "relu"}
)
_CONVOLUTIONS = frozenset({"torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d"})
_TOKENS = re.compile(r"\([^()]*\)|[\w.]+")


class Axis(enum.Enum):
    """What an axis holds."""

    UNKNOWN = "?"
    FEATURES = "features"
    POSITIONS = "positions"
    ONE = "one"  # of length 1


Axes = tuple[Axis, ...]


def axes(node: ast.expr, names: Names, operations: Operations, depth: int = 0) -> Axes | None:
    """The axes of an expression's value; None where not even their number is known."""
    if depth > _DEPTH:
        return None

    def of(part: ast.expr) -> Axes | None:
        return axes(part, names, operations, depth + 1)

    match node:
        case ast.Name(id=name):
            definition = names.get(name)
            return _of_definition(definition, operations, depth) if definition is not None else None
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() | ast.Add(), right=right):
            return of(left) or of(right)
        case ast.Attribute(value=value, attr="mT"):
            return _swapped(of(value), -2, -1)
        case ast.Subscript(value=value, slice=index):
            return _taken(of(value)) if integer(index) is not None else None
        case ast.Call():
            return _of_call(node, names, operations, depth)
    return None


def exchanged(node: ast.expr, names: Names, depth: int = 0) -> ast.expr | None:
    """What an expression exchanges the last two axes of (`k.transpose(-2, -1)`), else None.

    An exchange of the second and third axes of three or four counts: as a factor, nothing else makes sense there.
    """
    match node:
        case ast.Attribute(value=value, attr="mT" | "mH"):
            return value
        case ast.Call(func=ast.Attribute(value=value, attr="transpose" | "swapaxes"), args=[first, second]):
            pair = {integer(first), integer(second)}
            return value if pair in ({-1, -2}, {1, 2}, {2, 3}, {1, -1}, {3, -2}, {2, -1}, {3, 4}) else None
        case ast.Call(func=ast.Attribute(value=value, attr="permute"), args=order):
            if len(order) == 1 and isinstance(order[0], ast.Tuple | ast.List):
                order = order[0].elts
            numbers = [integer(item) for item in order]
            last = len(numbers) - 1
            return value if len(numbers) > 2 and numbers[-2] in (last, -1) and numbers[-1] in range(last) else None
        case ast.Call(func=ast.Attribute(value=value, attr="contiguous"), args=[]):
            return exchanged(value, names, depth)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="transpose"), args=[value, first, second]):
            return value if {integer(first), integer(second)} in ({-1, -2}, {1, 2}, {2, 3}) else None
        case ast.Name(id=name) if depth < 3:
            definition = names.get(name)
            if definition is not None and definition.index is None:
                return exchanged(definition.value, definition.before, depth + 1)
    return None


def _of_definition(definition: Definition, operations: Operations, depth: int) -> Axes | None:
    value, names, index = definition.value, definition.before, definition.index
    if index is None:
        return axes(value, names, operations, depth + 1)
    match value:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return axes(elements[index], names, operations, depth + 1) if index < len(elements) else None
        case ast.Call(func=ast.Name(id="map"), args=[ast.Lambda(body=body), _]):
            return axes(body, {}, operations, depth + 1)
        case ast.GeneratorExp(elt=element) | ast.ListComp(elt=element):
            return axes(element, {}, operations, depth + 1)
        case ast.Call(func=ast.Attribute(value=base, attr="chunk" | "split")):
            return axes(base, names, operations, depth + 1)
        case ast.Call(func=ast.Attribute(value=base, attr="unbind")):
            along = argument(value, "dim", 0)
            if integer(along) == -1:
                return (Axis.UNKNOWN, Axis.POSITIONS)  # single features
            return _taken(axes(base, names, operations, depth + 1)) if along is None or integer(along) == 0 else None
    return _taken(axes(value, names, operations, depth + 1))


def _of_call(call: ast.Call, names: Names, operations: Operations, depth: int) -> Axes | None:
    if operations.qualified(call.func).startswith("einops.") and dotted(call.func).endswith("rearrange"):
        match call.args:
            case [_, ast.Constant(value=str(pattern))]:
                return _rearranged(pattern)
        return None
    if not isinstance(call.func, ast.Attribute):
        return None
    value, given = call.func.value, list(call.args)

    def inner() -> Axes | None:
        return axes(value, names, operations, depth + 1)

    match call.func.attr:
        case "view" | "reshape":
            if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List):
                given = list(given[0].elts)
            if len(given) < 2 or any(isinstance(item, ast.Starred) for item in given):
                return None
            return _reshaped(given, value, names, operations)
        case "flatten" if integer(argument(call, "start_dim", 0)) == 2 and len(given) < 2:
            convolved = _convolved(value, operations)
            return (Axis.UNKNOWN, Axis.FEATURES, Axis.POSITIONS) if convolved else None
        case "transpose" | "swapaxes" if len(given) == 2:
            return _swapped(inner(), integer(given[0]), integer(given[1]))
        case "permute":
            if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List):
                given = list(given[0].elts)
            known, order = inner(), [integer(item) for item in given]
            if known is None or len(known) != len(order):
                return None
            found = [known[place] for place in order if place is not None and -len(known) <= place < len(known)]
            return tuple(found) if len(found) == len(known) else None
        case "unsqueeze":
            known, place = inner(), integer(argument(call, "dim", 0))
            if known is None:
                return (Axis.UNKNOWN, Axis.ONE, Axis.UNKNOWN) if place in (1, -2) else None
            if place is None or not -len(known) - 1 <= place <= len(known):
                return None
            place = place if place >= 0 else place + len(known) + 1
            return (*known[:place], Axis.ONE, *known[place:])
        case name if name in _SAME:
            return inner()
    return None


def _reshaped(given: list[ast.expr], value: ast.expr, names: Names, operations: Operations) -> Axes:
    found = [Axis.ONE if integer(item) == 1 else _of_length(item, names) for item in given]
    last = given[-1]
    if len(given) == 3 and _convolved(value, operations) and (integer(last) == -1 or isinstance(last, ast.BinOp)):
        found[1], found[2] = Axis.FEATURES, Axis.POSITIONS
    elif len(given) == 3 and integer(last) == -1 and found[1] is Axis.FEATURES:
        found[2] = Axis.POSITIONS
    elif found[-1] is Axis.POSITIONS and len(given) == 3 and found[1] is Axis.UNKNOWN:
        found[1] = Axis.FEATURES
    elif len(given) >= 4 and found[-1] is Axis.UNKNOWN and not any(axis is Axis.POSITIONS for axis in found):
        found[-1] = Axis.FEATURES  # heads are cut from the features
    return tuple(found)


def _of_length(node: ast.expr, names: Names) -> Axis:
    """What an axis of this length holds: `h * w` positions, where the two stand side by side in a shape."""
    match node:
        case ast.BinOp(left=ast.Name(id=first), op=ast.Mult(), right=ast.Name(id=second)):
            if first == second:
                return Axis.POSITIONS
            places = _place(first, names), _place(second, names)
            if None in places:
                return Axis.UNKNOWN
            (one, count), (other, same) = sorted(place for place in places if place is not None)
            beside = count == same and other - one == 1
            return Axis.POSITIONS if beside and (count, one) in ((4, 2), (4, 1), (2, 0), (5, 3)) else Axis.UNKNOWN
        case ast.Name(id=name):
            place = _place(name, names)
            return Axis.FEATURES if place == (2, 3) else Axis.UNKNOWN
    return Axis.UNKNOWN


def _place(name: str, names: Names) -> tuple[int, int] | None:
    """Where in a shape a length was read from, and how many lengths were."""
    definition = names.get(name)
    if definition is None or definition.index is None:
        return None
    match definition.value:
        case ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size"), args=[]):
            return definition.index, definition.count
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return (definition.index, 2) if definition.count == 2 else None
    return None


def _convolved(value: ast.expr, operations: Operations) -> bool:
    """Is it what a convolution made?"""
    if not isinstance(value, ast.Call):
        return False
    built = operations.modules(value.func, {})
    return bool(built) and all(program.qualify(dotted(made.func)) in _CONVOLUTIONS for made, program in built)


def _rearranged(pattern: str) -> Axes | None:
    """`"b (h d) x y -> b h d (x y)"`: what a group's last name was cut from are features, a group made is positions."""
    before, arrow, after = pattern.partition("->")
    if not arrow or "..." in pattern:
        return None
    cut = {
        group[1:-1].split()[-1] for group in _TOKENS.findall(before) if group.startswith("(") and group[1:-1].split()
    }
    found: list[Axis] = []
    for token in _TOKENS.findall(after):
        if token == "1":
            found.append(Axis.ONE)
        elif token in cut:
            found.append(Axis.FEATURES)
        else:
            found.append(Axis.UNKNOWN)
    last = _TOKENS.findall(after)[-1] if found else ""
    if last.startswith("("):
        parts = last[1:-1].split()
        whole = _TOKENS.findall(before)
        if len(parts) > 1 and all(part in whole for part in parts):
            found[-1] = Axis.POSITIONS  # axes of the image, side by side
    return tuple(found)


def _swapped(known: Axes | None, first: int | None, second: int | None) -> Axes | None:
    if known is None or first is None or second is None:
        return None
    if not all(-len(known) <= place < len(known) for place in (first, second)):
        return None
    found = list(known)
    found[first], found[second] = found[second], found[first]
    return tuple(found)


def _taken(known: Axes | None) -> Axes | None:
    """Of one entry along the first axis."""
    return known[1:] if known else None

"""Which axes of a tensor hold features and which positions, as far as reshapes tell.

A product over features gives one score for each pair of positions: attention. A product over positions gives one for
each pair of features: "channel attention", whose scores are few and which no fused kernel computes.
"""

from __future__ import annotations

import enum
import re

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import Return, Yield
from torchmemlint.flow.ir.places import ConstantKey, SliceKey, Temp

_DEPTH = 12
_SAME = frozenset({"contiguous", "clone", "float", "half", "to", "type_as", "type", "mul", "div", "relu"})
_CONVOLUTIONS = frozenset({"torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d"})
_TOKENS = re.compile(r"\([^()]*\)|[\w.]+")


class Axis(enum.Enum):
    """What an axis holds."""

    UNKNOWN = "?"
    FEATURES = "features"
    POSITIONS = "positions"
    ONE = "one"  # of length 1


Axes = tuple[Axis, ...]


def axes(formula: Formula, temp: Temp, depth: int = 0) -> Axes | None:
    """The axes of a value; None where not even their number is known."""
    root = formula.root(temp)
    if depth > _DEPTH or root is None:
        return None

    def of(part: Temp) -> Axes | None:
        return axes(formula, part, depth + 1)

    op = formula.written(root)
    match op:
        case ops.Unpack(star=-1, targets=targets):
            return _unpacked(formula, op, targets.index(root), depth)
        case ops.Operate(operator="*" | "/" | "+", operands=(left, right)):
            return of(left) or of(right)
        case ops.GetAttribute(base=base, name="mT"):
            return _swapped(of(base), -2, -1)
        case ops.GetItem(base=base, key=ConstantKey(value=int())):
            return _taken(of(base))
        case ops.Call(arguments=arguments) if formula.called(op).startswith("einops."):
            pattern = formula.constant(arguments[1].temp) if len(arguments) > 1 else None
            return _rearranged(pattern) if isinstance(pattern, str) else None
        case ops.CallMethod():
            operation = formula.read(op)
            return _of_method(formula, operation, of(op.base)) if operation is not None and operation.operands else None
    return None


def order(formula: Formula, operation: Operation) -> list[int | None]:
    """The whole numbers that `transpose`, `permute` and the like are given, as numbers or as one tuple."""
    return [formula.integer(temp) for temp in given(formula, operation)]


def given(formula: Formula, operation: Operation) -> list[Temp]:
    """What a method is given beside its owner, by position; the entries of a single tuple or list."""
    found = list(operation.operands[1:])
    whole = formula.made(found[0]) if len(found) == 1 else None
    return [entry.temp for entry in whole.entries] if isinstance(whole, ops.Make) else found


def exchanged(formula: Formula, temp: Temp) -> Temp | None:
    """What a value exchanges the last two axes of (`k.transpose(-2, -1)`), else None.

    An exchange of the second and third axes of three or four counts: as a factor, nothing else makes sense there.
    """
    op = formula.made(temp)
    if isinstance(op, ops.GetAttribute) and op.name in ("mT", "mH"):
        return op.base
    operation = formula.of(temp)
    match operation:
        case Operation(name="transpose", operands=(value, _, _)):
            pair = set(order(formula, operation))
            return value if pair in ({-1, -2}, {1, 2}, {2, 3}, {1, -1}, {3, -2}, {2, -1}, {3, 4}) else None
        case Operation(name="permute", operands=(value, *_)):
            numbers = order(formula, operation)
            last = len(numbers) - 1
            return value if last > 1 and numbers[-2] in (last, -1) and numbers[-1] in range(last) else None
        case Operation(name="contiguous", operands=(value,)):
            return exchanged(formula, value)
    return None


def _unpacked(formula: Formula, op: ops.Unpack, index: int, depth: int) -> Axes | None:
    made, whole = formula.made(op.src), formula.of(op.src)
    match made:
        case ops.Make(entries=entries) if entries:
            return axes(formula, entries[index].temp, depth + 1) if index < len(entries) else None
        case ops.Make(dst=box):
            collected = [one.src for one in formula.taken(box) if isinstance(one, ops.Collect)]
            return axes(formula, collected[0], depth + 1) if len(collected) == 1 else None
        case ops.Call(callee=callee, arguments=arguments):
            function = formula.made(callee if len(arguments) == 1 else arguments[0].temp) if arguments else None
            if isinstance(function, ops.Define):  # `map(lambda t: ..., parts)`, `(f(x) for x in parts)`
                body = operations(function.function.body)
                ends = [one.src for one in body if isinstance(one, Return | Yield)]
                return axes(formula.beside.of(function.function), ends[0], depth + 1) if len(ends) == 1 else None
    if whole is not None and whole.name in ("chunk", "split"):
        return axes(formula, whole.operands[0], depth + 1)
    if whole is not None and whole.name == "unbind":
        along = formula.integer(whole.argument("dim", 1))
        if along == -1:
            return Axis.UNKNOWN, Axis.POSITIONS  # single features
        if whole.argument("dim", 1) is not None and along != 0:
            return None
        return _taken(axes(formula, whole.operands[0], depth + 1))
    return _taken(axes(formula, op.src, depth + 1))


def _of_method(formula: Formula, operation: Operation, inner: Axes | None) -> Axes | None:
    temps = given(formula, operation)
    match operation.name:
        case "view" | "reshape" if len(temps) > 1:
            return _reshaped(formula, temps, operation.operands[0])
        case "flatten" if len(temps) < 2 and formula.integer(operation.argument("start_dim", 1)) == 2:
            convolved = _is_convolved(formula, operation.operands[0])
            return (Axis.UNKNOWN, Axis.FEATURES, Axis.POSITIONS) if convolved else None
        case "transpose" if len(temps) == 2:
            return _swapped(inner, *order(formula, operation))
        case "permute" if inner is not None and len(inner) == len(temps):
            places = [place for place in order(formula, operation) if place is not None]
            fits = len(places) == len(inner) and all(-len(inner) <= place < len(inner) for place in places)
            return tuple(inner[place] for place in places) if fits else None
        case "repeat" | "expand" if inner is not None:
            return tuple(Axis.UNKNOWN if axis is Axis.ONE else axis for axis in inner)
        case "unsqueeze":
            place = formula.integer(operation.argument("dim", 1))
            if inner is None:
                return (Axis.UNKNOWN, Axis.ONE, Axis.UNKNOWN) if place in (1, -2) else None
            if place is None or not -len(inner) - 1 <= place <= len(inner):
                return None
            place = place if place >= 0 else place + len(inner) + 1
            return *inner[:place], Axis.ONE, *inner[place:]
        case name if name in _SAME:
            return inner
    return None


def _reshaped(formula: Formula, lengths: list[Temp], value: Temp) -> Axes:
    found = [Axis.ONE if formula.integer(length) == 1 else _of_length(formula, length) for length in lengths]
    last, three = lengths[-1], len(lengths) == 3
    open_end = formula.integer(last) == -1
    if three and _is_convolved(formula, value) and (open_end or isinstance(formula.written(last), ops.Operate)):
        found[1], found[2] = Axis.FEATURES, Axis.POSITIONS
    elif three and open_end and found[1] is Axis.FEATURES:
        found[2] = Axis.POSITIONS
    elif three and found[-1] is Axis.POSITIONS and found[1] is Axis.UNKNOWN:
        found[1] = Axis.FEATURES
    elif len(lengths) > 3 and found[-1] is Axis.UNKNOWN and Axis.POSITIONS not in found:
        found[-1] = Axis.FEATURES  # heads are cut from the features
    return tuple(found)


def _of_length(formula: Formula, temp: Temp) -> Axis:
    """What an axis of this length holds: `h * w` positions, where the two stand side by side in a shape."""
    op = formula.written(temp)
    if not isinstance(op, ops.Operate) or op.operator != "*":
        return Axis.FEATURES if _place(formula, temp) == (2, 3) else Axis.UNKNOWN
    roots = {formula.root(operand) for operand in op.operands}
    if len(roots) == 1 and None not in roots:
        return Axis.POSITIONS
    first, second = sorted(_place(formula, operand) or (0, 0) for operand in op.operands)
    beside = (
        first[1] == second[1] and second[0] - first[0] == 1 and (first[1], first[0]) in ((4, 2), (4, 1), (2, 0), (5, 3))
    )
    return Axis.POSITIONS if beside else Axis.UNKNOWN


def _place(formula: Formula, temp: Temp) -> tuple[int, int] | None:
    """Where in a shape a length was read from, and how many lengths were."""
    root = formula.root(temp)
    op = formula.written(root) if root is not None else None
    if not isinstance(op, ops.Unpack) or root is None:
        return None
    place = op.targets.index(root), len(op.targets)
    match formula.made(op.src):
        case ops.GetAttribute(name="shape") | ops.CallMethod(name="size", arguments=()):
            return place
        case ops.GetItem(base=base, key=SliceKey()) if place[1] == 2:
            shape = formula.made(base)
            return place if isinstance(shape, ops.GetAttribute) and shape.name == "shape" else None
    return None


def _is_convolved(formula: Formula, temp: Temp) -> bool:
    """Is it what a convolution made?"""
    made = formula.of(temp)
    return made is not None and made.layer is not None and made.qualified in _CONVOLUTIONS


def _rearranged(pattern: str) -> Axes | None:
    """`"b (h d) x y -> b h d (x y)"`: what a group's last name was cut from are features, a group made is positions."""
    before, arrow, after = pattern.partition("->")
    if not arrow or "..." in pattern:
        return None
    whole, tokens = _TOKENS.findall(before), _TOKENS.findall(after)
    cut = {token[1:-1].split()[-1] for token in whole if token.startswith("(") and token[1:-1].split()}
    kinds = {"1": Axis.ONE} | dict.fromkeys(cut, Axis.FEATURES)
    found = [kinds.get(token, Axis.UNKNOWN) for token in tokens]
    if tokens and tokens[-1].startswith("("):
        parts = tokens[-1][1:-1].split()
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


def is_table(formula: Formula, temp: Temp) -> bool:
    """Is it an attribute of the object itself, perhaps turned round: a table, not something computed?"""
    op = formula.made(temp)
    match op:
        case ops.GetAttribute(base=base, name="T" | "mT" | "weight" | "data"):
            return formula.flow.is_self(base) or is_table(formula, base)
        case ops.GetAttribute(base=base):
            return formula.flow.is_self(base)
        case ops.CallMethod(base=base, name="t" | "transpose" | "permute" | "unsqueeze"):
            return is_table(formula, base)
    return False

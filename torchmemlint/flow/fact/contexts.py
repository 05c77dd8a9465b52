"""Contexts: what an operation with a gradient of its own keeps on `ctx` for its backward, beside `save_for_backward`.

An output that is an attribute of the context is held in a circle, output, `grad_fn`, context, output, which Python's
garbage collector alone can free. A circle that leads through a view of the output is not even seen by that (measured
with torch 2.13). An input is freed with the graph, but not by the backward pass, as what was saved is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.owners import OnContext
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import Return
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.places import NO_TEMP, ConstantKey, SliceKey, Spread, Temp
from torchmemlint.flow.ir.reaching import reaching
from torchmemlint.flow.names.index import Index
from torchmemlint.immutable import immutable

_VIEWS = frozenset("view view_as t transpose permute squeeze unsqueeze expand expand_as narrow select unfold".split())
_MARKING = "mark_dirty"


class Given(NamedTuple):
    """A parameter of the operation, or a result, by its number."""

    output: bool
    number: int


# What makes an object: an operation, one of some that bind it to the same name, or who gives it.
_Root = ops.Op | Given | frozenset[ops.Op | None]


@immutable()
class Attribute:
    """An attribute of a context that holds an input or an output."""

    at: ops.Op
    what: OnContext


def kept_on_contexts(places: Places, index: Index, units: Iterable[ops.Unit]) -> Iterator[Case]:
    """Yield what the operations of some files keep on their contexts."""
    for one in (one for unit in units for cls in unit.classes for one in _of_class(index, cls)):
        yield Case(places.of(one.at), "TML111", frozenset(), one.what is OnContext.INPUT, about=one.what)


def _of_class(index: Index, cls: ops.Class) -> Iterator[Attribute]:
    if index.is_operation(cls):
        forward, backward, setup = (cls.methods.get(name) for name in ("forward", "backward", "setup_context"))
        if forward is None or backward is None or not backward.parameters or not forward.is_static:
            return
        names = [p.name if p.passing not in (ops.Passing.STAR, ops.Passing.STARS) else "" for p in forward.parameters]
        if setup is not None and len(setup.parameters) == 3:
            _, inputs, output = (parameter.name for parameter in setup.parameters)
            yield from _Keeping(setup, names, backward, {inputs: False, output: True}).found()
        elif names:
            yield from _Keeping(forward, names[1:], backward, {}).found()


class _Keeping:
    """A method that puts something on a context, which is its first parameter: `forward`, or `setup_context`."""

    def __init__(
        self, function: ops.Function, inputs: list[str], backward: ops.Function, wholes: dict[str, bool]
    ) -> None:
        """`wholes` are the parameters that are given all inputs, or the output."""
        self._function, self._inputs, self._wholes = function, inputs, wholes
        self._flow, self._reaching = definitions(function), reaching(function)
        self._backward = _Backward(backward)
        self._stored: dict[str, Temp] = {}  # on the context

    def found(self) -> Iterator[Attribute]:
        """Yield each attribute that holds an input or an output."""
        context = self._function.parameters[0].name
        stores = [op for op in operations(self._function.body) if isinstance(op, ops.SetAttribute)]
        stores = [op for op in stores if self._flow.path(op.base) == context]
        self._stored = {f"{context}.{op.name}": op.src for op in stores}
        outputs = set(self._outputs())
        for op in stores:
            if op.name not in self._backward.drops:
                kept = (self._kept(self._root(temp), self._viewed(temp), outputs) for temp in self._parts(op.src))
                what = max((one for one in kept if one is not None), key=_ORDER.index, default=None)
                if what is not None:
                    yield Attribute(op, what)

    def _kept(self, root: _Root | None, whole: _Root | None, outputs: set[_Root]) -> OnContext | None:
        if root in outputs:
            return OnContext.OUTPUT
        if whole in outputs:
            return OnContext.VIEW
        is_input = isinstance(root, Given) and not root.output and self._backward.gives(root.number, len(self._inputs))
        return OnContext.INPUT if is_input else None

    def _outputs(self) -> Iterator[_Root]:
        """Yield what makes the outputs that have a gradient.

        An input that is returned as it is, and was not written to, comes out as another tensor.
        """
        for number in range(self._backward.outputs) if self._wholes else ():
            if self._backward.uses(number):
                yield Given(True, number)
        for op in () if self._wholes else operations(self._function.body):
            for number, part in enumerate(self._parts(op.src)) if isinstance(op, Return) and op.src != NO_TEMP else ():
                root = self._root(part)
                is_new = not isinstance(root, Given) or _MARKING in self._function.mentions
                if root is not None and is_new and self._backward.uses(number):
                    yield root

    def _parts(self, temp: Temp) -> list[Temp]:
        """Return what a list or tuple consists of that is written out; else the whole."""
        made = self._flow.made.get(self._bound(temp))
        return [entry.temp for entry in made.entries] if isinstance(made, ops.Make) else [temp]

    def _bound(self, temp: Temp) -> Temp:
        """Return what a name stands for, if that is one thing; else the name itself."""
        op = self._flow.made.get(temp)
        if isinstance(op, ops.Unpack) and isinstance(whole := self._flow.made.get(op.src), ops.Make) and op.star < 0:
            return self._bound(whole.entries[op.targets.index(temp)].temp)  # `ctx.a, ctx.b = a, b`
        if isinstance(op, ops.GetItem) and isinstance(whole := self._flow.made.get(self._bound(op.base)), ops.Make):
            there = [entry.temp for entry in whole.entries if entry.key == op.key]  # of a dict that is written out
            return self._bound(there[0]) if len(there) == 1 else temp
        match self._reaching.only(op):
            case ops.Bind(src=src) | ops.Operate(operands=(src, _)):
                return self._bound(src)
            case ops.CallMethod(base=base, name=name) if name.endswith("_"):
                return self._bound(base)
        return temp

    def _root(self, temp: Temp) -> _Root | None:
        """Return what makes an object; None where that is not known."""
        bound = self._bound(temp)
        match op := self._flow.made.get(bound):
            case ops.Load():
                made = self._reaching.at.get(op, frozenset())
                if None not in made or len(made) > 1:
                    return made if made and all(map(self._makes, made)) else None  # the same, where the same was bound
                if op.name.text in self._wholes:
                    return Given(self._wholes[op.name.text], 0)
                return Given(False, self._inputs.index(op.name.text)) if op.name.text in self._inputs else None
            case ops.Unpack(star=-1):
                whole = self._flow.made.get(self._bound(op.src))
                given = self._wholes.get(whole.name.text) if isinstance(whole, ops.Load) else None
                return Given(given, op.targets.index(bound)) if given is not None else None
            case ops.GetAttribute() if (stored := self._stored.get(self._flow.path(bound))) is not None:
                return self._root(stored)
            case ops.CallMethod(name="contiguous", base=base) if isinstance(self._root(base), Given):
                return self._root(base)  # as it is, unless it was a view with gaps
            case ops.Call() | ops.CallMethod() | ops.Operate():
                return op
        return None

    def _makes(self, definition: ops.Op | None) -> bool:
        """Does a definition bind a new object to a name, and not one that another name stands for?"""
        if not isinstance(definition, ops.Bind):
            return False
        return isinstance(self._flow.made.get(self._bound(definition.src)), ops.Call | ops.CallMethod | ops.Operate)

    def _viewed(self, temp: Temp) -> _Root | None:
        """Return what makes the tensor that something is a view of; None where it is none."""
        op = self._flow.made.get(self._bound(temp))
        if isinstance(op, ops.CallMethod) and op.name in _VIEWS:
            return self._viewed(op.base) or self._root(op.base)
        if isinstance(op, ops.GetItem) and isinstance(op.key, SliceKey | ConstantKey):
            keys = (self._flow.made.get(part) for part in getattr(op.key, "parts", ()))
            if all(isinstance(key, ops.Constant) for key in keys):
                return self._viewed(op.base) or self._root(op.base)
        return None


_ORDER = (OnContext.INPUT, OnContext.OUTPUT, OnContext.VIEW)  # how long it stays


class _Backward:
    """What the backward of an operation shows of its inputs and outputs."""

    def __init__(self, function: ops.Function) -> None:
        self._flow = definitions(function)
        context, *self._gradients = (parameter.name for parameter in function.parameters)
        self.outputs = len(self._gradients)
        body = list(operations(function.body))
        self._returned = [self._flow.made.get(op.src) for op in body if isinstance(op, Return)]
        self.drops = {  # attributes that it removes, or puts something else into
            op.name if isinstance(op, ops.SetAttribute) else getattr(op.key, "value", None)
            for op in body
            if isinstance(op, ops.SetAttribute | ops.Remove) and self._flow.path(op.base) == context
        }

    def uses(self, number: int) -> bool:
        """Is the gradient of an output used? That of one which has none, as of indices, is not."""
        return number < len(self._gradients) and self._gradients[number] in self._flow.loads

    def gives(self, number: int, of: int) -> bool:
        """Does one of so many inputs get a gradient? Then it is a tensor of floating-point numbers."""
        for made in self._returned:
            if isinstance(made, ops.Make) and all(entry.spread is Spread.PLAIN for entry in made.entries):
                parts = [entry.temp for entry in made.entries]
                if number < len(parts) and not self._is_none(parts[number]):
                    return True
            elif of == 1 and isinstance(made, ops.Operate | ops.Call | ops.CallMethod | ops.Load):
                return True
        return False

    def _is_none(self, temp: Temp) -> bool:
        op = self._flow.made.get(temp)
        if isinstance(op, ops.Load) and (sources := self._flow.bound.get(op.name.text)):
            return all(map(self._is_none, sources))
        return isinstance(op, ops.Constant) and op.value is None

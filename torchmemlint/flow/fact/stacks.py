"""Stacks: layers that are put behind each other one call at a time, in a Sequential or in a list that becomes one."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.flow.fact.layers import SEQUENTIAL, UNKNOWN, Builders, Layer, Layers
from torchmemlint.flow.fact.reading import GROWING, Building
from torchmemlint.flow.fact.ways import Value, Ways, in_order
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import For
from torchmemlint.flow.ir.ops import Function, Op
from torchmemlint.flow.ir.places import Name, Spread, Temp

_IN_ORDER = GROWING - {"insert"}
_NAMED = frozenset({"add_module", "register_module"})
_FIRST: Value = frozenset({""})  # nothing comes before, or it is not known what


class Stacks(Ways):
    """What is put behind which layers in a function: those that may come before, for each layer that is put there."""

    def __init__(self, builders: Builders, function: Function) -> None:
        super().__init__(builders.reading(function), builders.index.contracts)
        self._builders, self._function = builders, function
        self._layers: dict[Op, Layer] = {}
        self.pairs: dict[tuple[Layer, Op | None], None] = {}  # None: it comes first, or it is not known what before it
        self.run(function.body)

    def iterate(self, op: For) -> None:
        """Go through a loop over something."""
        self.repeat(op, lambda: None, op.body, op.orelse)

    def step(self, op: Op) -> None:
        """Go past an operation without blocks."""
        match op:
            case ops.Bind(name=name, src=src):
                self._begin(name.text, src)
            case ops.SetAttribute(base=base, name=text, src=src) if self.reading.is_self(base):
                self._begin(f"self.{text}", src)
            case ops.Operate(operator="+", place=Name(text=text), operands=(_, added)) if text in self.state.held:
                self._put_behind(text, self._builders.listed(self._function, added) or (UNKNOWN,))
            case ops.CallMethod() if op.name in GROWING:
                self._grow(op)

    def layer(self, made: Op | None) -> Layer:
        """Return the layer that is built somewhere."""
        return self._layers.get(made, UNKNOWN[0]) if made is not None else UNKNOWN[0]

    def _begin(self, text: str, src: Temp) -> None:
        """A name, or an attribute, stands for another list or Sequential, or for something else."""
        self.state.held.pop(text, None)
        op = self.reading.made.get(src)
        if isinstance(op, ops.Call | ops.CallMethod) and self.reading.called(op) == SEQUENTIAL:
            children = self._builders.children(self._function, op)
            self._end_with(text, children[-1] if children else UNKNOWN)
        elif isinstance(op, ops.Make) and op.kind == "list" and self._is_stacked(text):
            self.state.held[text] = _FIRST
            self._put_behind(text, self._builders.listed(self._function, src) or ())

    def _is_stacked(self, text: str) -> bool:
        """Is a list only added to, and then given to a Sequential?"""
        takers = [op for load in self.reading.loads.get(text, ()) for op in self.reading.taken.get(load.dst, ())]
        return bool(takers) and all(self._stacks(op) for op in takers)

    def _stacks(self, op: Op) -> bool:
        if isinstance(op, ops.Operate):
            return isinstance(op.place, Name)
        if isinstance(op, ops.CallMethod) and op.name in _IN_ORDER:
            return True
        if not isinstance(op, ops.Call | ops.CallMethod) or self.reading.called(op) != SEQUENTIAL:
            return False
        return [argument.spread for argument in op.arguments] == [Spread.STAR]

    def _grow(self, op: Building) -> None:
        assert isinstance(op, ops.CallMethod)
        base = self.reading.made.get(op.base)
        match base:
            case ops.Load(name=name):
                text = name.text
            case ops.GetAttribute(base=owner, name=name) if self.reading.is_self(owner):
                text = f"self.{name}"
            case _:
                return
        if text not in self.state.held:
            return
        if op.name not in _IN_ORDER or not op.arguments:
            self.state.held[text] = _FIRST
        elif op.name == "extend":
            self._put_behind(text, self._builders.listed(self._function, op.arguments[0].temp) or (UNKNOWN,))
        else:
            given = op.arguments[-1 if op.name in _NAMED else 0]
            self._put_behind(text, (self._builders.layers(self._function, given.temp),))

    def _put_behind(self, text: str, parts: Iterable[Layers]) -> None:
        for layers in parts:
            before = [one if isinstance(one, Op) else None for one in in_order(self.state.held[text])]
            self.pairs.update({(layer, one): None for layer in layers for one in before})
            self._end_with(text, layers)

    def _end_with(self, text: str, layers: Layers) -> None:
        self._layers.update({layer.made: layer for layer in layers if layer.made is not None})
        self.state.held[text] = frozenset(layer.made or "" for layer in layers) or _FIRST

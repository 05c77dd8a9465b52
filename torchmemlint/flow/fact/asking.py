"""Answers about single places of a file, for rules of plugins: what is called there, what made a value, whether it
carries a graph, and whether gradients are on.

The answers follow names, attributes of an object as its class sets them, and variables of the file. Where paths differ,
or a value comes from outside of the file, the answer is that it is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.fact.formulas import Formula, Formulas
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import layout_of, operations
from torchmemlint.flow.ir.control import Enter
from torchmemlint.flow.ir.places import Scope, Temp
from torchmemlint.flow.models.guards import mode_named, mode_of
from torchmemlint.knowledge import operations as known_operations
from torchmemlint.knowledge import torch_api
from torchmemlint.knowledge.contracts import Contracts

_Called = ops.Call | ops.CallMethod
_Seen = tuple[tuple[Formula, Temp], ...]  # values that led to one
_IS_ON = {Mode.ON: True, Mode.WANTED: True, Mode.OFF: False}
_ASKING = "requires_grad"


class Asking:
    """One file, by the spans of its operations."""

    def __init__(
        self,
        unit: ops.Unit,
        known: Contracts,
        passes: Callable[[], Mapping[ops.Span, bool | None]],
        called_in: Callable[[ops.Function], Mode | None],
    ) -> None:
        """`passes`: do the forward passes of the file record graphs? `called_in`: the mode of a function's callers."""
        self._unit, self._known = unit, known
        self._formulas = Formulas(unit)
        self._passes, self._called_in = passes, called_in

    @cached_property
    def _at(self) -> dict[ops.Span, list[ops.Op]]:
        found: dict[ops.Span, list[ops.Op]] = {}
        for function in self._unit.functions:
            for op in operations(function.body):
                found.setdefault(op.span, []).append(op)
        return found

    def callees(self, span: ops.Span) -> frozenset[str]:
        """The qualified names of what a call may be of. What a call of `acme.Engine` gives has that name."""
        calls = (op for op in self._at.get(span, ()) if isinstance(op, ops.Call | ops.CallMethod))
        return frozenset(name for op in calls for name in self._called(self._formulas.of(op.owner), op, ()))

    def origins(self, span: ops.Span) -> list[ops.Span]:
        """Where a value was made, by way of names and attributes, in order; none where one is not known."""
        made = [op for formula, temp in self._values(span) for _, op in self._made(formula, temp, ())]
        return [] if any(isinstance(op, ops.Load) for op in made) else sorted({op.span for op in made})

    def carries_graph(self, span: ops.Span) -> bool | None:
        """Does a value carry an autograd graph? None where that is not known."""
        return _together(self._has_graph(formula, temp, ()) for formula, temp in self._values(span))

    def gradients(self, span: ops.Span) -> bool | None:
        """Are gradients on at a place, as its contexts, its function and the callers of that say? None: not known."""
        (row, column, end_row, end_column) = span
        inside = [
            op
            for found, ops_there in self._at.items()
            if (row, column) <= found[:2] and found[2:] <= (end_row, end_column)
            for op in ops_there
        ]
        outermost = min(inside, key=lambda op: (op.span[:2], [-number for number in op.span[2:]]), default=None)
        return None if outermost is None else self._mode(self._formulas.of(outermost.owner), outermost)

    def _values(self, span: ops.Span) -> list[tuple[Formula, Temp]]:
        found = self._at.get(span, ())
        return [(self._formulas.of(op.owner), dst) for op in found if (dst := getattr(op, "dst", None)) is not None][:1]

    # What makes values.

    def _made(self, formula: Formula, temp: Temp, seen: _Seen) -> Iterator[tuple[Formula, ops.Op]]:
        """What may have made a value, also where an attribute or a variable of the file was given it."""
        for op in formula.sources(temp):
            further = self._further(formula, op)
            if further and (formula, temp) not in seen:
                for beside, other in further:
                    yield from self._made(beside, other, (*seen, (formula, temp)))
            else:
                yield formula, op

    def _further(self, formula: Formula, op: ops.Op) -> list[tuple[Formula, Temp]]:
        """The values that a read of an attribute or a variable may be of."""
        match op:
            case ops.GetAttribute(dst=dst):
                return formula.stored(dst)
            case ops.Load(name=name) if name.scope is Scope.GLOBAL and formula.function is not self._unit.module:
                return self._formulas.constant(name.text)
            case ops.Load(name=name) if name.scope is Scope.CELL and formula.function.parent is not None:
                outer = self._formulas.of(formula.function.parent)
                return [(outer, bind.src) for bind in outer.flow.binds.get(name.text, ())]
            case Enter(context=context):
                return [(formula, context)]
        return []

    # What values are called.

    def _called(self, formula: Formula, op: _Called, seen: _Seen) -> Iterator[str]:
        if isinstance(op, ops.Call):
            yield from self._names(formula, op.callee, seen)
        else:
            yield from (f"{name}.{op.name}" for name in self._names(formula, op.base, seen))

    def _names(self, formula: Formula, temp: Temp, seen: _Seen) -> Iterator[str]:
        """The names of a value: of what is imported, of the class that it is an object of, of what gave it."""
        if (formula, temp) in seen:
            return
        if formula.flow.is_self(temp) and formula.flow.cls is not None:
            for cls in self._formulas.ancestors(formula.flow.cls):
                yield from (self._qualified(name) for name in (cls.name, *cls.bases))
            return
        for beside, op in self._made(formula, temp, ()):
            match op:
                case ops.Call() | ops.CallMethod():
                    yield from self._called(beside, op, (*seen, (formula, temp)))
                case ops.Import(qualified=qualified, relative=0):
                    yield qualified
                case ops.GetAttribute(base=base, name=attribute):
                    yield from (f"{name}.{attribute}" for name in self._names(beside, base, (*seen, (formula, temp))))
                case ops.Load(name=name) if name.scope is Scope.GLOBAL:
                    yield self._qualified(name.text)
                case ops.Load(name=name):
                    given = (one.annotation for one in beside.function.parameters if one.name == name.text)
                    yield from (self._qualified(annotation) for annotation in given if annotation)

    def _qualified(self, name: str) -> str:
        first, dot, rest = name.partition(".")
        return self._unit.imports.get(first, first) + dot + rest

    # What carries a graph.

    def _has_graph(self, formula: Formula, temp: Temp, seen: _Seen) -> bool | None:
        if (formula, temp) in seen:
            return False  # that is decided where it comes from
        made = list(self._made(formula, temp, ()))
        return _together(self._records(beside, op, (*seen, (formula, temp))) for beside, op in made)

    def _records(self, formula: Formula, op: ops.Op, seen: _Seen) -> bool | None:
        """Does what an operation gives carry a graph?"""
        passes = self._passes()
        if op.span in passes:
            return passes[op.span]
        match op:
            case ops.Constant() | ops.Compare() | ops.Format() | ops.Import():
                return False
            case ops.CallMethod(name=name) | ops.GetAttribute(name=name) if name in torch_api.GRAPHLESS:
                return False
            case ops.Make(entries=entries):
                return self._any(formula, [entry.temp for entry in entries], seen)
            case ops.GetItem(base=base):
                return self._any(formula, [base], seen)
            case ops.Operate(operands=operands) | ops.Choose(operands=operands):
                return self._computes(formula, op, list(operands), seen)
            case ops.Call() | ops.CallMethod():
                return self._gives(formula, op, seen)
        return None

    def _gives(self, formula: Formula, op: _Called, seen: _Seen) -> bool | None:
        """Does what a call of torch, or of a tensor's method, gives carry a graph?"""
        arguments = [one.temp for one in op.arguments]
        qualified = formula.called(op)
        last = qualified.rpartition(".")[2]
        if qualified in torch_api.PARAMETERS:
            return True
        if qualified.startswith("torch."):
            if last in torch_api.FACTORIES:
                asked = [formula.constant(one.temp) for one in op.arguments if one.name == _ASKING]
                return asked[0] is True if asked else False
            known = known_operations.function(qualified) is not None
            return self._computes(formula, op, arguments, seen) if known else None
        layer = formula.read(op)
        if layer is not None and layer.layer is not None:
            return self._mode(formula, op)  # its weights are parameters
        if isinstance(op, ops.CallMethod) and known_operations.method(op.name) is not None:
            return self._computes(formula, op, [op.base, *arguments], seen)
        return None

    def _computes(self, formula: Formula, op: ops.Op, operands: list[Temp], seen: _Seen) -> bool | None:
        """Does a result carry a graph, if it does where one of its operands has one and gradients are on?"""
        found = self._any(formula, operands, seen)
        mode = self._mode(formula, op) if found is not False else True
        return False if mode is False else found

    def _any(self, formula: Formula, temps: Iterable[Temp], seen: _Seen) -> bool | None:
        found = [self._has_graph(formula, temp, seen) for temp in temps]
        return True if True in found else None if None in found else False

    # Whether gradients are on.

    def _mode(self, formula: Formula, op: ops.Op) -> bool | None:
        function = formula.function
        for context in layout_of(function).entered(op):
            mode = self._of_context(formula, context)
            if mode is not None:
                return _IS_ON.get(mode)
        setters = self._known.setters.last_parts
        if not setters.isdisjoint(function.mentions) or not setters.isdisjoint(self._unit.module.mentions):
            return None  # they hold from there on
        mode = mode_of(self._known, function)
        if mode is None and function is self._unit.module:
            mode = Mode.ON
        return _IS_ON.get(mode or self._called_in(function) or Mode.EITHER)

    def _of_context(self, formula: Formula, context: Temp) -> Mode | None:
        """The gradient mode that a context sets; None of one that sets none."""
        for beside, op in self._made(formula, context, ()):
            if isinstance(op, ops.Call | ops.CallMethod):
                given = tuple(beside.constant(one.temp) for one in op.arguments)
                known = tuple(... if one is None else one for one in given)
                modes = (mode_named(self._known, name, known) for name in self._called(beside, op, ()))
                found = next((mode for mode in modes if mode is not None), None)
                if found is not None:
                    return found
        return None


def _together(found: Iterable[bool | None]) -> bool | None:
    """What holds of a value that may be one of several: True if of one, False if of all."""
    each = list(found)
    return True if True in each else False if each and None not in each else None

"""Formulas: what the functions of a file compute, operation by operation, and what takes each result.

This is read off the operations of the file alone, without a run: names are followed to what defines them, attributes
of an object to what its class puts there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from torchmemlint.flow.fact.operands import Operation, Taking, looks
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.calls import works_in_place
from torchmemlint.flow.ir.defuse import DefUse, default_of, definitions
from torchmemlint.flow.ir.places import Name, Scope, Spread, Temp
from torchmemlint.flow.ir.reaching import Reaching, reaching
from torchmemlint.knowledge import torch_api

_LAYER = "torch.nn."
_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "@": "matmul", "**": "pow"}
_ELSEWHERE = frozenset(one.rpartition(".")[2] for one in torch_api.COUNTERPARTS)
_BEGIN = frozenset({None})  # of a name: what it stands for when the function begins


class Formulas:
    """The formulas of a file's functions."""

    def __init__(self, unit: ops.Unit, imported: Callable[[str, ops.Unit], ops.Function | None] | None = None) -> None:
        """`imported` leads to the functions of other files that this one imports."""
        self.unit = unit
        self._imported = functools.cache(imported) if imported is not None else None
        self._of_others: dict[ops.Unit, Formulas] = {}
        self._known: dict[ops.Function, Formula] = {}
        self._stored: dict[ops.Class, dict[str, list[tuple[Formula, Temp]]]] = {}

    def of(self, function: ops.Function) -> Formula:
        """The formula of one function."""
        if function.unit is not self.unit:
            if function.unit not in self._of_others:
                self._of_others[function.unit] = Formulas(function.unit, self._imported)
            return self._of_others[function.unit].of(function)
        if function not in self._known:
            self._known[function] = Formula(self, function)
        return self._known[function]

    def attribute(self, cls: ops.Class, name: str) -> list[tuple[Formula, Temp]]:
        """What methods of a class, or of its bases in the file, put under an attribute of their object."""
        return [one for above in self.ancestors(cls) for one in self._of_class(above).get(name, ())]

    def function(self, name: str) -> Formula | None:
        """The function that a name of the file stands for, or one that is imported from another file of the project."""
        found = self.unit.once.get(name)
        if found is None:
            return self.imported(self.unit.imports.get(name, ""))
        return self.of(found) if isinstance(found, ops.Function) else None

    def imported(self, dotted: str) -> Formula | None:
        """The function of another file of the project that a dotted name leads to."""
        if self._imported is None or not dotted or dotted.startswith("torch."):
            return None
        found = self._imported(dotted, self.unit)
        return self.of(found) if found is not None else None

    def ancestors(self, cls: ops.Class) -> list[ops.Class]:
        """A class with its bases in the file."""
        found = [cls]
        for one in found:
            bases = [self.unit.once.get(base) for base in one.bases]
            found += [base for base in bases if isinstance(base, ops.Class) and base not in found]
        return found

    def constant(self, name: str) -> list[tuple[Formula, Temp]]:
        """What the file's own body binds a name to."""
        module = self.of(self.unit.module)
        return [(module, op.src) for op in module.flow.binds.get(name, ())]

    def default(self, function: ops.Function, name: str) -> list[tuple[Formula, Temp]]:
        """What a parameter is that is not given."""
        found = default_of(function, name)
        return [(self.of(found[0]), found[1])] if found is not None else []

    def _of_class(self, cls: ops.Class) -> dict[str, list[tuple[Formula, Temp]]]:
        known = self._stored.get(cls)
        if known is None:
            known = self._stored[cls] = {}
            for method in cls.methods.values():
                formula = self.of(method)
                for op in operations(method.body):
                    if type(op) is ops.SetAttribute and formula.flow.is_self(op.base):
                        known.setdefault(op.name, []).append((formula, op.src))
        return known


class Formula:
    """The operations of one function, with what defines and takes their results."""

    def __init__(self, formulas: Formulas, function: ops.Function) -> None:
        self.function = function
        self.beside = formulas  # of the other functions
        self._read: dict[ops.Op, Operation | None] = {}

    @functools.cached_property
    def flow(self) -> DefUse:
        """What makes and takes its temporaries."""
        return definitions(self.function)

    @functools.cached_property
    def _names(self) -> Reaching:
        return reaching(self.function)

    def around(self, operation: Operation) -> Formula:
        """The formula that an operation belongs to: that of a layer is where the layer is made."""
        return self.beside.of(operation.op.owner)

    def operations(self, names: frozenset[str]) -> Iterator[Operation]:
        """Yield the operations of these names, in order."""
        for op in operations(self.function.body):
            found = self.read(op) if self._may_be(op, names) else None
            if found is not None and found.name in names:
                yield found

    def _may_be(self, op: ops.Op, names: frozenset[str]) -> bool:
        """Is it worth reading? What an attribute of the receiver is called says nothing of the layer that it is."""
        if isinstance(op, ops.CallMethod):
            plain = _plain(op.name)
            return plain in names or plain in _ELSEWHERE or self.flow.is_self(op.base)
        if isinstance(op, ops.Operate):
            return _OPERATORS.get(op.operator) in names
        return isinstance(op, ops.Call) or (isinstance(op, ops.GetItem) and "getitem" in names)

    # What makes values.

    def written(self, temp: Temp) -> ops.Op | None:
        """The operation that stands where a value is written; None of what is unpacked, or iterated over."""
        return self.flow.made.get(temp)

    def root(self, temp: Temp | None) -> Temp | None:
        """A value before it had names, where each stands for one thing; None where that is not known."""
        while temp is not None:
            op = self.flow.made.get(temp)
            if type(op) is not ops.Load:
                return None if type(op) is ops.Move else temp
            defined = self._names.only(op)
            if not isinstance(defined, ops.Bind):
                changed = defined.dst if isinstance(defined, ops.Operate | ops.CallMethod) else None
                return temp if self.definitions_of(op) == _BEGIN else changed
            temp = defined.src
        return None

    def made(self, temp: Temp | None) -> ops.Op | None:
        """What made a value, by way of names that stand for one thing; None where that is not known."""
        root = self.root(temp)
        return self.flow.made.get(root) if root is not None else None

    def sources(self, temp: Temp) -> list[ops.Op]:
        """All that may have made a value, by way of names and conditional expressions; none where one is not known."""
        found: dict[ops.Op, None] = {}
        pending = [temp]
        for one in pending:
            op = self.flow.made.get(one)
            added: list[Temp] = []
            if type(op) is ops.Move:
                added = self.flow.moved[one]
            elif isinstance(op, ops.Load):
                for definition in self.definitions_of(op):
                    if isinstance(definition, ops.Bind):
                        added.append(definition.src)
                    else:
                        found[definition if isinstance(definition, ops.Operate | ops.CallMethod) else op] = None
            elif op is None:
                return []
            else:
                found[op] = None
            pending += [other for other in added if other not in pending]
        return list(found)

    def called(self, op: ops.Call | ops.CallMethod) -> str:
        """The qualified name of what a call is of, if it is imported or built in."""
        callee = self.made(op.callee if isinstance(op, ops.Call) else op.base)
        if isinstance(op, ops.Call) and isinstance(callee, ops.Load) and callee.name.scope is Scope.BUILTIN:
            return callee.name.text
        name = self.name(op.callee if isinstance(op, ops.Call) else op.base)
        return f"{name}.{op.name}" if name and isinstance(op, ops.CallMethod) else name

    def callee(self, op: ops.Op) -> Formula | None:
        """The function of the project that is called by its name."""
        load = self.written(op.callee) if isinstance(op, ops.Call) else None
        return self.beside.function(load.name.text) if isinstance(load, ops.Load) else None

    def spelled(self, op: ops.Call | ops.CallMethod) -> str:
        """What is called as it is written, where that is a dotted name."""
        path = self.flow.path(op.callee if isinstance(op, ops.Call) else op.base)
        return f"{path}.{op.name}" if path and isinstance(op, ops.CallMethod) else path

    def definitions_of(self, load: ops.Load) -> frozenset[ops.Op | None]:
        """What may have defined a name where it is read; None: before the function begins, or in another one."""
        return self._names.at.get(load, _BEGIN)

    def readers(self, definition: ops.Op) -> list[ops.Load]:
        """Where a name is read that an operation may have defined."""
        return self._names.readers.get(definition, [])

    def of(self, temp: Temp | None) -> Operation | None:
        """The operation that made a value; None where that is not known."""
        op = self.made(temp)
        return self.read(op) if op is not None else None

    def constant(self, temp: Temp | None) -> object:
        """The number or text that a value is for certain; None for others."""
        match self.made(temp):
            case ops.Constant(value=value):
                return value
            case ops.Operate(operator="-", operands=(operand,)):
                value = self.constant(operand)
                return -value if isinstance(value, int | float) else None
        return None

    def integer(self, temp: Temp | None) -> int | None:
        """The whole number that a value is."""
        value = self.constant(temp)
        return value if type(value) is int else None

    def name(self, temp: Temp) -> str:
        """The dotted name of what is imported; empty for all else."""
        match self.made(temp):
            case ops.Import(qualified=qualified, relative=0):
                return qualified
            case ops.Load(name=name) if name.scope is Scope.GLOBAL:
                return self.function.unit.imports.get(name.text, "")
            case ops.GetAttribute(base=base, name=attribute) if whole := self.name(base):
                return f"{whole}.{attribute}"
        return ""

    def attribute(self, base: Temp, name: str) -> list[tuple[Formula, Temp]]:
        """What an attribute of the method's own object may be, as its class puts it there; none of another object."""
        cls = self.flow.cls
        return self.beside.attribute(cls, name) if cls is not None and self.flow.is_self(base) else []

    def stored(self, temp: Temp | None) -> list[tuple[Formula, Temp]]:
        """What a value may be that is an attribute of the method's own object."""
        op = self.made(temp)
        return self.attribute(op.base, op.name) if isinstance(op, ops.GetAttribute) else []

    def layer(self, temp: Temp) -> Operation | None:
        """The call that made a value, where it is a layer of torch, by itself or as an attribute of the receiver."""
        return self.construction(self.made(temp)) or _constructed(self.stored(temp))

    def construction(self, op: ops.Op | None) -> Operation | None:
        """A call as that which makes a layer of torch."""
        made = self.read(op) if isinstance(op, ops.Call | ops.CallMethod) else None
        is_layer = made is not None and made.qualified.startswith(_LAYER) and made.layer is None
        return made if is_layer and made is not None and made.qualified.rpartition(".")[2][:1].isupper() else None

    def read(self, op: ops.Op) -> Operation | None:
        """An operation of the function as one on tensors; None for others."""
        if op not in self._read:
            self._read[op] = self._as_operation(op)
        return self._read[op]

    def _as_operation(self, op: ops.Op) -> Operation | None:
        match op:
            case ops.Operate(operator=operator, operands=operands):
                name = (
                    _OPERATORS.get(operator, operator) if len(operands) > 1 else "neg" if operator == "-" else operator
                )
                return Operation(op, name, operands, in_place=op.place is not None)
            case ops.Compare(operator=operator, operands=operands):
                return Operation(op, operator, operands)
            case ops.GetItem(base=base):
                return Operation(op, "getitem", (base,))
            case ops.GetAttribute(base=base, name="mT" | "mH" as name):
                return Operation(op, name, (base,))
            case ops.Call(callee=callee, arguments=arguments) | ops.CallMethod(base=callee, arguments=arguments):
                if any(one.spread in (Spread.STAR, Spread.STARS) for one in arguments):
                    return None
                given = tuple(one.temp for one in arguments if one.spread is Spread.PLAIN)
                keywords = tuple((one.name, one.temp) for one in arguments if one.spread is Spread.NAMED)
                return self._called(op, callee, given, keywords)
        return None

    def _called(
        self, op: ops.Op, callee: Temp, given: tuple[Temp, ...], keywords: tuple[tuple[str, Temp], ...]
    ) -> Operation | None:
        qualified = self.name(callee)
        if isinstance(op, ops.CallMethod):
            qualified = qualified and f"{qualified}.{op.name}"
        if qualified:
            name = torch_api.COUNTERPARTS.get(qualified, qualified).rpartition(".")[2]
            known = qualified.startswith("torch.") or qualified in torch_api.COUNTERPARTS
            if qualified in torch_api.NAMED_AXES:
                given = (*given[-1:], *given[:-1])
            return Operation(op, _plain(name), given, keywords, qualified, None, _changes(name)) if known else None
        layer = self._layer_called(op, callee)
        if layer is not None:
            name = layer.qualified.rpartition(".")[2]
            return Operation(op, torch_api.FUNCTIONS_OF_LAYERS.get(name, name), given, keywords, layer.qualified, layer)
        if isinstance(op, ops.CallMethod) and not self.flow.is_self(callee):
            return Operation(op, _plain(op.name), (callee, *given), keywords, "", None, _changes(op.name))
        return None

    def _layer_called(self, op: ops.Op, callee: Temp) -> Operation | None:
        if isinstance(op, ops.Call):
            return self.layer(callee)
        assert isinstance(op, ops.CallMethod)
        return _constructed(self.attribute(callee, op.name))

    # What takes them.

    def takings(self, operation: Operation) -> list[Taking]:
        """All places where an operation's result is taken, but for looks at its shape and the like."""
        found = self.uses(operation.dst)
        place = operation.op.place if isinstance(operation.op, ops.Operate | ops.CallMethod) else None
        if place is not None:  # what changes in place is there, too
            local = isinstance(place, Name) and self._names.is_local(place)
            found += self._named(operation.op) if local else [Taking(operation.op, operation.dst)]
        return found

    def taken(self, temp: Temp) -> list[ops.Op]:
        """The operations that take a value, before it has a name."""
        return self.flow.taken.get(temp, [])

    def uses(self, temp: Temp) -> list[Taking]:
        """All places where a value is taken, also by way of names, but for looks at its shape and the like."""
        found: list[Taking] = []
        for op in self.taken(temp):
            if isinstance(op, ops.Bind):
                found += self._named(op) if self._names.is_local(op.name) else [Taking(op, temp)]
            elif not looks(op, temp):
                found.append(self._taking(op, temp))
        return found

    def _named(self, definition: ops.Op) -> list[Taking]:
        """The places where a name is taken that stands for something, and for that alone."""
        found: list[Taking] = []
        for load in self._names.readers.get(definition, ()):
            if len(self._names.at[load]) == 1:
                found += self.uses(load.dst)
            else:
                found += [Taking(op, load.dst) for op in self.taken(load.dst) if not looks(op, load.dst)]
        return found

    def _taking(self, op: ops.Op, temp: Temp) -> Taking:
        if isinstance(op, ops.Make):
            joining = self.flow.following(op)
            operation = self.read(joining[0]) if len(joining) == 1 else None
            if operation is not None and operation.operands[:1] == (op.dst,) and operation.name in torch_api.JOINERS:
                return Taking(op, temp, operation)
            return Taking(op, temp)
        operation = self.read(op)
        if operation is None:
            return Taking(op, temp)
        if temp in operation.operands:
            return Taking(op, temp, operation, operation.operands.index(temp))
        return Taking(op, temp, operation, -1) if any(temp == t for _, t in operation.keywords) else Taking(op, temp)


def _constructed(stored: list[tuple[Formula, Temp]]) -> Operation | None:
    """The call that made a layer of torch, where all that is stored is one of a kind."""
    found = [formula.construction(formula.made(src)) for formula, src in stored]
    names = {one.qualified if one is not None else "" for one in found}
    return found[0] if len(names) == 1 else None


def _plain(name: str) -> str:
    """One name for an operation and its form in place, and for all that are aliases in torch."""
    plain = name.rstrip("_") if _changes(name) else name
    return torch_api.ALIASES.get(plain, plain)


def _changes(name: str) -> bool:
    return works_in_place(name)

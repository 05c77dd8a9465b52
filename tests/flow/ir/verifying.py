"""What has to hold of the operations of any file."""

from __future__ import annotations

from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import Break, Check, Continue, For, If, Raise, Return, Try, While, Yield
from torchmemlint.flow.ir.places import NO_TEMP, AttributePlace, ComputedKey, ItemPlace, Scope, SliceKey

from .printing import blocks, names_of, walk


def problems(unit: ops.Unit) -> list[str]:
    """What is wrong in a file's operations."""
    found: list[str] = []
    for function in unit.functions:
        checker = _Checker(function)
        checker.block(function.body, set())
        found += checker.found
        found += _names(function)
        for inner in function.nested:
            if inner.parent is not function:
                found.append(f"{inner} is nested in {function}, its parent is {inner.parent}")
    defined = [op.function for f in unit.functions for op in walk(f.body) if isinstance(op, ops.Define)]
    if {*map(id, defined)} != {*map(id, unit.functions[1:])} or len(defined) != len(unit.functions) - 1:
        found.append("functions that are not defined, or are twice")
    classes = [op.cls for f in unit.functions for op in walk(f.body) if isinstance(op, ops.DefineClass)]
    if {*map(id, classes)} != {*map(id, unit.classes)} or len(classes) != len(unit.classes):
        found.append("classes that are not defined, or are twice")
    return found


def _names(function: ops.Function) -> list[str]:
    """Cells have to be where the names say; a text is one name but in a class that declares it otherwise."""
    found: list[str] = []
    for op in walk(function.body):
        for name in names_of(op):
            owner: ops.Function | None = function
            for _ in range(name.hops):
                owner = owner.parent if owner is not None else None
            if name.scope is Scope.CELL:
                if owner is None or owner.parent is None or name.text not in owner.shared & owner.bound:
                    found.append(f"{function} {name.text}: no cell in {owner}")
            elif name.hops:
                found.append(f"{function} {name.text}: hops")
            elif name.scope is Scope.LOCAL and name.text not in function.bound:
                found.append(f"{function} {name.text}: local, not bound")
            elif name.scope is Scope.LOCAL and name.text in function.shared:
                found.append(f"{function} {name.text}: local, shared")
    return found


def read(op: ops.Op) -> list[int]:
    """The temporaries that an operation reads before its blocks run."""
    slots = ("src", "base", "callee", "source", "box", "context")
    temps: list[int] = [getattr(op, slot) for slot in slots if hasattr(op, slot)]
    if isinstance(op, (If, Check)):
        temps.append(op.test)
    temps += getattr(op, "operands", ())
    temps += getattr(op, "contexts", ())
    temps += [argument.temp for argument in getattr(op, "arguments", ())]
    for entry in getattr(op, "entries", ()):
        temps += [entry.temp, *_of_key(entry.key)]
    temps += _of_key(getattr(op, "key", None))
    place = getattr(op, "place", None)
    if isinstance(place, (AttributePlace, ItemPlace)):
        temps.append(place.base)
        temps += _of_key(getattr(place, "key", None))
    if isinstance(op, ops.Define):
        temps += [temp for _, temp in op.defaults]
    if isinstance(op, ops.DefineClass):
        temps += [temp for _, temp in op.members]
    if isinstance(op, (Return, Yield, Raise)):
        temps = [temp for temp in temps if temp != NO_TEMP]
    return temps


def _of_key(key: object) -> list[int]:
    if isinstance(key, ComputedKey):
        return [key.temp]
    return list(key.parts) if isinstance(key, SliceKey) else []


def written(op: ops.Op) -> list[int]:
    if isinstance(op, ops.Unpack):
        return list(op.targets)
    return [op.dst] if hasattr(op, "dst") else []


class _Checker:
    """Follows which temporaries are written on all ways to an operation."""

    def __init__(self, function: ops.Function) -> None:
        self.function = function
        self.found: list[str] = []
        self.once: set[int] = set()

    def complain(self, op: ops.Op, text: str) -> None:
        self.found.append(f"{self.function} {type(op).__name__} {op.span}: {text}")

    def block(self, block: list[ops.Op], known: set[int]) -> set[int] | None:
        """What is written at the end of a block; None if its end is not reached."""
        ends = False
        for op in block:
            if op.owner is not self.function:
                self.complain(op, f"belongs to {op.owner}")
            for temp in read(op):
                if temp not in known:
                    self.complain(op, f"reads t{temp}")
            self.inner(op, known)
            for temp in written(op):
                if not 0 <= temp < self.function.temps:
                    self.complain(op, f"writes t{temp} of {self.function.temps}")
                if temp in self.once and not isinstance(op, ops.Move):
                    self.complain(op, f"writes t{temp} again")
                self.once.add(temp)
                known.add(temp)
            ends = ends or isinstance(op, (Return, Raise, Break, Continue))
        return None if ends else known

    def inner(self, op: ops.Op, known: set[int]) -> None:
        """The blocks of an operation; what both branches write is written behind it."""
        if isinstance(op, If):
            ends = [self.block(op.then, {*known}), self.block(op.orelse, {*known})]
            reached = [end for end in ends if end is not None]
            if reached:
                known |= set.intersection(*reached)
        elif isinstance(op, While):
            head = self.block(op.head, {*known})
            assert head is not None
            if op.test not in head:
                self.complain(op, f"tests t{op.test}")
            self.block(op.body, {*head})
            self.block(op.orelse, {*head})
        elif isinstance(op, For):
            self.block(op.body, {*known, op.item})
            self.block(op.orelse, {*known})
        elif isinstance(op, Try):
            body = self.block(op.body, {*known})
            self.block(op.orelse, {*known} if body is None else body)
            for handler in op.handlers:
                self.block(handler.body, {*known, handler.caught})
            self.block(op.final, {*known})
        else:
            for inner in blocks(op):
                self.block(inner, {*known})

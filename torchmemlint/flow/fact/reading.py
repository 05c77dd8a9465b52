"""Readings: what makes and takes the temporaries and names of a function, without regard to the order."""

from __future__ import annotations

from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import Return
from torchmemlint.flow.ir.defuse import DefUse
from torchmemlint.flow.ir.places import NO_TEMP, Name, Spread, Temp

Building = ops.Call | ops.CallMethod
GROWING = frozenset({"append", "extend", "insert", "add_module", "register_module"})


class Reading(DefUse):
    """A function, read for what its names and temporaries hold."""

    def __init__(self, function: ops.Function) -> None:
        super().__init__(function)
        self.stored: dict[str, list[Temp]] = {}  # what attributes of the object itself are set to
        self.collected: set[Temp] = set()  # lists that comprehensions fill
        self.grown: set[str] = set()  # names of what is added to after it was made
        self.growing: set[str] = set()  # likewise, the attributes of the object itself
        self.calls: list[Building] = []
        self.returned: list[Temp] = []
        for op in operations(function.body):
            self._read(op)

    def _read(self, op: ops.Op) -> None:
        match op:
            case ops.SetAttribute() if self.is_self(op.base):
                self.stored.setdefault(op.name, []).append(op.src)
            case ops.Collect():
                self.collected.add(op.box)
            case ops.Operate(place=Name(text=text)):
                self.grown.add(text)
            case ops.Call() | ops.CallMethod():
                self._read_call(op)
            case Return() if op.src != NO_TEMP:
                self.returned.append(op.src)

    def _read_call(self, op: Building) -> None:
        self.calls.append(op)
        if isinstance(op, ops.CallMethod) and op.name in GROWING:
            base = self.made.get(op.base)
            if isinstance(base, ops.Load):
                self.grown.add(base.name.text)
            if own := self.own_path(op.base):
                self.growing.add(own)
            if self.is_self(op.base) and op.name in ("add_module", "register_module") and len(op.arguments) == 2:
                name = self.made.get(op.arguments[0].temp)
                if isinstance(name, ops.Constant) and isinstance(name.value, str):
                    self.stored.setdefault(name.value, []).append(op.arguments[1].temp)

    def flag(self, op: Building, name: str, position: int) -> tuple[bool, bool | None]:
        """Return whether a flag is given to a call, by name or position, and what it is then; None: not known."""
        if any(argument.spread in (Spread.STAR, Spread.STARS) for argument in op.arguments):
            return True, None
        for number, argument in enumerate(op.arguments):
            if argument.name == name or (argument.spread is Spread.PLAIN and number == position):
                value = self.made.get(argument.temp)
                return True, bool(value.value) if isinstance(value, ops.Constant) else None
        return False, False

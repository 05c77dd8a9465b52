"""Readings: what makes and takes the temporaries and names of a function, without regard to the order."""

from __future__ import annotations

from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import For, Return
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import (
    Bind,
    Call,
    CallMethod,
    Class,
    Collect,
    Constant,
    Define,
    Function,
    Import,
    Load,
    Move,
    Op,
    Operate,
    SetAttribute,
)
from torchmemlint.flow.ir.places import NO_TEMP, Argument, Name, Scope, Spread, Temp

Building = Call | CallMethod
GROWING = frozenset({"append", "extend", "insert", "add_module", "register_module"})


class Reading:
    """A function, read for what its names and temporaries hold."""

    def __init__(self, function: Function) -> None:
        self.function = function
        flow = definitions(function)
        self.made: dict[Temp, Op] = flow.made
        self.taken = flow.taken
        self.moved: dict[Temp, list[Temp]] = {}  # of branches that write the same temporary
        self.bound: dict[str, list[Temp]] = {}  # what names are bound to
        self.loads: dict[str, list[Load]] = {}
        self.stored: dict[str, list[Temp]] = {}  # what attributes of the object itself are set to
        self.defined: dict[Function, tuple[tuple[str, Temp], ...]] = {}  # functions, with their parameters' defaults
        self.collected: set[Temp] = set()  # lists that comprehensions fill
        self.grown: set[str] = set()  # names of what is added to after it was made
        self.calls: list[Building] = []
        self.returned: list[Temp] = []
        self._name = flow.name
        for op in operations(function.body):
            self._read(op)

    def _read(self, op: Op) -> None:
        match op:
            case Move():
                self.moved.setdefault(op.dst, []).append(op.src)
            case Bind():
                self.bound.setdefault(op.name.text, []).append(op.src)
            case Load():
                self.loads.setdefault(op.name.text, []).append(op)
            case SetAttribute() if self.is_self(op.base):
                self.stored.setdefault(op.name, []).append(op.src)
            case Define():
                self.defined[op.function] = op.defaults
            case Collect():
                self.collected.add(op.box)
            case For():
                self.made[op.item] = op
            case Operate(place=Name(text=text)):
                self.grown.add(text)
                self.bound.setdefault(text, []).append(op.dst)
            case Call() | CallMethod():
                self._read_call(op)
            case Return() if op.src != NO_TEMP:
                self.returned.append(op.src)

    def _read_call(self, op: Building) -> None:
        self.calls.append(op)
        if isinstance(op, CallMethod) and op.name in GROWING:
            base = self.made.get(op.base)
            if isinstance(base, Load):
                self.grown.add(base.name.text)
            if self.is_self(op.base) and op.name in ("add_module", "register_module") and len(op.arguments) == 2:
                name = self.made.get(op.arguments[0].temp)
                if isinstance(name, Constant) and isinstance(name.value, str):
                    self.stored.setdefault(name.value, []).append(op.arguments[1].temp)

    @property
    def method(self) -> Function:
        """The method that it is, or that it stands in."""
        function = self.function
        while function.cls is None and function.parent is not None:
            function = function.parent
        return function

    @property
    def cls(self) -> Class | None:
        """The class that it belongs to."""
        return self.method.cls

    def is_self(self, temp: Temp) -> bool:
        """Does a temporary hold the object that a method belongs to?"""
        op, method = self.made.get(temp), self.method
        if method.cls is None or not isinstance(op, Load) or not method.parameters:
            return False
        return op.name.text == method.parameters[0].name and op.name.scope in (Scope.LOCAL, Scope.CELL)

    def name(self, temp: Temp) -> str:
        """Return the qualified name that a temporary is loaded from, also where the function imports it itself."""
        found = self._name(temp)
        if found:
            return found
        op = self.made.get(temp)
        match op:
            case Load(name=name) if name.scope is not Scope.GLOBAL and len(self.bound.get(name.text, ())) == 1:
                source = self.made.get(self.bound[name.text][0])
                return source.qualified if isinstance(source, Import) else ""
            case Load(name=name) if name.scope is Scope.BUILTIN:
                return name.text
        return ""

    def callee(self, op: Building) -> str:
        """Return the qualified name of what is called; "" where it is none."""
        if isinstance(op, Call):
            return self.name(op.callee)
        base = self.name(op.base)
        return f"{base}.{op.name}" if base else ""

    def argument(self, op: Building, name: str, position: int) -> Argument | None:
        """Return an argument of a call, by name or position; None where it is not seen to be given."""
        for number, argument in enumerate(op.arguments):
            if argument.name == name or (argument.spread is Spread.PLAIN and number == position):
                return argument
        return None

    def flag(self, op: Building, name: str, position: int) -> tuple[bool, bool | None]:
        """Return whether a flag is given to a call, and what it is then; None where that is not known."""
        if any(argument.spread in (Spread.STAR, Spread.STARS) for argument in op.arguments):
            return True, None
        given = self.argument(op, name, position)
        if given is None:
            return False, False
        value = self.made.get(given.temp)
        return True, bool(value.value) if isinstance(value, Constant) else None

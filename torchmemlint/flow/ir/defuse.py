"""Definitions and uses: which operations of a function make what a temporary holds, and which take it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import lru_cache
from typing import Any

from .blocks import layout_of, operations
from .control import For
from .ops import Bind, Call, CallMethod, Class, Define, Function, GetAttribute, Import, Load, Move, Op, Operate, Unpack
from .places import NO_TEMP, Argument, AttributePlace, ComputedKey, Entry, ItemPlace, Name, Scope, SliceKey, Temp

_MADE = frozenset({"dst", "item", "targets"})
_NO_OPERANDS = frozenset("Function Span str bool int object list[Op] frozenset[str] Name Class".split())


class DefUse:
    """What makes and takes the temporaries of a function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.made: dict[Temp, Op] = {}
        self.taken: dict[Temp, list[Op]] = {}
        self.moved: dict[Temp, list[Temp]] = {}  # by the branches that write the same temporary
        self.bound: dict[str, list[Temp]] = {}  # to names
        self.binds: dict[str, list[Bind]] = {}  # in order, without what changes a name in place
        self.defined: dict[Function, tuple[tuple[str, Temp], ...]] = {}  # with the defaults of their parameters
        self.loads: dict[str, list[Load]] = {}
        for op in operations(function.body):
            dst = getattr(op, "dst", None)
            if dst is not None:
                self.made[dst] = op
            match op:
                case Load():
                    self.loads.setdefault(op.name.text, []).append(op)
                case Bind():
                    self.bound.setdefault(op.name.text, []).append(op.src)
                    self.binds.setdefault(op.name.text, []).append(op)
                case Define():
                    self.defined[op.function] = op.defaults
                case Operate(place=Name(text=text)):
                    self.bound.setdefault(text, []).append(op.dst)
                case Move():
                    self.moved.setdefault(op.dst, []).append(op.src)
                case Unpack():
                    self.made |= dict.fromkeys(op.targets, op)
                case For():
                    self.made[op.item] = op
            for temp in dict.fromkeys(operands(op)):
                self.taken.setdefault(temp, []).append(op)

    def following(self, op: Op) -> list[Op]:
        """Return the operations that take what an operation makes."""
        return self.taken.get(getattr(op, "dst", NO_TEMP), [])

    @property
    def cls(self) -> Class | None:
        """The class that the function, or the one around it, is a method of."""
        return self.function.method.cls

    def is_self(self, temp: Temp) -> bool:
        """Does a temporary hold the object that a method belongs to?"""
        return self.own_path(temp) == ""

    def own_path(self, temp: Temp) -> str | None:
        """Return the dotted attribute of a method's own object that a temporary is loaded from.

        It is "" for the object itself, and None for what is no attribute of it.
        """
        owner, _, rest = self.path(temp).partition(".")
        bound = self.bound.get(owner, ())
        if len(bound) == 1 and isinstance(same := self.made.get(bound[0]), Load):
            owner = same.name.text  # another name for it
        return rest if owner and owner == self.function.method.receiver else None

    def last(self, load: Load) -> Bind | None:
        """Return what gave a variable the value that is read, as far as the order of the text tells."""
        order = layout_of(self.function).order
        return next((one for one in reversed(self.binds.get(load.name.text, ())) if order[one] < order[load]), None)

    def behind(self, *temps: Temp) -> Iterator[Op]:
        """Yield the operations that expressions are computed by, from outside inwards."""
        todo = list(temps)
        for temp in todo:
            op = self.made.get(temp)
            if op is not None:
                yield op
                todo += operands(op)

    def origins(self, *temps: Temp) -> Iterator[Op]:
        """Yield the operations behind expressions, also by way of variables: behind all that these are assigned."""
        todo, seen = list(temps), set[str]()
        for temp in todo:
            for op in self.behind(temp):
                yield op
                if isinstance(op, Load) and op.name.text not in seen:
                    seen.add(op.name.text)
                    todo += self.bound.get(op.name.text, ())

    def name(self, temp: Temp) -> str:
        """Return the dotted name that a temporary is loaded from, qualified by imports; "" for a local variable."""
        match self.made.get(temp):
            case Load(name=name) if name.scope is Scope.GLOBAL:
                return self.function.unit.imports.get(name.text, name.text)
            case Load(name=name) if name.scope is Scope.BUILTIN:
                return name.text
            case Load(name=name):
                sources = self.bound.get(name.text, [])
                made = self.made.get(sources[0]) if len(sources) == 1 else None
                return made.qualified if isinstance(made, Import) else ""
            case Import(qualified=qualified, relative=0):
                return qualified
            case GetAttribute(base=base, name=attribute) if whole := self.name(base):
                return f"{whole}.{attribute}"
        return ""

    def called(self, op: Op | None) -> str:
        """Return the qualified name of what a call is of; "" for what is neither imported nor global, or no call."""
        match op:
            case Call(callee=callee):
                return self.name(callee)
            case CallMethod(base=base, name=name) if owner := self.name(base):
                return f"{owner}.{name}"
        return ""

    def path(self, temp: Temp) -> str:
        """Return the dotted path of names and attributes that a temporary is loaded from, as written."""
        match self.made.get(temp):
            case Load(name=name):
                return name.text
            case GetAttribute(base=base, name=attribute) if whole := self.path(base):
                return f"{whole}.{attribute}"
        return ""

    def written(self, temp: Temp) -> tuple[object, ...]:
        """Return an expression apart from where it stands: equal for two that are written alike."""
        op = self.made.get(temp)
        if op is None:
            return (temp,)
        own = (getattr(op, name, None) for name in ("text", "value", "operator", "qualified"))
        name = getattr(op, "name", "")
        return type(op), getattr(name, "text", name), *own, *map(self.written, operands(op))


@lru_cache(maxsize=256)
def definitions(function: Function) -> DefUse:
    """Return what makes and takes the temporaries of a function that is asked about again and again."""
    return DefUse(function)


def default_of(function: Function, name: str) -> tuple[Function, Temp] | None:
    """Return the default of a parameter, with the function that evaluates it: the one around."""
    parent = function.parent
    defaults = definitions(parent).defined.get(function, ()) if parent is not None else ()
    return next(((parent, temp) for text, temp in defaults if text == name and parent is not None), None)


def of_gradient(op: CallMethod) -> Temp | None:
    """Return `p` of `p.grad.zero_()` and `p.grad.data.zero_()`; None for a method of something else."""
    made = definitions(op.owner).made
    owner = made.get(op.base)
    if isinstance(owner, GetAttribute) and owner.name == "data":
        owner = made.get(owner.base)
    return owner.base if isinstance(owner, GetAttribute) and owner.name == "grad" else None


_taking: dict[type[Op], list[tuple[str, Callable[[Any], Iterable[Temp]]]]] = {}


def _fields(kind: type[Op]) -> list[tuple[str, Callable[[Any], Iterable[Temp]]]]:
    """Return the fields that may hold what operations of a kind take, and how to read them."""
    chosen = (f for f in fields(kind) if f.name not in _MADE and f.type not in _NO_OPERANDS)
    return [(f.name, _READERS.get(str(f.type), _in_parts)) for f in chosen]


def operands(op: Op) -> list[Temp]:
    """Return the temporaries that an operation takes, apart from those of the blocks that it holds."""
    kind = type(op)
    if kind not in _taking:
        _taking[kind] = _fields(kind)
    found: list[Temp] = []
    for name, read in _taking[kind]:
        found += read(getattr(op, name))
    return found


def _in_parts(value: object) -> Iterator[Temp]:
    for part in value if isinstance(value, tuple) else (value,):
        yield from _within(part)


_READERS: dict[str, Callable[[Any], Iterable[Temp]]] = {
    "Temp": lambda value: () if value == NO_TEMP else (value,),
    "tuple[Temp, ...]": lambda value: value,
    "tuple[tuple[str, Temp], ...]": lambda value: [temp for _, temp in value],
}


def _within(part: object) -> Iterator[Temp]:
    match part:
        case Argument(temp=temp) | ComputedKey(temp=temp):
            yield temp
        case Entry(temp=temp, key=key):
            yield temp
            yield from _within(key)
        case SliceKey(parts=parts):
            yield from (temp for temp in parts if temp != NO_TEMP)
        case AttributePlace(base=base):
            yield base
        case ItemPlace(base=base, key=key):
            yield base
            yield from _within(key)

"""What is carried along while a file is lowered, and the tables that say which function lowers which syntax."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Concatenate, ParamSpec, TypeVar

from .ops import Bind, Function, Op, Span, Unit
from .places import Argument, ComputedKey, Entry, Name, Spread, Temp
from .scopes import ClassScope, Frame, Scopes

Lowering = TypeVar("Lowering", bound=Callable[..., object])
Given = ParamSpec("Given")
Making = Callable[Concatenate[Function, Span, Temp, Given], Op]
Part = TypeVar("Part")


class Builder:
    """The function that is being filled, the block that is appended to, and what the whole file has shown so far."""

    __slots__ = tuple("aliases binds block class_scope frame function mentions names scopes temps unit".split())

    def __init__(self, unit: Unit, module: Function) -> None:
        self.unit = unit
        self.scopes = Scopes()
        self.aliases: dict[str, str] = {}  # what imports anywhere in the file call something, and its qualified name
        self.class_scope: ClassScope | None = None
        self._begin(Frame(module, None))

    def _begin(self, frame: Frame) -> None:
        self.scopes.frames.append(frame)
        self.unit.functions.append(frame.function)
        self._go_on(frame)

    def _go_on(self, frame: Frame) -> None:
        self.frame = frame
        self.function = frame.function
        self.names = frame.names
        self.binds = frame.binds
        self.mentions = frame.function.mentions
        self.block = frame.block
        self.temps = frame.temps
        self.class_scope = frame.class_scope

    def enter(self, function: Function) -> None:
        """Fill an inner function."""
        outer = self.frame
        outer.block = self.block
        outer.temps = self.temps
        outer.class_scope = self.class_scope
        self._begin(Frame(function, outer))

    def leave(self) -> None:
        """Go on with the function around."""
        self.function.temps = self.temps
        outer = self.frame.outer
        assert outer is not None
        self._go_on(outer)

    def temp(self) -> Temp:
        """A new temporary."""
        self.temps += 1
        return self.temps - 1

    def make(self, kind: Making[Given], place: Span, *given: Given.args, **named: Given.kwargs) -> Temp:
        """Append an operation that makes something; the answer is where that is. The most frequent do it themselves."""
        dst = self.temp()
        self.block.append(kind(self.function, place, dst, *given, **named))
        return dst

    def expression(self, node: ast.expr) -> Temp:
        """Lower an expression; the answer is where its value is."""
        return EXPRESSIONS[node.__class__](self, node)

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        """Lower statements into the current block."""
        for node in nodes:
            STATEMENTS[node.__class__](self, node)

    def into(self, block: list[Op], nodes: Sequence[ast.stmt]) -> None:
        """Lower statements into another block."""
        if nodes:
            outer = self.block
            self.block = block
            for node in nodes:
                STATEMENTS[node.__class__](self, node)
            self.block = outer

    def target(self, text: str, member: bool = True) -> Name:
        """The name that is bound under a text here: in a class body, its own, which makes it a member."""
        scope = self.class_scope
        if scope is None:
            name = self.names[text]
            self.binds.append(name)
            return name
        name = scope.bound(text)
        if text in scope.declared:
            self.frame.touched.append(name)
        else:
            self.binds.append(name)
            if member:
                scope.members[text] = None
        return name

    def bind(self, text: str, src: Temp, place: Span) -> None:
        """Bind a name."""
        self.block.append(Bind(self.function, place, self.target(text), src))

    def stores(self, attribute: str) -> None:
        """Note that an attribute of some object is assigned to: outside of constructors, it may change at any call."""
        if self.function.name not in _CONSTRUCTORS:
            self.unit.stored.add(attribute)

    @property
    def at_module_level(self) -> bool:
        """Are names that are bound here the module's?"""
        return self.frame.outer is None and self.class_scope is None


class Shared(dict[Temp, Part]):
    """Plain parts of operations by their temporary: they are equal everywhere, so they are not made for each."""

    def __init__(self, make: Callable[[Temp], Part]) -> None:
        self._make = make

    def __missing__(self, temp: Temp) -> Part:
        part = self._make(temp)
        if temp < _KEPT:
            self[temp] = part
        return part


_KEPT = 2000
_CONSTRUCTORS = frozenset({"__init__", "__post_init__", "__new__"})
given_plainly = Shared(lambda temp: Argument(Spread.PLAIN, "", temp))
plain_entry = Shared(lambda temp: Entry(Spread.PLAIN, None, temp))
computed_key = Shared(ComputedKey)

EXPRESSIONS: dict[type[ast.AST], Callable[[Builder, Any], Temp]] = {}
STATEMENTS: dict[type[ast.AST], Callable[[Builder, Any], None]] = {}


def expression(*kinds: str) -> Callable[[Lowering], Lowering]:
    """This function lowers these kinds of expressions; kinds that this Python lacks do not matter."""
    return _entry(EXPRESSIONS, kinds)


def statement(*kinds: str) -> Callable[[Lowering], Lowering]:
    """This function lowers these kinds of statements."""
    return _entry(STATEMENTS, kinds)


def _entry(table: dict[type[ast.AST], Any], kinds: tuple[str, ...]) -> Callable[[Lowering], Lowering]:
    def enter(function: Lowering) -> Lowering:
        for kind in kinds:
            if hasattr(ast, kind):
                table[getattr(ast, kind)] = function
        return function

    return enter


where: Callable[[dict[str, Any]], Span] = itemgetter("lineno", "col_offset", "end_lineno", "end_col_offset")


def span(node: ast.AST) -> Span:
    """Where syntax stands. What is lowered most often asks the node's attributes itself: that is faster."""
    return where(node.__dict__)

"""What is carried along while a file is lowered, and the tables that say which function lowers which syntax."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from .ops import Bind, Function, Op, Span, Unit
from .places import Argument, ComputedKey, Entry, Name, Spread, Temp
from .scopes import ClassScope, Frame, Scopes

Lowering = TypeVar("Lowering", bound=Callable[..., object])


class Builder:
    """The function that is being filled, the block that is appended to, and what the whole file has shown so far."""

    __slots__ = (
        "aliases",
        "binds",
        "block",
        "class_scope",
        "frame",
        "function",
        "mentions",
        "names",
        "scopes",
        "temps",
        "unit",
    )

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


class Given(dict[Temp, Argument]):
    """Plain arguments by their temporary: they are equal in all calls, so they are not made for each."""

    def __missing__(self, temp: Temp) -> Argument:
        argument = Argument(Spread.PLAIN, "", temp)
        if temp < _KEPT:
            self[temp] = argument
        return argument


class Entries(dict[Temp, Entry]):
    """Plain items by their temporary."""

    def __missing__(self, temp: Temp) -> Entry:
        entry = Entry(Spread.PLAIN, None, temp)
        if temp < _KEPT:
            self[temp] = entry
        return entry


class Computed(dict[Temp, ComputedKey]):
    """Computed keys by their temporary."""

    def __missing__(self, temp: Temp) -> ComputedKey:
        key = ComputedKey(temp)
        if temp < _KEPT:
            self[temp] = key
        return key


_KEPT = 2000
_CONSTRUCTORS = frozenset({"__init__", "__post_init__", "__new__"})
given_plainly = Given()
plain_entry = Entries()
computed_key = Computed()

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

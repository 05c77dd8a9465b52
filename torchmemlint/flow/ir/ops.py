"""The vocabulary of the intermediate representation.

A body is a list of operations. Control flow stays structured: an operation that branches or loops holds the blocks that
it runs. Operands are temporaries, numbered from 0 within their function; each is written before it is read.

Everything that consumes an iterable item by item is a `For`: a loop, a comprehension, a generator expression (which is
a generator function). What `list(x)` or `sum(x)` consume is not visible in syntax; their models say it.

An operation is also the identity of the place it stands at: two are equal only if they are the same object.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from torchmemlint.flow.ir.places import Argument, Entry, Key, Name, Place, Temp
from torchmemlint.immutable import immutable

Span = tuple[int, int, int, int]  # line, column, end line, end column; columns in UTF-8 bytes, as in `ast`
FIRST = ".0"  # what Python calls the parameter of a generator expression: its first iterable


@dataclass(slots=True, eq=False, repr=False)
class Op:
    """An operation. `owner` is the function whose body it is part of; `span` where its syntax stands."""

    owner: Function
    span: Span

    def contains(self, other: Op) -> bool:
        """Does another operation of the same function stand in it?"""
        return self.owner is other.owner and self.span[:2] <= other.span[:2] and other.span[2:] <= self.span[2:]

    def __repr__(self) -> str:
        return f"{type(self).__name__}:{self.span[0]}"


# Values and names.


@dataclass(slots=True, eq=False, repr=False)
class Constant(Op):
    """`dst` becomes a literal (numbers, texts, bytes, booleans, None, Ellipsis)."""

    dst: Temp
    value: object


@dataclass(slots=True, eq=False, repr=False)
class Load(Op):
    """`dst` becomes what `name` is bound to."""

    dst: Temp
    name: Name


@dataclass(slots=True, eq=False, repr=False)
class Bind(Op):
    """`name` is bound to `src`."""

    name: Name
    src: Temp


@dataclass(slots=True, eq=False, repr=False)
class Unbind(Op):
    """`del name`, and what `except E as name` does at its end."""

    name: Name


@dataclass(slots=True, eq=False, repr=False)
class Move(Op):
    """`dst` becomes `src`: the branches of a conditional expression write the same temporary.

    `lacks`: what a test has shown that it is not, as `Narrowing.kind` says it.
    """

    dst: Temp
    src: Temp
    lacks: tuple[str, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Import(Op):
    """`dst` becomes what stands under a qualified name: a module or something in it.

    `relative` counts the leading dots of `from .x import y`.
    """

    dst: Temp
    qualified: str
    relative: int


# Places.


@dataclass(slots=True, eq=False, repr=False)
class GetAttribute(Op):
    """`dst = base.name`."""

    dst: Temp
    base: Temp
    name: str


@dataclass(slots=True, eq=False, repr=False)
class SetAttribute(Op):
    """`base.name = src`. Where this may change a tensor (`x.requires_grad = True`), `place` is where base stands."""

    base: Temp
    name: str
    src: Temp
    place: Name | None = None


@dataclass(slots=True, eq=False, repr=False)
class GetItem(Op):
    """`dst = base[key]`."""

    dst: Temp
    base: Temp
    key: Key


@dataclass(slots=True, eq=False, repr=False)
class SetItem(Op):
    """`base[key] = src`. Where base is a tensor, it changes in place: `place` is where base was loaded from."""

    base: Temp
    key: Key
    src: Temp
    place: Place | None


@dataclass(slots=True, eq=False, repr=False)
class Remove(Op):
    """`del base[key]`, `del base.name` (key is then a ConstantKey of the attribute's name, and `attribute` is set)."""

    base: Temp
    key: Key
    attribute: bool


# Computing.


@dataclass(slots=True, eq=False, repr=False)
class Operate(Op):
    """`dst = a + b`, `-a`, `a @ b`.

    `place` is set for `a += b`: the operand a was loaded from it, and the result is bound to it by this very operation.
    """

    dst: Temp
    operator: str  # as written: "+", "@", "~"; unary minus is "-" with one operand
    operands: tuple[Temp, ...]
    place: Place | None


@dataclass(slots=True, eq=False, repr=False)
class Compare(Op):
    """`dst = a < b`, `a is None`, `a in b`, `not a`: a truth value. Chains have more than two operands."""

    dst: Temp
    operator: str  # "<", "is", "is not", "in", "not in", "not", "=="; of a chain the first that is no identity test
    operands: tuple[Temp, ...]


@dataclass(slots=True, eq=False, repr=False)
class Choose(Op):
    """`dst = a and b`, `a or b`: one of the operands."""

    dst: Temp
    operator: str  # "and", "or"
    operands: tuple[Temp, ...]


GAP = "\0"


@dataclass(slots=True, eq=False, repr=False)
class Format(Op):
    """`dst` becomes a text made from the operands (an f-string): they are read as values.

    `template` is the text with a GAP for each operand; it has more where one is formatted in a way of its own.
    """

    dst: Temp
    operands: tuple[Temp, ...]
    template: str = ""


@dataclass(slots=True, eq=False, repr=False)
class Call(Op):
    """`dst = callee(arguments)`. `dropped`: it is a statement by itself."""

    dst: Temp
    callee: Temp
    arguments: tuple[Argument, ...]
    dropped: bool = False


@dataclass(slots=True, eq=False, repr=False)
class CallMethod(Op):
    """`dst = base.name(arguments)`.

    `place` is where base was loaded from: a method that works in place (`add_`, `detach_`) changes what stands there.
    `dropped`: it is a statement by itself.
    """

    dst: Temp
    base: Temp
    name: str
    arguments: tuple[Argument, ...]
    place: Place | None
    dropped: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Super(Op):
    """`dst = super()`: the receiver, seen from the class above the one that the function stands in."""

    dst: Temp


@dataclass(slots=True, eq=False, repr=False)
class Make(Op):
    """`dst` becomes a container that is written out, or an empty one that a comprehension fills."""

    dst: Temp
    kind: str  # "list", "tuple", "set", "dict"
    entries: tuple[Entry, ...]


@dataclass(slots=True, eq=False, repr=False)
class Collect(Op):
    """A comprehension puts `src` into `box`, under `key` in a dict."""

    box: Temp
    key: Key | None
    src: Temp


@dataclass(slots=True, eq=False, repr=False)
class Unpack(Op):
    """`a, *b, c = src`. `star` is the index of the starred target, or -1."""

    targets: tuple[Temp, ...]
    star: int
    src: Temp


@dataclass(slots=True, eq=False, repr=False)
class Define(Op):
    """`dst` becomes a function (a lambda, too); its defaults have been evaluated into temporaries."""

    dst: Temp
    function: Function
    defaults: tuple[tuple[str, Temp], ...]  # by parameter


@dataclass(slots=True, eq=False, repr=False)
class DefineClass(Op):
    """`dst` becomes a class; the operations of its body have run and left `members`."""

    dst: Temp
    cls: Class
    members: tuple[tuple[str, Temp], ...]  # class attributes and decorated methods


# Functions, classes, files.


class Passing(enum.Enum):
    """How a parameter is given."""

    POSITIONAL = "positional"  # by position or by name
    ONLY_NAMED = "only named"
    STAR = "*"
    STARS = "**"


@dataclass(slots=True, eq=False, repr=False)
class Parameter:
    """A formal parameter. `annotation` is its dotted qualified text ("torch.nn.Module"), or empty."""

    name: str
    passing: Passing
    annotation: str
    has_default: bool


@immutable()
class Decorator:
    """A decorator by its qualified dotted name, with the values of its constant arguments if it is called."""

    name: str
    called: bool
    arguments: tuple[object, ...]  # those given by name last; an argument that is no constant is Ellipsis
    span: Span
    applied: bool  # is its call written out after the definition? Not for those that are known to change nothing


@dataclass(slots=True, eq=False, repr=False)
class Function:
    """A function, method, lambda, or (with parent None) the body of the module."""

    name: str  # "<module>", "<lambda>"
    span: Span  # of the whole definition
    unit: Unit
    parent: Function | None
    cls: Class | None  # the class whose body it stands in
    parameters: list[Parameter] = field(default_factory=list)
    decorators: tuple[Decorator, ...] = ()
    body: list[Op] = field(default_factory=list)
    temps: int = 0
    generator: bool = False
    coroutine: bool = False
    handles: bool = False  # has it an `except` of more than the end of an iterator?
    bound: set[str] = field(default_factory=set)  # names that it binds: parameters, too
    shared: set[str] = field(default_factory=set)  # those that nested functions use: scope CELL
    mentions: set[str] = field(default_factory=set)  # names, attributes, methods and keywords in it, nested ones too
    tested: frozenset[str] = frozenset()  # parameters that a branch, loop or context depends on directly
    around: frozenset[str] = frozenset()  # variables of the function around it on which they do
    nested: list[Function] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<{self.name}:{self.span[0]}>"

    @property
    def receiver(self) -> str | None:
        """The parameter of a method that is given the object which it belongs to."""
        return self.parameters[0].name if self.cls is not None and self.parameters else None

    @property
    def is_static(self) -> bool:
        """Is it a method that is given neither the object nor the class it belongs to?"""
        return self.is_decorated("staticmethod")

    def is_decorated(self, *names: str) -> bool:
        """Is one of its decorators called so?"""
        return any(decorator.name.rpartition(".")[2] in names for decorator in self.decorators)

    @property
    def definition(self) -> Function:
        """The function that a generator expression is a part of; of others, itself."""
        function = self
        while function.name == "<genexpr>" and function.parent is not None:
            function = function.parent
        return function

    @property
    def method(self) -> Function:
        """The method that it is, or that it stands in; else the body of the module."""
        function = self
        while function.cls is None and function.parent is not None:
            function = function.parent
        return function


@dataclass(slots=True, eq=False, repr=False)
class Class:
    """A class. `bases` are dotted names, qualified by the imports: "torch.nn.Module", "Base" of the same file."""

    name: str
    span: Span
    unit: Unit
    parent: Function  # the function, or module, whose body defines it
    outer: Class | None
    bases: tuple[str, ...]
    decorators: tuple[Decorator, ...] = ()
    methods: dict[str, Function] = field(default_factory=dict)  # the last of each name; setters and deleters apart
    setters: dict[str, Function] = field(default_factory=dict)
    members: frozenset[str] = frozenset()  # what the body binds besides methods
    fields: list[tuple[str, bool]] = field(default_factory=list)  # annotated names in order; has it a value?
    annotations: dict[str, str] = field(default_factory=dict)  # their dotted annotations

    def __repr__(self) -> str:
        return f"<{self.name}:{self.span[0]}>"


@dataclass(slots=True, eq=False, repr=False)
class Unit:
    """A file."""

    name: str  # dotted module name, as far as it is known
    module: Function = field(init=False)  # set by the lowering
    functions: list[Function] = field(default_factory=list)  # all of them, the module's body first
    classes: list[Class] = field(default_factory=list)
    stored: set[str] = field(default_factory=set)  # attributes that are assigned to outside of constructors
    imports: dict[str, str] = field(default_factory=dict)  # module-level name -> qualified; dots of relative ones stay
    exported: frozenset[str] | None = None  # by `__all__`, as far as it is written out
    stars: list[str] = field(default_factory=list)  # modules of `from m import *`; dots of relative ones stay
    once: dict[str, Function | Class] = field(default_factory=dict)  # module-level names bound once, by def or class

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

Span = tuple[int, int, int, int]  # line, column, end line, end column; columns in UTF-8 bytes, as in `ast`
Temp = int
NO_TEMP: Temp = -1  # an operand that is not there
FIRST = ".0"  # what Python calls the parameter of a generator expression: its first iterable


class Scope(enum.Enum):
    """Where a name of a function lives."""

    LOCAL = "local"  # in the call
    CELL = "cell"  # in a call that nested functions outlive or share: its frame is an object
    GLOBAL = "global"  # in the module
    BUILTIN = "builtin"  # nowhere in the file


@dataclass(slots=True, eq=False, repr=False)
class Name:
    """A name with its scope: resolved once the whole file is lowered, so names are shared by the operations."""

    text: str
    scope: Scope = Scope.LOCAL
    hops: int = 0  # CELL: how many functions further out its frame belongs


# Places: what an operation in place writes its result back to.


@dataclass(slots=True, eq=False, repr=False)
class AttributePlace:
    """`base.name`."""

    base: Temp
    name: str


@dataclass(slots=True, eq=False, repr=False)
class ItemPlace:
    """`base[key]`."""

    base: Temp
    key: Key


Place = Name | AttributePlace | ItemPlace


# Keys of items.


@dataclass(slots=True, frozen=True)
class ConstantKey:
    """`x[0]`, `x["loss"]`, `x[-1]`."""

    value: int | str | bool | None


@dataclass(slots=True, frozen=True)
class ComputedKey:
    """`x[i]`."""

    temp: Temp


@dataclass(slots=True, frozen=True)
class SliceKey:
    """`x[a:b]`, `x[:, 0]`, `x[..., 1]`: a part, perhaps a view. `parts` are the temporaries of the indices.

    `start`: how many items from the front are left out, as far as that is written out. `single`: it is just `a:b`,
    which a list has, too. `layout`: for each index `:`, `+` (None, a new dimension), `.` (an ellipsis), `*` (starred),
    `#` (another).
    """

    parts: tuple[Temp, ...] = ()
    start: int = 0
    single: bool = False
    layout: str = field(default="", compare=False)

    @property
    def dimensions(self) -> int:
        """How many dimensions are written out that there must be."""
        return sum(sign in ":#" for sign in self.layout)


SOME_PART = SliceKey((NO_TEMP,))  # of which no more is known


Key = ConstantKey | ComputedKey | SliceKey


class Spread(enum.Enum):
    """How an argument or item is given."""

    PLAIN = ""
    NAMED = "="
    STAR = "*"
    STARS = "**"


@dataclass(slots=True, frozen=True)
class Argument:
    """One actual argument."""

    spread: Spread
    name: str  # of NAMED, else empty
    temp: Temp


@dataclass(slots=True, frozen=True)
class Entry:
    """One item of a list, tuple, set or dict that is written out. `key` is None but in dicts."""

    spread: Spread  # PLAIN, STAR (`*x`) or STARS (`**x`)
    key: Key | None
    temp: Temp


@dataclass(slots=True, eq=False, repr=False)
class Op:
    """An operation. `owner` is the function whose body it is part of; `span` where its syntax stands."""

    owner: Function
    span: Span

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
    """`dst` becomes `src`: the branches of a conditional expression write the same temporary."""

    dst: Temp
    src: Temp


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
    """`base.name = src`."""

    base: Temp
    name: str
    src: Temp


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


@dataclass(slots=True, eq=False, repr=False)
class Format(Op):
    """`dst` becomes a text made from the operands (an f-string): they are read as values."""

    dst: Temp
    operands: tuple[Temp, ...]


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


# Control flow.


@dataclass(slots=True, frozen=True)
class Narrowing:
    """What a test says about a name, as `isinstance(x, torch.Tensor)`, `x is None` or `hasattr(x, "item")` do.

    `key` is the attribute or constant key where what the name holds is tested, as in `self.state is None`. `kind` is
    "tensor", "module" or "none"; `holds` is whether the first branch is the one where it is so. A test may tell less:
    `if x:` says nothing of x in its second branch, `x is None or y` nothing in its first.
    """

    name: Name
    key: str | int | None
    kind: str
    holds: bool
    in_then: bool = True  # is it known in the first branch?
    in_orelse: bool = True  # is the opposite known in the second?


@dataclass(slots=True, eq=False, repr=False)
class If(Op):
    """One of two blocks. `narrowings` are what the test says in `then`, and its opposite in `orelse`.

    `often`: the test says that `then` is run once in a few times.
    """

    test: Temp
    then: list[Op]
    orelse: list[Op]
    narrowings: tuple[Narrowing, ...]
    often: bool = False


@dataclass(slots=True, eq=False, repr=False)
class For(Op):
    """The body for each item of `source`; its first operations bind `item` to the targets.

    `writes` are the texts of the local names that the body binds, nested blocks included: each gets a phi at the head.
    """

    source: Temp
    item: Temp
    body: list[Op]
    orelse: list[Op]
    writes: frozenset[str]
    comprehension: bool


@dataclass(slots=True, eq=False, repr=False)
class While(Op):
    """`head` computes `test` before each round."""

    head: list[Op]
    test: Temp
    body: list[Op]
    orelse: list[Op]
    writes: frozenset[str]


@dataclass(slots=True, eq=False, repr=False)
class Handler:
    """One `except`. Its body begins with the operations that bind `name`."""

    body: list[Op]
    name: Name | None
    types: tuple[str, ...]  # dotted, as written
    caught: Temp  # the exception


@dataclass(slots=True, eq=False, repr=False)
class Try(Op):
    """`try`, with `orelse` and `final` empty where they are not written."""

    body: list[Op]
    handlers: list[Handler]
    orelse: list[Op]
    final: list[Op]


@dataclass(slots=True, eq=False, repr=False)
class With(Op):
    """The body within contexts; its first operations are an `Enter` for each and the binding of what they give."""

    contexts: tuple[Temp, ...]
    body: list[Op]


@dataclass(slots=True, eq=False, repr=False)
class Enter(Op):
    """`dst` becomes what `as` binds."""

    dst: Temp
    context: Temp


@dataclass(slots=True, eq=False, repr=False)
class Return(Op):
    """`src` may be NO_TEMP."""

    src: Temp


@dataclass(slots=True, eq=False, repr=False)
class Yield(Op):
    """`src` may be NO_TEMP; `dst` is what is sent in. `many` is `yield from`."""

    dst: Temp
    src: Temp
    many: bool


@dataclass(slots=True, eq=False, repr=False)
class Await(Op):
    """`dst = await src`."""

    dst: Temp
    src: Temp


@dataclass(slots=True, eq=False, repr=False)
class Break(Op):
    """Leaves the loop."""


@dataclass(slots=True, eq=False, repr=False)
class Continue(Op):
    """Goes to the loop's head."""


@dataclass(slots=True, eq=False, repr=False)
class Raise(Op):
    """Leaves the function, or goes to a handler. `src` may be NO_TEMP."""

    src: Temp


@dataclass(slots=True, eq=False, repr=False)
class Check(Op):
    """`assert`: the test is read as a value. A program goes on only where it holds."""

    test: Temp
    narrowings: tuple[Narrowing, ...]


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


@dataclass(slots=True, frozen=True)
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
    handles: bool = False  # has it an `except`?
    bound: set[str] = field(default_factory=set)  # names that it binds: parameters, too
    shared: set[str] = field(default_factory=set)  # those that nested functions use: scope CELL
    mentions: set[str] = field(default_factory=set)  # names, attributes, methods and keywords in it, nested ones too
    tested: frozenset[str] = frozenset()  # parameters that a branch, loop or context depends on directly
    nested: list[Function] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<{self.name}:{self.span[0]}>"


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
    module: Function = None  # type: ignore[assignment]  # set by the lowering
    functions: list[Function] = field(default_factory=list)  # all of them, the module's body first
    classes: list[Class] = field(default_factory=list)
    stored: set[str] = field(default_factory=set)  # attributes that are assigned to outside of constructors
    imports: dict[str, str] = field(default_factory=dict)  # module-level name -> qualified; dots of relative ones stay
    exported: frozenset[str] | None = None  # by `__all__`, as far as it is written out
    stars: list[str] = field(default_factory=list)  # modules of `from m import *`; dots of relative ones stay
    once: dict[str, Function | Class] = field(default_factory=dict)  # module-level names bound once, by def or class

"""References: what a value may point to. Sources: where its graph comes from.

A reference stands for an object by where it was made (a site and the calls that led there), for an input that is not
known yet (symbolic: a parameter, what lies behind one, the result of a call), or for code. A source stands for the
origin of an autograd graph; every symbolic reference is one, too ("has a graph if the input has one").

References are interned: two are equal only if they are the same object, and hashing costs nothing. `forget` empties the
table between projects.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.ir.ops import Class, Function, Op

PATH_LIMIT = 4  # attribute and key steps behind a symbol
NO_PATH = 1_000  # of what no path begins with
CONTEXT_LIMIT = 4  # innermost calls that tell apart what one site made, beside the outermost

Site = Op | Function | Class  # where something was made or happens; compared by identity
Context = tuple[Site, ...]  # the calls that led there, innermost first

R = TypeVar("R", bound="Ref")
_NONE: frozenset[Any] = frozenset()
_table: dict[tuple[Any, ...], Any] = {}
_objects: dict[tuple[Any, ...], Any] = {}
_forgotten = 0


def forget() -> int:
    """Empty the table of references: none made before may be used afterwards. Return how often that was done."""
    global _forgotten
    _table.clear()
    _objects.clear()
    extended.cache_clear()
    _forgotten += 1
    return _forgotten


def forgotten() -> int:
    """Return how often the table was emptied."""
    return _forgotten


def made() -> int:
    """Return how many references there are."""
    return len(_table) + len(_objects)


@cache
def extended(context: Context, calls: Context) -> Context:
    """Return the context below more calls, without those in it already: the innermost ones, and the outermost."""
    for call in calls:
        if call not in context and (len(context) < CONTEXT_LIMIT or isinstance(call, Op)):  # else it is an entry
            context = (*context[:CONTEXT_LIMIT], call)
    return context


class Ref:
    """A reference, made by `of`, which gives the same object for the same fields."""

    __slots__: tuple[str, ...] = ("_alone", "serial")
    serial: int  # how many were made before: the order does not depend on addresses
    symbolic: ClassVar[bool] = False
    depth: int = NO_PATH  # attribute and key steps from where its path begins

    @classmethod
    def of(cls: type[R], *fields: Any) -> R:
        """Return the one reference of this class with these fields."""
        key = (cls, *fields)
        found = _table.get(key)
        if found is None:
            found = _table[key] = cls(*fields)
            found.serial = len(_table)
        return cast(R, found)

    @property
    def alone(self) -> frozenset[Any]:
        """The set of nothing but this reference: made once, for most sets are such."""
        try:
            return self._alone
        except AttributeError:
            self._alone: frozenset[Any] = frozenset((self,))
            return self._alone

    def __repr__(self) -> str:
        names = [
            name for kind in type(self).__mro__[:-2] for name in getattr(kind, "__slots__", ()) if name != "holders"
        ]
        fields = ", ".join(repr(getattr(self, name)) for name in names)
        return f"{type(self).__name__}({fields})"


# The tuple: the n-th kept argument of a partial or lazy iterator. The reference: an index that is not known.
Key = str | int | Special | tuple[str, int] | Ref


# Symbolic references.


class Input(Ref):
    """A parameter of a function, before anything is known of its argument. `name` OUTER is the enclosing frame."""

    __slots__ = ("function", "name")
    symbolic = True
    depth = 0

    def __init__(self, function: Function, name: str | Special) -> None:
        self.function, self.name = function, name


class Globals(Ref):
    """The namespace of a module; its names are behind it."""

    __slots__ = ("module",)
    symbolic = True
    depth = 0

    def __init__(self, module: str) -> None:
        self.module = module


class Result(Ref):
    """What a call gives whose callee is not known (yet), or what is read there, and of what."""

    __slots__ = ("context", "read", "site")
    symbolic = True
    depth = 0

    def __init__(self, site: Site, context: Context, read: Ref | None = None) -> None:
        self.site, self.context, self.read = site, context, read


class Behind(Ref):
    """What a symbolic reference holds under a key."""

    __slots__ = ("base", "depth", "key")
    symbolic = True

    def __init__(self, base: Ref, key: Key) -> None:
        self.base, self.key = base, key
        self.depth = base.depth + 1


class Object(Ref):
    """An object by where it was made. `about` is its class, function or qualified name.

    `older` objects are all those that the site made before the newest one (recency).
    """

    __slots__ = ("about", "context", "holders", "kind", "older", "site")
    depth = 0

    @classmethod
    def of(cls, kind: Kind, site: Site, context: Context, about: Any = None, older: bool = False) -> Object:
        """Return the one object of this kind, site and context."""
        key = (kind, site, context, about, older)
        found = _objects.get(key)
        if found is None:
            found = _objects[key] = cls(*key)
            _table[key] = found
            found.serial = len(_table)
        return found

    def __init__(self, kind: Kind, site: Site, context: Context, about: Any, older: bool) -> None:
        self.kind, self.site, self.context, self.about, self.older = kind, site, context, about, older
        self.holders: Set[Ref] = _NONE  # all that has ever held it, in any state

    def held_by(self, holder: Ref) -> None:
        """Note that something holds it."""
        if self.holders is _NONE:
            self.holders = {holder}
        else:
            cast("set[Ref]", self.holders).add(holder)


class Code(Ref):
    """A function with the frame that it was defined in."""

    __slots__ = ("frame", "function")
    depth = 0

    def __init__(self, function: Function, frame: Ref) -> None:
        self.function: Function = function
        self.frame: Ref = frame


class ClassRef(Ref):
    """A class of the project."""

    __slots__ = ("cls", "frame")
    depth = 0

    def __init__(self, cls: Class, frame: Ref) -> None:
        self.cls, self.frame = cls, frame


class Bound(Ref):
    """A method of the project with its receiver."""

    __slots__ = ("code", "receiver")

    def __init__(self, code: Ref, receiver: Ref) -> None:
        self.code: Ref = code
        self.receiver: Ref = receiver


class Method(Ref):
    """A method of an object that a model knows, before it is called."""

    __slots__ = ("name", "receiver")

    def __init__(self, receiver: Ref, name: str) -> None:
        self.receiver, self.name = receiver, name


class SuperRef(Ref):
    """`super()`: a receiver, seen from above a class."""

    __slots__ = ("cls", "receiver")

    def __init__(self, cls: Class, receiver: Ref) -> None:
        self.cls, self.receiver = cls, receiver


class External(Ref):
    """Something outside the project, by its qualified name."""

    __slots__ = ("qualified",)

    def __init__(self, qualified: str) -> None:
        self.qualified = qualified


class Choice(Ref):
    """What whoever runs the program may say: a number, a text, or what stands for one, unless they say otherwise."""

    __slots__ = ("default",)

    def __init__(self, default: int | str | Ref) -> None:
        self.default = default


class Counted(Ref):
    """How many CPUs a machine has, as a function of this name counts them."""

    __slots__ = ("name", "site")

    def __init__(self, name: str, site: Site) -> None:
        self.name, self.site = name, site


NUMBERS = (Choice, Counted)  # what another number is computed from says nothing of that


class Parameters(Ref):
    """The parameters of a module: what `parameters()` gives, and each of them."""

    __slots__ = ("module",)

    def __init__(self, module: Ref) -> None:
        self.module = module


# Sources of graphs.


class Begun(Ref):
    """What begins somewhere, told apart by the calls that led there as objects are."""

    __slots__ = ("context", "site")

    def __init__(self, site: Site, context: Context) -> None:
        self.site, self.context = site, context


class Graph(Begun):
    """A graph that begins here: a forward pass, or an operation on a leaf that requires gradients."""

    __slots__ = ()


class Derived(Begun):
    """An operation on inputs whose graph is not known, in a gradient mode that is not known: both are the caller's."""

    __slots__ = ()


class Passed(Derived):
    """What code of a library that was not seen made of graphs: it may have none."""

    __slots__ = ()


class Part(Ref):
    """What stands at a place of the sequence that a forward pass gave: it may be a number beside a tensor."""

    __slots__ = ("number", "whole")

    def __init__(self, whole: Graph, number: int) -> None:
        self.whole, self.number = whole, number


class Leaf(Begun):
    """A tensor that requires gradients and has no graph yet: a parameter, an input with requires_grad."""

    __slots__ = ()


class Loop(Begun):
    """A loop of the program."""

    __slots__ = ()


Place = tuple[Ref | None, Key]  # (holder, key); the holder of a local variable is None and its key the name


class Phi(Ref):
    """What a place held when an iteration of a loop began."""

    __slots__ = ("holder", "key", "loop")

    def __init__(self, loop: Loop, holder: Ref | None, key: Key) -> None:
        self.loop, self.holder, self.key = loop, holder, key


class Slot(Ref):
    """Went through this place: an attribute of an object, a global."""

    __slots__ = ("holder", "key")

    def __init__(self, holder: Ref, key: Key) -> None:
        self.holder, self.key = holder, key


def is_outside(reference: Ref) -> bool:
    """Does it exist before and after the call that is run: a symbol, or a function or class of a module?"""
    if type(reference) is Code or type(reference) is ClassRef:
        return type(reference.frame) is Globals
    return reference.symbolic


class Bare(Ref):
    """A tensor without a graph: made while gradients are off, or detached. It keeps nothing that it was made from.

    `copy`: are its elements those of what it was made from? `host`: was it brought to the host?
    """

    __slots__ = ("context", "copy", "host", "site")

    def __init__(self, site: Site, context: Context, copy: bool, host: bool) -> None:
        self.site, self.context, self.copy, self.host = site, context, copy, host


Source = Ref  # Graph, Part, Derived, Passed, Leaf, Bare, Phi, Slot, or symbolic


def with_graphs(sources: frozenset[Source]) -> frozenset[Source]:
    """Return the sources that may have a graph."""
    return frozenset(s for s in sources if type(s) is not Bare) if any(type(s) is Bare for s in sources) else sources


def first_key(reference: Ref) -> Key | None:
    """Return the first key of a path, next to the symbol that it begins with; None where there is no path."""
    keys = [part.key for part in path(reference)]
    return keys[-1] if keys else None


def path(reference: Ref | None) -> Iterator[Behind]:
    """Yield a part of something, and what it is a part of in turn, but for the symbol that its path begins with."""
    while type(reference) is Behind:
        yield reference
        reference = reference.base


def root(reference: Ref) -> Ref:
    """Return the symbol that a path begins with."""
    while type(reference) is Behind:
        reference = reference.base
    return reference


class Point(NamedTuple):
    """Where something happens: an operation, or an entry's function; and the calls that led there, innermost first."""

    site: Site
    context: Context = ()

    def chain(self) -> list[Op]:
        """Return the operations that led there, innermost first."""
        return [site for site in (self.site, *self.context) if isinstance(site, Op)]

    def below(self, calls: Context) -> Point:
        """Return the same point, seen from a caller."""
        return Point(self.site, extended(self.context, calls))

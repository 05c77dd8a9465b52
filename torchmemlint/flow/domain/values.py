"""What a place may hold: references, the sources of a graph, perhaps a constant, perhaps something unknown."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from torchmemlint.flow.domain.refs import Choice, Counted, Object, Parameters, Ref, Source
from torchmemlint.knowledge.services import ACCELERATORS

LIMIT = 4  # references of one value; more become `open`


class Missing:
    """The type of what stands for a constant that is not known."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


class Texts(Missing):
    """The type of what stands for one of a few texts."""

    def __init__(self, texts: frozenset[str]) -> None:
        super().__init__(" or ".join(sorted(texts)))
        self.texts = texts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Texts) and self.texts == other.texts

    def __hash__(self) -> int:
        return hash(self.texts)


class Pattern(Missing):
    """The type of what stands for a text of which a part is known: `*` where it is not."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self.pattern = pattern

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self.pattern == other.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)


NO_CONSTANT = Missing("no constant")
SOME = Missing("not None")  # a constant only in that it is not None
FEW = Missing("one of a few")  # numbers or texts, the same ones all along
WEAK = Missing("weak")  # of what is held by a weak reference only
SOLE = Missing("sole")  # of a value that is nothing but what its references stand for, or one tensor, on all paths
_SERIAL = attrgetter("serial")
NO_SOURCES: frozenset[Source] = frozenset()


class Value(NamedTuple):
    """All that a place may hold at one point.

    `graph` are the sources of the tensor's graph, if it is a tensor. `open`: it may be something else, too.
    """

    refs: frozenset[Ref] = frozenset()
    graph: frozenset[Source] = NO_SOURCES
    constant: Any = NO_CONSTANT
    open: bool = False

    def each(self) -> Iterable[Ref]:
        """Return the references in the order in which they came into being."""
        return self.refs if len(self.refs) < 2 else sorted(self.refs, key=_SERIAL)

    @property
    def known(self) -> bool:
        """Is it one constant?"""
        return not isinstance(self.constant, Missing)

    @property
    def is_short(self) -> bool:
        """Are some references missing, beyond the most that one value has?"""
        return self.open and len(self.refs) >= LIMIT


NOTHING = Value(constant=Missing("nothing"))  # no value: what a place holds that was never reached
PLAIN = Value()  # a number, a text, a tensor without a graph
UNKNOWN = Value(open=True)
NONE = Value(constant=None)
TRUE = Value(constant=True)
_CONSTANTS = (bool, int, float, str, type(None))


def constant(value: object) -> Value:
    """Return the value of a literal."""
    return Value(constant=value) if isinstance(value, _CONSTANTS) else PLAIN


def of(reference: Ref) -> Value:
    """Return the value that is just this reference."""
    return Value(reference.alone)


def symbol(reference: Ref) -> Value:
    """Return what a symbolic reference stands for: the object, and the graph that it may have."""
    return Value(reference.alone, reference.alone, SOLE)


def tensor(graph: Iterable[Source]) -> Value:
    """Return a tensor with a graph from these sources."""
    return Value(graph=frozenset(graph))


def one_tensor(graph: Iterable[Source]) -> Value:
    """Return what is surely a tensor, with a graph from these sources."""
    return Value(graph=frozenset(graph), constant=SOLE)


def _same_constant(a: Value, b: Value) -> Any:
    if a.constant is b.constant:
        return a.constant
    if type(a.constant) is type(b.constant) and a.constant == b.constant:
        return a.constant
    texts = texts_of(a) | texts_of(b)
    if len(texts) > 1 and texts_of(a) and texts_of(b):
        return Texts(texts) if len(texts) <= LIMIT else FEW
    is_few = FEW in (a.constant, b.constant) and all(v.known or is_one_of_few(v) for v in (a, b))
    return FEW if is_few else NO_CONSTANT


def is_one_of_few(value: Value) -> bool:
    """Is it one of a few numbers or texts, the same ones all along?"""
    return value.constant is FEW or isinstance(value.constant, Texts)


def texts_of(value: Value) -> frozenset[str]:
    """Return the texts of which a value is one; none if it may be something else."""
    if isinstance(value.constant, str):
        return frozenset((value.constant,))
    return value.constant.texts if isinstance(value.constant, Texts) else frozenset()


def beginnings(value: Value) -> frozenset[str]:
    """Return how the text begins that a value is: one of a few whole texts, or as much as is known of one."""
    known = value.constant.pattern.partition("*")[0] if isinstance(value.constant, Pattern) else ""
    return frozenset((known,)) if known else texts_of(value)


def joined_texts(parts: Sequence[Value]) -> Value:
    """Return the text that consists of some parts: one of a few, or one of which only some parts are known."""
    texts = [texts_of(part) for part in parts]
    if math.prod(map(len, texts)) in range(1, LIMIT + 1):
        found = frozenset(map("".join, itertools.product(*texts)))
        return Value(constant=Texts(found) if len(found) > 1 else next(iter(found)))
    pattern = "".join(map(_pattern, parts))
    return Value(constant=Pattern(pattern)) if pattern.strip("*") else PLAIN


def _pattern(part: Value) -> str:
    if isinstance(part.constant, Pattern):
        return part.constant.pattern
    return part.constant if isinstance(part.constant, str) and "*" not in part.constant else "*"


def limited(refs: frozenset[Ref]) -> tuple[frozenset[Ref], bool]:
    """Return at most LIMIT references, and whether some are missing. Objects that hold something are kept first.

    Whose parameters there are is never missing: an optimizer trains all that it is given.
    """
    if len(refs) <= LIMIT:
        return refs, False
    parameters = frozenset(r for r in refs if type(r) is Parameters)
    ranked = sorted(refs - parameters, key=lambda r: (type(r) is not Object, r.symbolic, r.serial))
    return parameters.union(ranked[:LIMIT]), len(ranked) > LIMIT


def join(a: Value, b: Value) -> Value:
    """Return what holds either of two values."""
    if a is b or b is NOTHING:
        return a
    if a is NOTHING:
        return b
    constant = _same_constant(a, b)
    is_in_it = constant is a.constant and b.refs <= a.refs and b.graph <= a.graph and a.open >= b.open
    if is_in_it and (a == b or not limited(a.refs)[1]):
        return a
    refs, opened = limited(a.refs | b.refs)
    return Value(refs, a.graph | b.graph, constant, a.open or b.open or opened)


def join_all(values: Iterable[Value]) -> Value:
    """Return what holds any of the values; NOTHING for none."""
    result = NOTHING
    for value in values:
        result = join(result, value)
    return result


def with_graph(value: Value, sources: Iterable[Source]) -> Value:
    """Return the value with more sources."""
    return Value(value.refs, value.graph.union(sources), value.constant, value.open)


def without_graph(value: Value) -> Value:
    """Return the value without any source."""
    return Value(value.refs, NO_SOURCES, value.constant, value.open) if value.graph else value


def chosen(value: Value) -> Value:
    """Return what somebody may choose: this, unless they say otherwise."""
    given = value.constant if value.known and not value.refs else next(iter(value.refs), None)
    if type(given) is Choice and len(value.refs) == 1:
        return value
    is_device = isinstance(given, str) and given.startswith((*ACCELERATORS, "cpu"))
    if len(value.refs) > 1 or not (is_device or type(given) in (int, Counted)):
        return UNKNOWN
    return Value(Choice.of(given).alone)

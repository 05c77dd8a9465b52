"""References, values and states to compute with, and strategies that draw them."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from torchmemlint.flow.domain.heap import ELEMENT, Heap, Mode, State
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Behind, External, Globals, Graph, Key, Leaf, Object, Ref, Source
from torchmemlint.flow.domain.values import NO_CONSTANT, SOME, Value
from torchmemlint.flow.ir.lower import lower
from torchmemlint.flow.ir.ops import Op

SITES: list[Op] = lower("\n".join(f"name_{n} = {n}" for n in range(12)), "example").module.body


def site(number: int) -> Op:
    """An operation to stand for a place in a program."""
    return SITES[number]


def box(number: int, kind: Kind = Kind.LIST) -> Object:
    """A container that is made at a place."""
    return Object.of(kind, site(number), ())


def graph(number: int) -> Graph:
    """A graph that begins at a place."""
    return Graph.of(site(number), ())


OUTSIDE = Globals.of("example")


def objects() -> list[Object]:
    return [box(number, kind) for number, kind in enumerate((Kind.LIST, Kind.DICT, Kind.INSTANCE))]


def references() -> list[Ref]:
    """More than a value may have."""
    return [*objects(), External.of("torch"), OUTSIDE, Behind.of(OUTSIDE, "name"), Behind.of(OUTSIDE, ELEMENT)]


def sources() -> list[Source]:
    return [graph(0), graph(1), Leaf.of(site(2), ()), OUTSIDE, Behind.of(OUTSIDE, "name")]


KEYS: list[Key] = ["a", 0, ELEMENT]


def values(most: int = 7) -> SearchStrategy[Value]:
    """Values with so many references at most."""
    return st.builds(
        Value,
        st.frozensets(st.sampled_from(references()), max_size=most),
        st.frozensets(st.sampled_from(sources()), max_size=3),
        st.sampled_from([NO_CONSTANT, SOME, None, False, 0, 1, 1.0, "text"]),
        st.booleans(),
    )


def small_values() -> SearchStrategy[Value]:
    """Values of which a few can be joined below the limit: of the same two references."""
    return values(7).map(lambda v: v._replace(refs=frozenset(r for r in v.refs if r in references()[:2])))


def heaps() -> SearchStrategy[Heap]:
    holders = [*objects(), OUTSIDE]
    tables = st.dictionaries(
        st.sampled_from(holders), st.dictionaries(st.sampled_from(KEYS), small_values(), max_size=3), max_size=4
    )
    return tables.map(lambda table: Heap({holder: dict(edges) for holder, edges in table.items()}))


def states() -> SearchStrategy[State]:
    return st.builds(
        State,
        st.dictionaries(st.sampled_from("xyz"), small_values(), max_size=3),
        heaps(),
        st.sampled_from(list(Mode)),
        st.frozensets(st.sampled_from(sources()), max_size=2),
    )


def content(heap: Heap) -> dict[tuple[Ref, Key], Value]:
    """All edges."""
    return {(holder, key): value for holder, edges in heap.table.items() for key, value in edges.items()}

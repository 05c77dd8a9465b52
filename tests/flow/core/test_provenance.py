"""What sources come from."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchmemlint.flow.domain.provenance import Provenance
from torchmemlint.flow.domain.refs import Behind, Derived, Loop, Phi, Slot, Source

from .making import OUTSIDE, box, graph, site

LOOP, INNER = Loop.of(site(8), ()), Loop.of(site(9), ())
SUM, LIST = Phi.of(LOOP, None, "total"), Phi.of(INNER, box(0), "[]")
NODES: list[Source] = [graph(0), graph(1), SUM, LIST, Slot.of(box(1), "last"), Derived.of(site(2), ()), OUTSIDE]
PARTS: list[Source] = [Behind.of(OUTSIDE, "model"), Behind.of(Behind.of(OUTSIDE, "model"), "weight")]

edges = st.lists(st.tuples(st.sampled_from(NODES), st.frozensets(st.sampled_from(NODES + PARTS), max_size=3)))
some = st.frozensets(st.sampled_from(NODES + PARTS))


def recorded(steps: list[tuple[Source, frozenset[Source]]]) -> Provenance:
    provenance = Provenance()
    for source, parents in steps:
        provenance.derive(source, parents)
    return provenance


@given(edges, some)
def test_ancestors_are_closed(steps: list[tuple[Source, frozenset[Source]]], start: frozenset[Source]) -> None:
    provenance = recorded(steps)
    found = provenance.ancestors(start)
    assert start <= found
    assert provenance.ancestors(found) == found
    for source, parents in steps:
        if source in found:
            assert parents <= found


@given(edges, some, some)
def test_ancestors_of_a_union(
    steps: list[tuple[Source, frozenset[Source]]], a: frozenset[Source], b: frozenset[Source]
) -> None:
    provenance = recorded(steps)
    assert provenance.ancestors(a | b) == provenance.ancestors(a) | provenance.ancestors(b)


@given(edges, some)
def test_more_outside_finds_less(steps: list[tuple[Source, frozenset[Source]]], start: frozenset[Source]) -> None:
    provenance = recorded(steps)
    everything = provenance.ancestors(start)
    without = provenance.ancestors(start, frozenset({LOOP}))
    without_both = provenance.ancestors(start, frozenset({LOOP, INNER}))
    assert start <= without_both <= without <= everything
    if SUM not in without:
        assert without == everything


@given(edges, some)
def test_parts_come_from_the_whole_only_if_asked(
    steps: list[tuple[Source, frozenset[Source]]], start: frozenset[Source]
) -> None:
    provenance = recorded(steps)
    assert start <= provenance.ancestors(start, parts=False) <= provenance.ancestors(start)


@given(edges)
def test_nothing_is_its_own_parent(steps: list[tuple[Source, frozenset[Source]]]) -> None:
    assert all(source not in parents for source, parents in recorded(steps).parents.items())


def test_a_chain() -> None:
    provenance = Provenance()
    provenance.derive(SUM, [graph(0)])
    provenance.derive(graph(0), [graph(1)])
    assert provenance.ancestors([SUM]) == {SUM, graph(0), graph(1)}
    assert provenance.ancestors([graph(1)]) == {graph(1)}


def test_derivations_add_up() -> None:
    provenance = Provenance()
    provenance.derive(SUM, [graph(0)])
    provenance.derive(SUM, [graph(1)])
    assert provenance.parents[SUM] == {graph(0), graph(1)}


def test_what_came_round_belongs_to_earlier_iterations() -> None:
    provenance = Provenance()
    provenance.derive(SUM, [graph(0), SUM])
    assert provenance.ancestors([SUM], frozenset({LOOP})) == {SUM}
    assert provenance.ancestors([SUM], frozenset({INNER})) == {SUM, graph(0)}


def test_circles_end() -> None:
    provenance = Provenance()
    provenance.derive(graph(0), [graph(1)])
    provenance.derive(graph(1), [graph(0)])
    assert provenance.ancestors([graph(0)]) == {graph(0), graph(1)}


def test_a_part_comes_from_the_whole() -> None:
    provenance = Provenance()
    assert provenance.ancestors([PARTS[1]]) == {PARTS[1], PARTS[0], OUTSIDE}
    assert provenance.ancestors([PARTS[1]], parts=False) == {PARTS[1]}


def test_loops_add_up() -> None:
    provenance = Provenance()
    provenance.arise(graph(0), [LOOP])
    provenance.arise(graph(0), [INNER])
    provenance.arise(graph(1), [])
    assert provenance.made == {LOOP: {graph(0)}, INNER: {graph(0)}}
    assert provenance.made_in(INNER) == {graph(0)}

"""What a place may hold, joined from several paths."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchmemlint.flow.domain.refs import Object
from torchmemlint.flow.domain.values import (
    LIMIT,
    NO_CONSTANT,
    NONE,
    NOTHING,
    PLAIN,
    SOME,
    UNKNOWN,
    Value,
    constant,
    join,
    join_all,
    limited,
    of,
    symbol,
    tensor,
    with_graph,
    without_graph,
)

from .making import OUTSIDE, box, graph, objects, references, small_values, sources, values


@given(small_values())
def test_join_with_itself(a: Value) -> None:
    assert join(a, a) == a


@given(values(), values())
def test_join_in_either_order(a: Value, b: Value) -> None:
    assert join(a, b) == join(b, a)


@given(small_values(), small_values(), small_values())
def test_join_in_any_grouping(a: Value, b: Value, c: Value) -> None:
    assert join(join(a, b), c) == join(a, join(b, c))


@given(values(), values())
def test_join_loses_no_source(a: Value, b: Value) -> None:
    assert join(a, b).graph == a.graph | b.graph


@given(values(), values())
def test_join_says_if_references_are_missing(a: Value, b: Value) -> None:
    joined = join(a, b)
    assert joined.refs <= a.refs | b.refs
    if a != b:
        assert len(joined.refs) <= LIMIT
    assert joined.open or joined.refs == a.refs | b.refs


@given(values(), values())
def test_join_stays_open(a: Value, b: Value) -> None:
    if a.open or b.open:
        assert join(a, b).open


@given(values())
def test_nothing_is_neutral(a: Value) -> None:
    assert join(NOTHING, a) == a
    assert join(a, NOTHING) == a


@given(st.lists(small_values(), min_size=1))
def test_join_of_all(many: list[Value]) -> None:
    joined = join_all(many)
    for value in many:
        assert value.refs <= joined.refs
        assert value.graph <= joined.graph


@given(values(), st.frozensets(st.sampled_from(sources())))
def test_sources_are_added_and_taken(a: Value, more: frozenset[Object]) -> None:
    assert with_graph(a, more).graph == a.graph | more
    assert with_graph(a, more).refs == a.refs
    assert without_graph(a).graph == frozenset()
    assert without_graph(a)._replace(graph=a.graph) == a


@given(st.frozensets(st.sampled_from(references())))
def test_the_limit_keeps_objects(refs: frozenset[Object]) -> None:
    kept, missing = limited(refs)
    assert missing == (len(refs) > LIMIT)
    assert kept <= refs
    assert kept >= {r for r in refs if r in objects()}


def test_the_limit_keeps_the_same_every_time() -> None:
    many = references()
    assert len(many) > LIMIT
    assert limited(frozenset(many)) == limited(frozenset(reversed(many)))


def test_join_of_nothing_at_all() -> None:
    assert join_all([]) is NOTHING


def test_constants() -> None:
    assert constant(3).known
    assert constant(None) == NONE
    assert NONE.known
    assert not constant((1, 2)).known
    assert not Value(constant=SOME).known
    assert not PLAIN.known
    assert join(constant(3), constant(3)).constant == 3
    assert join(constant(3), constant(4)).constant is NO_CONSTANT
    assert join(constant(3), NONE).constant is NO_CONSTANT
    assert join(constant(3), PLAIN).constant is NO_CONSTANT
    assert join(constant(3), UNKNOWN).constant is NO_CONSTANT
    assert join(constant(True), constant(1)).constant is NO_CONSTANT
    assert join_all([PLAIN, constant(3)]).constant is NO_CONSTANT
    assert join_all([constant(3), PLAIN]).constant is NO_CONSTANT


def test_kinds_of_values() -> None:
    assert of(box(0)) == Value(frozenset({box(0)}))
    assert symbol(OUTSIDE).graph == symbol(OUTSIDE).refs == {OUTSIDE}
    assert tensor([graph(0)]).graph == {graph(0)}
    assert join(of(box(0)), tensor([graph(0)])) == Value(frozenset({box(0)}), frozenset({graph(0)}))


def test_references_are_made_once() -> None:
    assert box(0) is box(0)
    assert box(0) is not box(1)
    assert graph(0) is graph(0)

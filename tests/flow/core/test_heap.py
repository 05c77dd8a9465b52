"""Which object holds what, on several paths."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmemlint.flow.domain.heap import (
    ELEMENT,
    HOLDERS,
    Heap,
    Mode,
    State,
    elements,
    graph_of,
    joined_mode,
    load,
    reachable,
    reached,
    renew,
    unwritten,
)
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import PATH_LIMIT, Behind, Key, Object, Ref
from torchmemlint.flow.domain.values import NOTHING, PLAIN, Value, constant, join, of, symbol, tensor

from .making import KEYS, OUTSIDE, box, content, graph, heaps, objects, site, sources, states

LIST, DICT, INSTANCE = objects()
HOLDING: list[Ref] = [LIST, DICT, INSTANCE, OUTSIDE]


def empty() -> State:
    return State({}, Heap(), Mode.ON, frozenset())


def held(heap: Heap, holder: Ref, key: Key) -> Value:
    found = heap.get(holder, key)
    return unwritten(holder, key) if found is None else found


# Paths that meet


@given(states(), states())
def test_join_keeps_what_either_path_holds(a: State, b: State) -> None:
    expected = {place: join(held(a.heap, *place), held(b.heap, *place)) for place in content(a.heap) | content(b.heap)}
    both = a.copy()
    both.join(b)
    assert content(both.heap) == expected


@given(states(), states())
def test_join_of_the_rest(a: State, b: State) -> None:
    both = a.copy()
    both.join(b)
    for name in a.variables | b.variables:
        assert both.variables[name] == join(a.variables.get(name, NOTHING), b.variables.get(name, NOTHING))
    assert both.mode is (a.mode if a.mode is b.mode else Mode.EITHER)
    assert both.spent == a.spent & b.spent


@given(states(), states())
def test_join_leaves_the_other_alone(a: State, b: State) -> None:
    before = content(b.heap), dict(b.variables)
    a.join(b)
    a.heap.put(LIST, "a", tensor([graph(5)]))
    a.heap.put(OUTSIDE, "a", tensor([graph(5)]))
    a.variables["x"] = PLAIN
    assert (content(b.heap), b.variables) == before


@given(states())
def test_join_with_a_copy_changes_nothing(a: State) -> None:
    before = content(a.heap), dict(a.variables), a.mode, a.spent
    a.join(a.copy())
    assert (content(a.heap), a.variables, a.mode, a.spent) == before


@given(states(), states())
def test_a_path_that_ends_adds_nothing(a: State, b: State) -> None:
    before = content(a.heap), dict(a.variables), a.mode, a.spent
    b.dead = True
    a.join(b)
    assert (content(a.heap), a.variables, a.mode, a.spent) == before
    b.join(a)
    assert not b.dead
    assert (content(b.heap), b.variables, b.mode, b.spent) == before


def test_joins_as_a_comparison_of_all_edges_would() -> None:
    """However two heaps came about, by copies, writes and joins: what is left out of a comparison has not changed."""
    chance = random.Random(7)
    options = [constant(1), PLAIN, of(LIST), tensor([graph(0)]), tensor([graph(1)]), symbol(OUTSIDE)]
    for _ in range(150):
        many = [empty()]
        for _ in range(40):
            state = chance.choice(many)
            holder, key = chance.choice(HOLDING), chance.choice(KEYS)
            match chance.randrange(10):
                case 0 | 1:
                    many.append(state.copy())
                case 2:
                    state.heap.put(holder, key, chance.choice(options))
                case 3:
                    state.heap.add(holder, key, chance.choice(options))
                case 4 if holder is not OUTSIDE:
                    state.heap.remove(holder, key)
                case 5 if holder is not OUTSIDE:
                    state.heap.drop(holder)
                case 6:
                    state.become(chance.choice(many).copy())
                case 7 | 8 | 9:
                    other = chance.choice(many)
                    expected = {
                        place: join(held(state.heap, *place), held(other.heap, *place))
                        for place in content(state.heap) | content(other.heap)
                    }
                    others = {id(s): content(s.heap) for s in many if s is not state}
                    state.join(other)
                    assert content(state.heap) == expected
                    assert {id(s): content(s.heap) for s in many if s is not state} == others


@pytest.mark.parametrize("a", Mode)
@pytest.mark.parametrize("b", Mode)
def test_modes(a: Mode, b: Mode) -> None:
    assert joined_mode(a, b) is (a if a is b else Mode.EITHER)


# Copies


@given(heaps(), st.sampled_from(HOLDING), st.sampled_from(KEYS))
def test_a_copy_is_independent(heap: Heap, holder: Ref, key: Key) -> None:
    before = content(heap)
    copy = heap.copy()
    assert content(copy) == before
    copy.put(holder, key, tensor([graph(5)]))
    copy.add(holder, "b", tensor([graph(6)]))
    copy.drop(LIST)
    assert content(heap) == before
    changed = content(copy)
    heap.put(holder, key, tensor([graph(7)]))
    heap.remove(DICT, "a")
    assert content(copy) == changed


def test_a_copy_of_a_copy_is_independent() -> None:
    first = Heap()
    first.put(LIST, 0, tensor([graph(0)]))
    second = first.copy()
    third = second.copy()
    first.put(LIST, 0, tensor([graph(1)]))
    second.put(LIST, 0, tensor([graph(2)]))
    third.put(LIST, 0, tensor([graph(3)]))
    assert [heap.get(LIST, 0) for heap in (first, second, third)] == [tensor([graph(n)]) for n in (1, 2, 3)]


def test_shared_edges_are_copied_before_they_are_written() -> None:
    edges: dict[Key, Value] = {"a": PLAIN}
    first, second = Heap(), Heap()
    first.share(LIST, edges)
    second.share(LIST, edges)
    first.put(LIST, "a", tensor([graph(0)]))
    assert edges == {"a": PLAIN}
    assert second.get(LIST, "a") == PLAIN


@given(states())
def test_a_copied_state_is_independent(state: State) -> None:
    before = content(state.heap), dict(state.variables), state.mode
    copy = state.copy()
    copy.variables["new"] = PLAIN
    copy.heap.put(INSTANCE, "a", tensor([graph(5)]))
    copy.mode, copy.dead = Mode.OFF, True
    assert (content(state.heap), state.variables, state.mode) == before
    assert not state.dead


# Edges


def test_edges() -> None:
    heap = Heap()
    assert heap.get(DICT, "a") is None
    heap.put(DICT, "a", tensor([graph(0)]))
    heap.add(DICT, "a", tensor([graph(1)]))
    heap.add(DICT, "b", PLAIN)
    assert heap.edges(DICT) == {"a": tensor([graph(0), graph(1)]), "b": PLAIN}
    heap.remove(DICT, "b")
    heap.remove(DICT, "never there")
    assert heap.edges(DICT) == {"a": tensor([graph(0), graph(1)])}
    assert heap.drop(DICT) == {"a": tensor([graph(0), graph(1)])}
    assert heap.edges(DICT) == {}
    assert heap.drop(DICT) == {}


def test_what_nobody_wrote() -> None:
    assert load(empty(), DICT, "a") is None
    assert load(empty(), OUTSIDE, "a") == symbol(Behind.of(OUTSIDE, "a"))
    assert unwritten(DICT, "a") == NOTHING
    assert unwritten(OUTSIDE, Special.FROZEN) == NOTHING
    assert unwritten(OUTSIDE, ELEMENT) == symbol(Behind.of(OUTSIDE, ELEMENT))


def test_long_paths_end_in_something_unknown() -> None:
    deep: Ref = OUTSIDE
    for _ in range(PATH_LIMIT):
        deep = Behind.of(deep, "next")
    assert unwritten(deep, "next") == Value(graph=frozenset({deep}), open=True)


def test_elements_are_all_that_a_container_holds() -> None:
    state = empty()
    state.heap.put(LIST, 0, tensor([graph(0)]))
    state.heap.put(LIST, ELEMENT, tensor([graph(1)]))
    state.heap.put(LIST, Special.MADE, tensor([graph(2)]))
    assert elements(state, LIST) == tensor([graph(0), graph(1)])
    assert elements(state, DICT) == NOTHING
    assert elements(state, OUTSIDE) == symbol(Behind.of(OUTSIDE, ELEMENT))


# Newer and older objects of a site


def older(made: Object) -> Object:
    return Object.of(made.kind, made.site, made.context, made.about, True)


def test_the_first_object_of_a_site_has_no_older_sibling() -> None:
    state = empty()
    renew(state, LIST)
    assert state.heap.edges(LIST) == {Special.MADE: PLAIN}
    assert state.heap.edges(older(LIST)) == {}


def test_a_new_object_moves_the_older_one() -> None:
    state = empty()
    renew(state, LIST)
    state.heap.put(LIST, 0, tensor([graph(0)]))
    state.heap.put(DICT, "row", of(LIST))
    state.variables["row"] = Value(frozenset({LIST}), frozenset({graph(3)}))
    renew(state, LIST)
    assert state.heap.edges(LIST) == {Special.MADE: PLAIN}
    assert state.heap.get(older(LIST), 0) == tensor([graph(0)])
    assert state.heap.get(DICT, "row") == of(older(LIST))
    assert state.variables["row"] == Value(frozenset({older(LIST)}), frozenset({graph(3)}))


def test_older_objects_are_one() -> None:
    state = empty()
    for number in range(3):
        renew(state, LIST)
        state.heap.put(LIST, 0, tensor([graph(number)]))
        state.heap.add(DICT, ELEMENT, of(LIST))
    assert state.heap.get(DICT, ELEMENT) == Value(frozenset({LIST, older(LIST)}))
    assert state.heap.get(older(LIST), 0) == tensor([graph(0), graph(1)])
    assert state.heap.get(LIST, 0) == tensor([graph(2)])


def test_an_older_object_that_nobody_holds_is_dropped() -> None:
    state = empty()
    renew(state, LIST)
    state.heap.put(LIST, 0, tensor([graph(0)]))
    renew(state, LIST)
    assert state.heap.edges(older(LIST)) == {}


def test_an_older_object_keeps_itself() -> None:
    state = empty()
    renew(state, LIST)
    state.heap.put(LIST, "self", of(LIST))
    state.variables["first"] = of(LIST)
    renew(state, LIST)
    assert state.heap.get(older(LIST), "self") == of(older(LIST))


@given(states())
def test_renewing_loses_no_source(state: State) -> None:
    state.heap.put(LIST, Special.MADE, PLAIN)
    state.variables["x"] = of(LIST)
    before = reached(state, of(LIST))
    renew(state, LIST)
    assert before <= reached(state, state.variables["x"])


# What can be reached


def test_sources_within_containers() -> None:
    state = empty()
    state.heap.put(LIST, 0, Value(frozenset({DICT}), frozenset({graph(0)})))
    state.heap.put(DICT, "a", tensor([graph(1)]))
    state.heap.put(DICT, "b", of(INSTANCE))
    state.heap.put(INSTANCE, "loss", tensor([graph(2)]))
    assert reached(state, of(LIST)) == {graph(0), graph(1)}
    assert reached(state, of(LIST), HOLDERS) == {graph(0), graph(1), graph(2)}
    assert reached(state, of(LIST), depth=1) == {graph(0)}
    assert reached(state, tensor([graph(4)])) == {graph(4)}


def test_sources_do_not_pass_marks() -> None:
    state = empty()
    state.heap.put(DICT, Special.FACTORY, tensor([graph(0)]))
    assert reached(state, of(DICT)) == frozenset()


def test_sources_in_a_circle() -> None:
    state = empty()
    state.heap.put(LIST, 0, of(DICT))
    state.heap.put(DICT, "a", Value(frozenset({LIST}), frozenset({graph(0)})))
    assert reached(state, of(LIST)) == {graph(0)}


def test_what_was_added_in_place() -> None:
    state = empty()
    total = box(3, Kind.TENSOR)
    state.heap.put(total, Special.GRAPH, tensor([graph(0)]))
    state.heap.put(LIST, 0, of(total))
    value = Value(frozenset({total}), frozenset({graph(1)}))
    assert graph_of(state, value) == {graph(0), graph(1)}
    assert reached(state, value) == {graph(0), graph(1)}
    assert graph_of(state, tensor([graph(2)])) == {graph(2)}
    assert graph_of(state, of(LIST)) == frozenset()


@given(states(), st.sampled_from(objects()))
def test_reached_are_sources_that_something_holds(state: State, start: Object) -> None:
    everything = {source for value in content(state.heap).values() for source in value.graph}
    assert reached(state, of(start), HOLDERS) <= everything
    assert reached(state, of(start)) <= reached(state, of(start), HOLDERS)


@given(states())
def test_more_depth_reaches_more(state: State) -> None:
    found = [reached(state, of(LIST), HOLDERS, depth) for depth in range(5)]
    assert all(a <= b for a, b in pairwise(found))


@given(states())
def test_reachable_objects_are_closed(state: State) -> None:
    seen = reachable(state, [INSTANCE])
    assert INSTANCE in seen
    for holder in seen:
        for value in state.heap.edges(holder).values():
            assert value.refs <= seen
    assert reachable(state, seen) == seen


def test_reachable_objects() -> None:
    state = empty()
    state.heap.put(LIST, 0, of(DICT))
    state.heap.put(DICT, Special.FACTORY, of(INSTANCE))
    state.heap.put(box(5), 0, of(LIST))
    assert reachable(state, [LIST]) == {LIST, DICT, INSTANCE}
    assert reachable(state, []) == set()


def test_sites_tell_objects_apart() -> None:
    assert Object.of(Kind.LIST, site(0), ()) is not Object.of(Kind.LIST, site(0), (site(1),))
    assert len({*sources()}) == len(sources())

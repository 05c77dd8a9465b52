"""`immutable` beside what it stands for: `dataclass(frozen=True, slots=True)`."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

from torchmemlint.immutable import immutable


@immutable()
class Ours:
    left: int
    right: tuple[object, ...] = ()
    note: str = field(default="", compare=False)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Theirs:
    left: int
    right: tuple[object, ...] = ()
    note: str = field(default="", compare=False)
    secret: str = field(default="", repr=False)


@immutable()
class Nothing:
    pass


@immutable()
class Single:
    only: object


@immutable(eq=False)
class Itself:
    only: object = None


@immutable(repr=False)
class Shown:
    only: object = None

    def __repr__(self) -> str:
        return "as it says itself"


@immutable(frozen=True)
class Frozen:
    left: int
    right: int = 2


VALUES: list[dict[str, Any]] = [
    {"left": 1},
    {"left": 1, "right": (2,)},
    {"left": 1, "note": "a"},
    {"left": 1, "secret": "a"},
    {"left": 2},
]


@pytest.mark.parametrize("first", VALUES)
@pytest.mark.parametrize("second", VALUES)
def test_compared_and_hashed_by_the_same_fields(first: dict[str, Any], second: dict[str, Any]) -> None:
    equal = Theirs(**first) == Theirs(**second)
    assert (Ours(**first) == Ours(**second)) is equal
    assert (Ours(**first) != Ours(**second)) is not equal
    assert len({Ours(**first), Ours(**second)}) == (1 if equal else 2)


@pytest.mark.parametrize("values", VALUES)
def test_shown_copied_and_kept_alike(values: dict[str, Any]) -> None:
    ours, theirs = Ours(**values), Theirs(**values)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert copy.copy(ours) == ours
    assert pickle.loads(pickle.dumps(ours)) == ours
    assert replace(ours, left=7) == Ours(**{**values, "left": 7})


def test_others_are_never_equal() -> None:
    assert Single(1) != 1
    assert Single(1) != Nothing()
    assert Single((1,)) != Ours(1)


def test_with_one_field_and_with_none() -> None:
    assert Single([1]) == Single([1])
    assert hash(Single("a")) == hash(Single("a"))
    with pytest.raises(TypeError, match="unhashable"):
        hash(Single([1]))
    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing()}) == 1
    assert repr(Nothing()) == "Nothing()"


def test_compared_by_identity_where_asked() -> None:
    one = Itself()
    assert one == one
    assert one != Itself()
    assert len({one, Itself()}) == 2


def test_what_the_class_says_itself_stays() -> None:
    assert repr(Shown()) == "as it says itself"


def test_a_value_in_itself_is_shown() -> None:
    inner: list[object] = []
    one = Single(inner)
    inner.append(one)
    assert repr(one) == "Single(only=[...])"


def test_frozen_in_a_run() -> None:
    one = Frozen(1)
    with pytest.raises(FrozenInstanceError):
        one.left = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del one.left  # type: ignore[misc]
    assert one == Frozen(1)
    assert hash(one) == hash(Frozen(1))
    assert repr(one) == "Frozen(left=1, right=2)"


@pytest.mark.parametrize("kind", [Ours, Nothing, Single, Itself, Shown, Frozen])
def test_all_are_dataclasses_with_slots(kind: type) -> None:
    assert is_dataclass(kind)
    assert not hasattr(object.__new__(kind), "__dict__")
    assert tuple(one.name for one in fields(kind)) == kind.__match_args__

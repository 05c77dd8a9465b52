from __future__ import annotations

import dataclasses

import pytest

from torchmemlint.flow import values
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import Graph, Tensor


@dataclasses.dataclass(frozen=True)
class _Pair:
    first: int
    second: int = dataclasses.field(default=0, kw_only=True)


def test_it_does_what_the_standard_library_does() -> None:
    tensor = Tensor(Graph.LIVE, producer="Linear", certain=False, part=3)
    changes = {"graph": Graph.CUT, "exact": False}
    assert replace(tensor, **changes) == dataclasses.replace(tensor, **changes)  # type: ignore[arg-type]
    assert replace(tensor) == tensor
    assert replace(tensor) is not tensor
    assert tensor.graph is Graph.LIVE


def test_all_abstract_values_can_be_changed() -> None:
    kinds = [kind for kind in vars(values).values() if isinstance(kind, type) and dataclasses.is_dataclass(kind)]
    assert len(kinds) > 15
    for kind in kinds:
        names = [field.name for field in dataclasses.fields(kind)]
        if len(names) < 2:
            continue  # one that is all there is to it: made anew
        one = kind(*range(len(names)))
        assert [getattr(replace(one, **{names[-1]: "new"}), name) for name in names] == [*range(len(names) - 1), "new"]


def test_a_field_that_is_not_there_is_an_error() -> None:
    with pytest.raises(TypeError, match="Tensor has no field 'grad'"):
        replace(Tensor(Graph.LIVE), grad=1)


def test_what_is_not_made_of_its_fields_in_order_is_refused() -> None:
    with pytest.raises(TypeError, match="_Pair"):
        replace(_Pair(1), first=2)

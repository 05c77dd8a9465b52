"""Effects: what a caller can see of them is known for every field."""

from __future__ import annotations

from dataclasses import fields

from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.engine.summaries import _SEEN

# What happens somewhere, and what comes into being by that: it is no reason to keep anything else.
UNSEEN = {
    *("Point", "Point | None", "Mode | ModeOf", "Loop", "Place", "tuple[Place, ...]"),
    *("Function", "Graph", "Derived", "Result"),
    *("tuple[Point, ...]", "tuple[tuple[Ref, Key], ...]"),
    *("bool", "str", "frozenset[str]", "Evidence", "Given | None", "How", "Reading", "Remark", "Reset", "Stored"),
}


def test_a_summary_looks_into_every_field_of_an_effect_or_is_known_not_to() -> None:
    types = {str(field.type) for kind in Effect.__subclasses__() for field in fields(kind)}
    assert types <= {*_SEEN, *UNSEEN}
    assert not UNSEEN & _SEEN.keys()

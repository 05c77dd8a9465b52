"""Supplying: what is said of what loaders are given, and of what they call, in places of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.fact.details import Built, Placing
from torchmemlint.flow.fact.loaders import Loader
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.fact.placing import Placed


def built(places: Places, loaders: Iterable[Loader]) -> Iterator[Built]:
    """Yield the loaders that are built, with the constants that they are given."""
    for one in loaders:
        given = {name: one.constant(name) for name in one.given}
        yield Built(places.of(one.point.chain()[0]), one.name, given, one.more)


def placed(places: Places, found: Iterable[Placed]) -> Iterator[Case]:
    """Yield what is put on an accelerator while data is loaded."""
    for one in found:
        cls, name = one.entry.cls, one.entry.name
        entry = f"{cls.name}.{name}" if cls is not None else "" if name == "<lambda>" else name
        loader = places.first(one.loader.point) if one.loader is not None else None
        calls = tuple(map(places.of, one.calls))
        yield Case(
            places.of(one.at),
            "TML406",
            one.doubts,
            advice=loader is None,
            calls=calls,
            about=Placing(entry, loader),
        )

"""Arriving: tensors that are made on the host, or in double precision, and are brought to a device, as cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.amounts import Amount
from torchmemlint.doubts import Doubt
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.casting import casts
from torchmemlint.flow.fact.creating import Extent, creations
from torchmemlint.flow.fact.details import Casting, Creating, Precision
from torchmemlint.flow.fact.doubles import doubles
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir.ops import Unit


def created(places: Places, engine: Engine, units: Iterable[Unit]) -> Iterator[Case]:
    """Yield the tensors that are created on the host only to be moved, or as one type only to be cast."""
    for unit in units:
        for one in creations(engine, unit, places.text_of(unit)):
            creating = Creating(places.of(one.created), one.exact, one.same_place)
            advice = not one.extent.repeated or one.extent.nbytes is None  # it costs time, and more than that if large
            yield _case(places.of(one.moved), "TML501", one.extent, creating, advice)
        for cast in casts(engine, unit):
            casting = Casting(places.of(cast.created), cast.before, cast.dtype, cast.exact)
            yield _case(places.of(cast.copied), "TML511", cast.extent, casting, True)


def _case(place: Place, code: str, extent: Extent, about: Creating | Casting, advice: bool) -> Case:
    amount = _amount(extent.nbytes)
    doubts = frozenset({Doubt.SIZE} if amount is None and not (extent.repeated or extent.grows) else ())
    return Case(place, code, doubts, advice=advice, amount=amount, about=about)


def doubled(places: Places, units: Iterable[Unit]) -> Iterator[Case]:
    """Yield the tensors of numpy's default precision that are brought to a device."""
    for function in (f for unit in units for f in unit.functions):
        for one in doubles(function, places.text_of(function.unit)):
            if one.moved is not None and one.taken is not None:
                place, taken = places.of(one.moved), places.of(one.taken)
                within = taken if place.contains(taken) and not one.mixed else None
                found = Precision(places.of(one.array), one.maker, within, one.cast)
                doubts = frozenset({Doubt.SIZE} if one.nbytes is None and not one.grows else ())
                yield Case(place, "TML510", doubts, amount=_amount(one.nbytes), about=found)


def _amount(nbytes: int | None) -> Amount | None:
    return None if nbytes is None else Amount(nbytes)

"""Arriving: tensors that are made on the host, as another type or in double precision, and go elsewhere, as cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.amounts import Amount
from torchmemlint.doubts import Doubt
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.creating import ALIKE, WHOLE, Extent, Factories, creations
from torchmemlint.flow.fact.details import Casting, Creating, Precision
from torchmemlint.flow.fact.doubles import doubles
from torchmemlint.flow.fact.numbers import argument
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.ops import Call, CallMethod, Constant, Op, Unit
from torchmemlint.flow.ir.places import NO_TEMP, Spread, Temp
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import operations as known
from torchmemlint.knowledge import torch_api


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
    is_known = amount is not None or extent.grows
    is_worth = (extent.repeated and is_known) or (amount is not None and amount.is_much)  # once is worth it for much
    doubts = frozenset(() if is_worth else {Doubt.SIZE})
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


# Tensors that are made as one type only to be copied to another at once: `torch.zeros(n).bool()`.

_ALIASES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",  # the names of methods only: there is no `torch.char`
    "byte": "uint8",
}
_METHODS = _ALIASES.keys() | {"bool", "bfloat16"}
_TYPED = frozenset({"to", "type"})
_INTEGERS = frozenset("uint8 int8 int16 int32 int64 bool".split())
_COARSE = frozenset({"float16", "bfloat16"})  # they do not have all whole numbers that are counted to


@immutable()
class Cast:
    """A tensor that is created and cast."""

    copied: Op
    created: Op
    before: str  # the type that it is created as
    dtype: str  # and the one that it is cast to
    exact: bool  # do the same numbers come out if it is created as that?
    extent: Extent


def casts(engine: Engine, unit: Unit) -> Iterator[Cast]:
    """Yield what a file creates as one type and casts to another."""
    factories, casting = known.factories(), _METHODS | _TYPED
    for function in unit.functions:
        if not function.mentions.isdisjoint(casting) and not function.mentions.isdisjoint(factories):
            made = Factories(engine, function)
            for op in operations(function.body):
                if isinstance(op, CallMethod) and op.name in casting and (found := _cast(made, op)) is not None:
                    yield found


def _cast(made: Factories, op: CallMethod) -> Cast | None:
    created = made.flow.made.get(op.base)
    factory, dtype = made.factory(created), _target(made, op)
    if not factory or not dtype or not isinstance(created, Call | CallMethod):
        return None
    before = _before(made, factory, created)
    extent = made.extent(op, factory, created) if before and before != dtype else None
    if extent is None:
        return None
    cut = made.is_fractional(created) and dtype in _INTEGERS
    exact = (factory in ALIKE and not cut) or (factory == "arange" and before == "int64" and dtype not in _COARSE)
    return Cast(op, created, before, dtype, exact, extent)


def _target(made: Factories, op: CallMethod) -> str:
    """Return the type that a method casts to, where it does nothing else; "" for other methods."""
    if op.name in _METHODS:
        return "" if op.arguments else _plain(op.name)
    plain = len(op.arguments) == 1 and op.arguments[0].spread in (Spread.PLAIN, Spread.NAMED)
    return _named(made, op.arguments[0].temp) if plain else ""


def _before(made: Factories, factory: str, created: Call | CallMethod) -> str:
    """Return the type that a factory makes; "" where that is not known."""
    given = argument(created, -1, "dtype")
    if given != NO_TEMP:
        return _named(made, given)
    if factory == "full":
        filled = made.flow.made.get(argument(created, 1, "fill_value"))
        value = filled.value if isinstance(filled, Constant) else None
        return {bool: "bool", int: "int64", float: "float32"}.get(type(value), "")
    return "int64" if factory in WHOLE and not made.is_fractional(created) else "float32"


def _named(made: Factories, temp: Temp) -> str:
    """Return the plain name of a type of torch's; "" for all else."""
    name = made.flow.name(temp)
    return _plain(name.rpartition(".")[2]) if name in torch_api.WIDTHS else ""


def _plain(name: str) -> str:
    return _ALIASES.get(name, name)

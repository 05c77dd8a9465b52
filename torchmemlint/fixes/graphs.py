"""Comparing where the graphs of a program go before and after a change: see `flow/fact/arrivals.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from torchmemlint.fixes.edits import TextIndex
from torchmemlint.fixes.identity import Change
from torchmemlint.flow.fact.details import Arrival, Arriving
from torchmemlint.flow.fact.place import Place
from torchmemlint.syntax.source_module import SourceModule, span_in
from torchmemlint.syntax.text import shortened

Arrivals: TypeAlias = frozenset[Arrival]
Tested: TypeAlias = Callable[[str], str | None]
Spot: TypeAlias = tuple[
    Path, tuple[int, ...]
]  # a stretch of a file: of that which is changed, in offsets of the old text
_TRAINING = frozenset({Arriving.DIFFERENTIATED, Arriving.HOOKED, Arriving.TRAINED})
_LOSSES = {
    Arriving.TRAINED: "which would run with gradients off",
    Arriving.ASKED: "and the answer would be another",
    Arriving.CAST: "and older releases of torch would keep them without a graph",
    Arriving.CACHED: "and would keep them without a graph",
}
_DEFINITION = re.compile(r"\bdef (\w+)")
_SHOWN = 40  # characters of code


def first_difference(
    change: Change, path: Path, before: Arrivals, after: Arrivals, *, safe: bool, tested: Tested = lambda name: None
) -> str | None:
    """Why a change of a file must not be made; None if nothing speaks against it.

    A graph would be lost that something may need, or be differentiated that was not before. If it need not be `safe`,
    only those count that surely have to do with training, and what a test takes the gradient of: `tested` names one
    for a function.
    """
    new, old = Compared(path, change, old=False), Compared(path, change, old=True)
    here, there = {old.key(one): one for one in before}, {new.key(one): one for one in after}
    lost = [one for key, one in here.items() if key not in there and one.how is not Arriving.DETACHED]
    gained = [one for key, one in there.items() if key not in here and one.how is Arriving.DIFFERENTIATED]
    if not safe:
        for one in lost:
            test = tested(old.function(one)) if one.how is Arriving.RETURNED else None
            if test is not None:
                return f"{test} takes the gradient of what `{old.function(one)}` returns"
        lost = [one for one in lost if one.how in _TRAINING and not one.doubtful]
        gained = [one for one in gained if not one.doubtful]
    if lost:
        first = _first(lost)
        return f"{old.told(first)}, {_LOSSES.get(first.how, 'and would be lost')}"
    return f"{new.told(_first(gained))} only with the fix" if gained else None


def _first(found: Iterable[Arrival]) -> Arrival:
    order = list(Arriving)
    return min(found, key=lambda one: (one.doubtful, not one.begin[0], order.index(one.how), one.at, one.begin))


class Compared:
    """One of two texts that are compared, and where its places stand in the old one."""

    def __init__(self, path: Path, change: Change, *, old: bool) -> None:
        text = change.before if old else change.after
        self._path, self._change, self._old = path, change, old
        self._rows, self._index = SourceModule.rows_of(text), TextIndex.of(text)
        self._known: dict[Place, Spot] = {}

    def key(self, one: Arrival) -> tuple[Arriving, tuple[Spot, ...], tuple[Spot, ...], str]:
        """What tells an arrival from others, in either text."""
        places, name = one.begin
        return one.how, self._spots(one.at), self._spots(places), name

    def function(self, one: Arrival) -> str:
        """The name of the function that returns something; "" of one elsewhere."""
        place = one.at[0]
        text = "\n".join(self._rows[place.span[0] - 1 :]) if place.path == self._path else ""
        found = _DEFINITION.search(text)
        return found[1] if found is not None else ""

    def told(self, one: Arrival) -> str:
        """What arrives where."""
        where = self._where(one.at)
        if one.how is Arriving.TRAINED:
            return f"a network {one.how.value} {where}"
        if one.how in (Arriving.ASKED, Arriving.CAST, Arriving.CACHED):
            return f"{one.how.value} {where}"
        places, name = one.begin
        what = f"of what `{name}` is given" if name and places else f"of {self._code(places)}"
        return f"the graph {what} {one.how.value} {where}"

    def _where(self, places: tuple[Place, ...]) -> str:
        if not places:
            return "elsewhere"
        line = f"at line {places[0].span[0]}"
        return line if places[0].path == self._path else f"{line} of {places[0].path.name}"

    def _code(self, places: tuple[Place, ...]) -> str:
        if not places or places[0].path != self._path:
            return "a pass"
        return f"`{shortened(span_in(self._rows, places[0].span).text(self._rows), _SHOWN)}`"

    def _spots(self, places: Iterable[Place]) -> tuple[Spot, ...]:
        return tuple(map(self.spot, places))

    def spot(self, place: Place) -> Spot:
        """Where a place stands in the old text: what tells it from others, in either text."""
        if place not in self._known:
            self._known[place] = place.path, place.span if place.path != self._path else self._offsets(place)
        return self._known[place]

    def _offsets(self, place: Place) -> tuple[int, int]:
        span = span_in(self._rows, place.span)
        start, end = self._index.offset(span.start), self._index.offset(span.end)
        return self._change.whole(start, end) if self._old else self._change.origin(start, end)

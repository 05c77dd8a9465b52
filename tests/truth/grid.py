"""Plain programs with one strange value: what a single value does, without suspects beside it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

from . import tables
from .choice import DIMENSIONS, Choice, ImpossibleError, Values, check, ways
from .sample import Plan

SOURCES = ("loss_after_backward", "train_loss", "eval_output", "eval_loss")
HOLDERS = ("local_sum", "local_list", "dict_of_lists")
FATES = ("number", "never", "diff_here")
GUARDS = ("plain", "flag", "stage")
LOOPS = ("for", "called")


def grid(seed: int, each: int, values: Mapping[str, Sequence[str]] | None = None) -> Iterator[Plan]:
    """Plans of `each` programs for every one of the values (of all dimensions, if none are given)."""
    pair = 0
    for dimension, names in (values or tables.dimensions()).items():
        for name in names:
            for number in range(each):
                rng = random.Random(f"{seed}:{dimension}:{name}:{number}:grid")
                plain = plainest(rng, dimension, name)
                yield Plan(pair, plain, _form(dimension, name, plain), f"{dimension}={name}")
                pair += 1


def plainest(rng: random.Random, dimension: str, name: str) -> Values:
    """The values of a program that has this one, and is plain where that goes together."""
    values = {**tables.PLAIN, "cut": "none", "cut_at": "put", "bound": "none", dimension: name}
    idle = dimension == "mode" and tables.MODE[name].around == "pass" and rng.random() < 0.5
    first = [key for key, source in tables.SOURCE.items() if source.idle] if idle else SOURCES
    choices = {
        "source": _in_order(rng, first, tables.SOURCE),
        "holder": _in_order(rng, HOLDERS, tables.HOLDER),
        "fate": FATES,
        "guard": GUARDS,
        "loop": LOOPS,
    }
    choices |= {dimension: [name]} if dimension in choices else {}
    for combination in itertools.product(*choices.values()):
        values |= dict(zip(choices, combination, strict=True))
        values["cut"] = "detach" if idle else values["cut"]
        if way := _way(rng, values, name if dimension == "way" else ""):
            values["way"] = way
            if _goes_together(values):
                return {key: values[key] for key in DIMENSIONS}
    raise ImpossibleError(f"no plain program with {dimension}={name}")


def _in_order(rng: random.Random, first: Sequence[str], table: Mapping[str, object]) -> list[str]:
    """The names, those that come first in an order of their own."""
    head = sorted(first, key=lambda _: rng.random())
    rest = sorted((name for name in table if name not in first), key=lambda _: rng.random())
    return [*head, *rest]


def _way(rng: random.Random, values: Values, wanted: str) -> str:
    holder = tables.HOLDER[values["holder"]]
    allowed = ways(tables.SOURCE[values["source"]], holder, tables.LOOP[values["loop"]])
    if wanted:
        return wanted if wanted in allowed else ""
    plain = tables.PLAIN_WAY.get(holder.kind, "")
    return plain if plain in allowed else rng.choice(allowed) if allowed else ""


def _goes_together(values: Values) -> bool:
    try:
        check(Choice.of(values))
    except ImpossibleError:
        return False
    return True


def _form(dimension: str, name: str, values: Values) -> str:
    """What the program is an example of, on the face of it."""
    if tables.FATE[values["fate"]].differentiates:
        return "differentiated"
    if dimension == "mode" and tables.MODE[name].off:
        return "mode"
    if dimension == "bound" and name != "none":
        return "bound"
    return "cut" if dimension == "cut" and tables.CUT[name].cuts else "leak"

"""Plain programs with one strange value: what a single value does, without suspects beside it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from . import tables
from .choice import ways
from .sample import Plan

PLAIN_HOLDERS = ("local_sum", "local_list", "dict_of_lists")
_OFF_THE_GRID = ("cut_at",)


def grid(seed: int, each: int, values: Mapping[str, Sequence[str]] | None = None) -> Iterator[Plan]:
    """Plans of `each` programs for every one of the values (of all dimensions, if none are given)."""
    pair = 0
    for dimension, names in (values or tables.dimensions()).items():
        for name in names:
            for number in range(each):
                rng = random.Random(f"{seed}:{dimension}:{name}:{number}:grid")
                yield _plan(rng, pair, dimension, name, number)
                pair += 1


def _plan(rng: random.Random, pair: int, dimension: str, name: str, number: int) -> Plan:
    """A plain program with this value, and what the value needs."""
    values = {**tables.PLAIN, "holder": rng.choice(PLAIN_HOLDERS)}
    mode = tables.MODE.get(name) if dimension == "mode" else None
    if number % 2 or (mode and mode.off):
        values["source"] = "eval_output"
    values[dimension] = name
    form = "leak"
    match dimension:
        case "way":
            _fit_way(rng, values, name)
        case "holder":
            holder = tables.HOLDER[name]
            if holder.scalar_only or holder.tensor:
                values["source"] = "train_loss" if number % 2 else "loss_after_backward"
        case "fate" if tables.FATE[name].kinds:
            kinds = tables.FATE[name].kinds
            values["holder"] = rng.choice([key for key, h in tables.HOLDER.items() if h.kind in kinds and not h.tensor])
        case "loop" if tables.LOOP[name].style == "method":
            values["holder"] = rng.choice(["self_sum", "self_list"])
        case "loop" if tables.LOOP[name].style == "collect":
            kinds = tuple(tables.LOOP[name].collects)
            values["holder"] = rng.choice(
                [
                    h
                    for h in ("local_list", "local_sum", "growing_dict", "deque", "self_list")
                    if tables.HOLDER[h].kind in kinds
                ]
            )
        case "bound":
            _fit_bound(rng, values, name)
            form = "bound" if name != "none" else "leak"
        case "cut":
            cut = tables.CUT[name]
            values["source"] = "train_loss" if cut.scalar or number % 2 else values["source"]
            form = "cut" if cut.cuts else "leak"
        case "place" if "holder" in tables.PLACE[name].files:
            values["holder"] = rng.choice(["meters", "closure_cell"])
    if mode and mode.off:
        form = "mode"
    source = tables.SOURCE[values["source"]]
    if mode and mode.around == "pass" and number % 2:
        values["source"] = rng.choice([key for key, s in tables.SOURCE.items() if s.idle] or ["eval_output"])
    if tables.FATE[values["fate"]].differentiates:
        values["source"], form = "train_loss", "differentiated"
    if source.carried:
        values["holder"] = "local_sum"
    if tables.MODEL[values["model"]].only:
        values["source"] = "eval_output" if number % 2 else "loss_after_backward"
    _fit_holder(rng, values)
    return Plan(pair, values, form, f"{dimension}={name}")


def _fit_way(rng: random.Random, values: dict[str, str], name: str) -> None:
    kinds = [kind for kind, ways_in in tables.WAY.items() if name in ways_in]
    kind = rng.choice(kinds)
    way = tables.WAY[kind][name]
    source, loop = tables.SOURCE["train_loss"], tables.LOOP["for"]
    values["holder"] = rng.choice(
        [key for key, h in tables.HOLDER.items() if h.kind == kind and name in ways(source, h, loop)]
    )
    if way.scalar or tables.HOLDER[values["holder"]].tensor:
        values["source"] = rng.choice(["loss_after_backward", "train_loss"])


def _fit_bound(rng: random.Random, values: dict[str, str], name: str) -> None:
    bound = tables.BOUND[name]
    kinds = bound.kinds or tuple(bound.put) or ("sum", "list")
    text = bound.swap[0]
    holders = [
        key
        for key, holder in tables.HOLDER.items()
        if holder.kind in kinds and text in "\n".join((*holder.init, *holder.top)) and not holder.scalar_only
    ]
    values["holder"] = rng.choice(holders)
    values["source"] = "loss_after_backward"
    if bound.parameters:
        flag = bound.parameters[0][0]
        values["guard"] = rng.choice(
            [key for key, guard in tables.GUARD.items() if any(name == flag for name, _ in guard.parameters)]
        )


def _fit_holder(rng: random.Random, values: dict[str, str]) -> None:
    """A way and a fate that the holder has."""
    holder = tables.HOLDER[values["holder"]]
    if holder.kind == "own" and not holder.fold:
        values["fate"] = "never"
    if "way" not in values:
        allowed = ways(tables.SOURCE[values["source"]], holder, tables.LOOP[values["loop"]])
        plain = tables.PLAIN_WAY.get(holder.kind, "")
        if allowed:
            values["way"] = plain if plain in allowed else rng.choice(allowed)

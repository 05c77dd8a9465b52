"""Which programs are drawn: mostly plain, a few dimensions strange; every program has a twin of another form."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import tables
from .build import Program, build
from .choice import DIMENSIONS, ImpossibleError, Values, ways

STRANGE = 0.35  # the chance that a dimension has another than its plain value
FORMS = {"leak": 42, "cut": 17, "waste": 8, "bound": 8, "mode": 12, "differentiated": 13}  # and their weights
KEPT = ("model", "source", "carrier", "holder", "way", "loop", "call", "guard", "place", "decoy")  # what twins share
TRIES = 300


@dataclass(frozen=True)
class Plan:
    """What a pair is drawn from: the values it must have, and the one that is strange (in a grid)."""

    pair: int
    forced: Mapping[str, str]
    form: str = ""
    strange: str = ""


def plans(seed: int, count: int, required: Sequence[tuple[str, str]] = ()) -> Iterator[Plan]:
    """Plans without end, or `count` of them; each program takes at least one of the `required` values."""
    for pair in range(count):
        rng = random.Random(f"{seed}:{pair}:plan")
        yield Plan(pair, dict([rng.choice(required)]) if required else {})


def first_of(seed: int, plan: Plan) -> Program:
    """The first program of a pair; raises `ImpossibleError`."""
    rng = random.Random(f"{seed}:{plan.pair}:first:{plan.strange}")
    form = plan.form or rng.choices(list(FORMS), list(FORMS.values()))[0]
    spelling = f"{seed}:{plan.pair}:spelling"
    return _drawn(rng, [form], plan.forced, spelling)


def twin_of(seed: int, plan: Plan, program: Program, harmful: bool, attempt: int = 0) -> Program:
    """The same program in another form: a harmless one if the program is harmful; raises `ImpossibleError`."""
    rng = random.Random(f"{seed}:{plan.pair}:twin:{attempt}:{plan.strange}")
    kept = {name: program.values[name] for name in KEPT}
    forced = {} if plan.strange else {name: value for name, value in plan.forced.items() if name not in KEPT}
    forms = ["leak"]
    if harmful:
        source = tables.SOURCE[kept["source"]]
        if source.idle:
            forms = ["mode"]
        else:
            forms = ["cut", "cut", "bound"] if source.trains else ["mode", "mode", "mode", "differentiated", "cut"]
    if "differentiated" not in (program.form, *forms):
        kept["fate"] = program.values["fate"]
    return _drawn(rng, forms, {**kept, **forced}, program.seed, program.values)


def _drawn(
    rng: random.Random, forms: Sequence[str], forced: Mapping[str, str], spelling: str, other: Values | None = None
) -> Program:
    """A program of one of the forms, with the values that are forced, and not with all of the `other` ones."""
    for _ in range(TRIES):
        form = rng.choice(forms)
        try:
            values = chosen(rng, form, forced)
            if values != other:
                return build(values, spelling, form)
        except ImpossibleError:
            continue
    raise ImpossibleError(f"{'/'.join(forms)} with {dict(forced)}")


def chosen(rng: random.Random, form: str, forced: Mapping[str, str]) -> Values:
    """A value in every dimension; `form` says why the program should leak, or not (running it decides)."""
    values = {name: _value(rng, form, name, forced) for name in ("source", "holder", "carrier", "loop", "call")}
    values |= {name: _value(rng, form, name, forced) for name in ("model", "fate", "guard", "place", "decoy")}
    source, holder = tables.SOURCE[values["source"]], tables.HOLDER[values["holder"]]
    allowed = ways(source, holder, tables.LOOP[values["loop"]])
    if not allowed:
        raise ImpossibleError("no way in")
    values["way"] = forced["way"] if forced.get("way") in allowed else rng.choice(allowed)
    values |= {"mode": "on", "cut": "none", "cut_at": "put", "bound": "none"}
    values |= _form(rng, form, source.idle, "mode" not in forced)
    values |= {name: forced[name] for name in ("mode", "cut", "bound") if name in forced}
    return {name: values[name] for name in DIMENSIONS}


def _value(rng: random.Random, form: str, name: str, forced: Mapping[str, str]) -> str:
    """One of a table's values: the plain one mostly, where there is one."""
    drawn, strange = rng.random(), rng.random() < STRANGE
    if name in forced:
        return forced[name]
    plain = tables.PLAIN.get(name, "")
    differentiated = form == "differentiated"
    match name:
        case "source" if form == "waste":
            values = [k for k, s in tables.SOURCE.items() if s.idle or not s.trains]
        case "source":
            values = [k for k, s in tables.SOURCE.items() if not differentiated or (s.live and not s.trains)]
        case "fate":
            values = [k for k, f in tables.FATE.items() if f.differentiates == differentiated]
        case _:
            values = tables.dimensions()[name]
    if name not in ("source", "holder") and not strange and plain in values:
        return plain
    return values[int(drawn * len(values))]


def _form(rng: random.Random, form: str, idle: bool, free_mode: bool) -> Values:
    """What makes the program leak or not."""
    cuts = [name for name, cut in tables.CUT.items() if cut.cuts]
    others = [name for name, cut in tables.CUT.items() if not cut.cuts]
    match form:
        case "cut" | "waste":
            return {"cut": rng.choice(cuts), "cut_at": rng.choice(["put", "source"])}
        case "bound":
            return {"bound": rng.choice([name for name in tables.BOUND if name != "none"])}
        case "mode":
            modes = [name for name, mode in tables.MODE.items() if mode.off]
            if not idle:
                return {"mode": rng.choice(modes)}
            modes = [name for name in modes if tables.MODE[name].around == "pass"]
            return {"mode": rng.choice(modes), "cut": rng.choice(cuts)}
        case "leak":
            values = {}
            if free_mode and rng.random() < 0.25:
                values["cut"] = rng.choice(others)
            if rng.random() < 0.2:
                values["mode"] = rng.choice([name for name, mode in tables.MODE.items() if not mode.off])
            return values
    return {}

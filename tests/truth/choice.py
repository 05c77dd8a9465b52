"""One value in every dimension, and which values go together."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import tables
from .forms import Bound, Call, Carrier, Cut, Decoy, Fate, Guard, Holder, Loop, Mode, Model, Network, Place, Source

Values = dict[str, str]  # the name of a value, by dimension
DIMENSIONS = (
    "source carrier holder way loop call mode fate model guard place decoy cut cut_at bound".split()
)  # `cut_at`: "source" or "put"


class ImpossibleError(Exception):
    """The values make no program: choose others."""


@dataclass(frozen=True)
class Choice:
    """The entries that the values of a program name."""

    values: Values
    source: Source
    carrier: Carrier
    holder: Holder
    loop: Loop
    call: Call
    mode: Mode
    fate: Fate
    model: Model
    network: Network
    guard: Guard
    place: Place
    decoy: Decoy
    cut: Cut
    bound: Bound
    way: str
    cut_at_source: bool

    @classmethod
    def of(cls, values: Values) -> Choice:
        """Look the values up; what does not go together is not refused yet."""
        source = tables.SOURCE[values["source"]]
        return cls(
            dict(values),
            source,
            tables.CARRIER[values["carrier"]],
            tables.HOLDER[values["holder"]],
            tables.LOOP[values["loop"]],
            tables.CALL[values["call"]],
            tables.MODE[values["mode"]],
            tables.FATE[values["fate"]],
            tables.MODEL[values["model"]],
            tables.NETWORK[source.network],
            tables.GUARD[values["guard"]],
            tables.PLACE[values["place"]],
            tables.DECOY[values["decoy"]],
            tables.CUT[values["cut"]],
            tables.BOUND[values["bound"]],
            values["way"],
            values["cut_at"] == "source",
        )

    def cut_of(self, value: str) -> str:
        """The value after the cut."""
        text = self.source.cuts.get(self.values["cut"], self.cut.text)
        return text.replace("{v}", value)

    @property
    def inline(self) -> bool:
        """Whether the computation stands in the loop itself."""
        return self.values["call"] == "inline"


def ways(source: Source, holder: Holder, loop: Loop) -> list[str]:
    """The ways in that the holder has for such a value, in such a loop."""
    if source.carried:
        return [tables.CARRIED] if holder.kind == "sum" and loop.style != "collect" else []
    if loop.style == "collect":
        return [tables.COLLECTED] if holder.kind in loop.collects and not _is_call(holder) else []
    if holder.kind in ("own", "hook"):
        return list(holder.puts)
    attribute = re.fullmatch(r"[\w.{}]+\.\w+", holder.target) is not None
    return [
        name
        for name, way in tables.WAY[holder.kind].items()
        if (not way.tensor or holder.tensor)
        and (not way.attr or attribute)
        and (not way.scalar or source.scalar)
        and not (_is_call(holder) and way.put.startswith("{t} "))
    ]


def _is_call(holder: Holder) -> bool:
    """Whether the target cannot be assigned to."""
    return holder.target.endswith(")")


def check(choice: Choice) -> None:
    """Refuse what raises or means nothing."""
    for reason in (_value, _gradients, _holder, _loop, _limits, _files):
        if problem := reason(choice):
            raise ImpossibleError(problem)


def _value(c: Choice) -> str:
    """What a value can go through."""
    source, holder = c.source, c.holder
    if c.model.only not in ("", source.network):
        return "another network"
    if c.cut.scalar and not source.scalar:
        return "not a scalar"
    if source.carried and c.cut.reshapes:
        return "not a state"
    if source.cuts and c.values["cut"] not in ("none", *source.cuts):
        return "not a tensor"
    if not source.scalar and (holder.scalar_only or holder.tensor):
        return "a scalar slot"
    if not source.movable and not c.inline:
        return "the source stays inline"
    if c.way not in ways(source, holder, c.loop):
        return "no such way in"
    starts = "".join((*holder.top, *holder.init, *holder.attrs))
    if source.carried and source.initial != tables.ZERO and "{zero}" not in starts:
        return "another start"
    if "{m}" in source.initial and "{zero}" in "".join(holder.top):
        return "no model yet"
    if source.carried and c.values["carrier"] != "name":
        return "a state is not packed"
    if source.after and c.values["cut"] != "none" and c.cut_at_source:
        return "its graph is needed after the put"
    several = source.opaque or (source.carried and source.cuts)
    if several and any("{s}" in line for line in (*c.fate.body, *c.decoy.lines)):
        return "several tensors"
    if any("float({s})" in line for line in c.decoy.lines) and not source.scalar:
        return "no number"
    if source.opaque and (holder.kind not in ("list", "dict", "deque", "tuple") or c.fate.needs_fold or c.fate.kinds):
        return "nothing to fold"
    if holder.kind == "hook" and (
        c.cut.scalar
        or "x." in c.cut.text
        or source.network != "tensor"
        or source.carried
        or c.values["carrier"] != "name"
        or c.cut_at_source
    ):
        return "a hook sees the output"
    return ""


def _gradients(c: Choice) -> str:
    """Who goes backward, and through what."""
    source, mode, fate = c.source, c.mode, c.fate
    inference = "inference" in mode.wrap + mode.decorator
    if inference and (c.loop.threaded or (mode.around == "pass" and source.trains)):
        return "inference tensors are not saved"
    if mode.around == "put" and "cpu()" in c.cut.text and not c.cut.cuts:
        return "on an accelerator it is another tensor, without a graph"
    if mode.around == "pass":
        if (source.trains and not source.idle) or fate.differentiates or fate.drive:
            return "the pass is needed"
        if not any("#@pass" in line for line in source.lines):
            return "no line of its own"
    elif mode.off and (source.trains or fate.differentiates or fate.drive):
        return "no backward with gradients off"
    if fate.differentiates:
        if not source.live or c.cut.cuts:
            return "nothing left to differentiate"
        if not fate.window and c.values["bound"] != "none":
            return "emptied before it is differentiated"
        if source.trains or mode.around == "put":
            return "parameters change in place"
    return ""


def _holder(c: Choice) -> str:
    """What the holder can be asked for."""
    holder, fate, bound = c.holder, c.fate, c.values["bound"]
    unfoldable = holder.kind == "own" and not holder.fold
    unclearable = holder.kind in ("own", "hook") and not holder.clear
    if fate.kinds and holder.kind not in fate.kinds:
        return "another kind of holder"
    way = tables.WAY.get(holder.kind, {}).get(c.way)
    if fate.kinds and way and way.fold:
        return "no sequence of tensors"
    if fate.needs_fold and unfoldable:
        return "cannot be read back"
    if fate.window and (c.source.carried or unclearable or c.loop.style == "collect"):
        return "nothing to empty"
    if c.bound.kinds and holder.kind not in c.bound.kinds:
        return "cannot be bounded so"
    if bound != "none" and (c.source.carried or c.loop.style == "collect"):
        return "is not bounded"
    clears = any("{clear}" in line for line in c.bound.lines)
    if clears and unclearable:
        return "cannot be emptied"
    empty = clears or c.bound.parameters or any(".clear" in line for line in c.bound.lines)
    if empty and (fate.kinds or (fate.needs_fold and not c.source.scalar)):
        return "an empty sum has no shape"
    if c.bound.put and holder.kind not in c.bound.put:
        return "cannot be overwritten"
    if _is_call(holder) and any(line.startswith("{t} ") for line in c.bound.lines):
        return "cannot be assigned to"
    text = "\n".join(("", *holder.init, *holder.top, ""))
    if c.bound.swap[0] not in text:
        return "has no such limit"
    return ""


BINDING = re.compile(r"\w[\w, ]* = |def ")


def _loop(c: Choice) -> str:
    """What an iteration in a function, or in an expression, cannot have."""
    loop, style = c.loop, c.loop.style
    if style not in c.guard.styles:
        return "no such statement there"
    if style == "collect" and (
        c.decoy.lines or c.source.after or c.fate.body or c.mode.around == "put" or c.source.carried
    ):
        return "an expression has no statements"
    if style == "method":
        setup = (*c.source.setup, *c.bound.init, *c.decoy.init, *(c.holder.init if c.holder.local else ()))
        if any(BINDING.match(line) for line in setup) or c.mode.parameters or c.guard.parameters:
            return "a method does not see the host's names"
    if loop.threaded and (c.source.after or c.fate.body or c.decoy.lines):
        return "one thing in a thread"
    return ""


def _limits(c: Choice) -> str:
    """What the bound asks of the guard."""
    names = {name for name, _ in c.guard.parameters}
    if not {name for name, _ in c.bound.parameters} <= names:
        return "no such flag"
    return ""


def _files(c: Choice) -> str:
    """What has to be in one file."""
    place = c.place.files
    if c.holder.together and place.get("holder") != place.get("host"):
        return "a global of the host's file"
    if "holder" in place and place.get("holder") != place.get("host") and not c.holder.top:
        return "nothing to move"
    return ""

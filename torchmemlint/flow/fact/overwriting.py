"""Overwriting: tensors that are overwritten in place although something still needs them."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from itertools import pairwise

from torchmemlint.doubts import Doubt
from torchmemlint.flow.fact.layers import PARAMETER, SEQUENTIAL, Builders, Layer, Layers, first, last
from torchmemlint.flow.fact.walks import Walk, Watch
from torchmemlint.flow.fact.ways import NOTHING, Value, Version
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.ops import Function, Op, Unit
from torchmemlint.flow.ir.places import Name, Temp
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import activations, saved_tensors

_KEPT, _OVER = "kept", "over"
_EXPANDED = frozenset({"expand", "expand_as", "broadcast_to"})
_HARMLESS = frozenset("requires_grad_ detach_ share_memory_ set_ resize_".split())  # they leave the numbers as they are
_SEVERAL = "MultiheadAttention"  # it keeps all that it is given
_IDEMPOTENT = frozenset({"torch.nn.ReLU", "torch.nn.ReLU6"})  # twice applied they give what they give once
_COPYING = "copy_"
_FUNCTIONS = frozenset(f"{name}_" for name in activations.FUNCTIONS)


class Need(enum.Enum):
    """Why the old value is needed."""

    READ = "a later statement reads it"
    OUTPUT = "the operation that made it keeps its output for backward"
    INPUT = "an operation keeps it for backward"
    LEAF = "it is a parameter that requires gradients"
    EXPANDED = "its elements share memory"


@immutable()
class Overwritten:
    """A tensor is overwritten that is still needed."""

    need: Need
    at: Op  # what overwrites it
    other: Op | None  # what reads, keeps or made it
    what: str  # the name of the operation that keeps it
    target: Op | None  # what it is called there
    built: Op | None  # where the activation is built that works in place
    refused: bool  # will torch, or the backward of a function that is known to be differentiated, raise?
    doubts: frozenset[Doubt] = frozenset()

    @property
    def sign(self) -> str:
        """How it is written; empty for a call."""
        match self.at:
            case ops.Operate():
                return f"{self.at.operator}="
            case ops.SetItem():
                return "[...] ="
            case ops.CallMethod(place=place) if place is not None:
                return f".{self.at.name}()"
        return ""


def overwritten(builders: Builders, unit: Unit) -> Iterator[Overwritten]:
    """Yield what a file overwrites too early, one for each place."""
    found: dict[Op, list[Overwritten]] = {}
    for function in unit.functions:
        hazards = [*_of(builders, function)] if _overwrites(builders, function) else []
        if {"Sequential", "inplace"} <= function.mentions:
            hazards += _in_sequentials(builders, function)
        for hazard in hazards:
            found.setdefault(hazard.at, []).append(hazard)
    for hazards in found.values():
        yield min(hazards, key=lambda hazard: _ORDER[hazard.need])


_ORDER = {Need.LEAF: 0, Need.EXPANDED: 1, Need.OUTPUT: 2, Need.INPUT: 3, Need.READ: 4}


def _overwrites(builders: Builders, function: Function) -> bool:
    """Does a function change something in place, as far as its operations show, or may a layer of its class do so?"""
    bases = builders.index.order(function.cls) if function.cls is not None else ()
    if any("inplace" in method.mentions for base in bases for method in base.methods.values()):
        return True
    if "inplace" in function.mentions or not function.mentions.isdisjoint(_FUNCTIONS):
        return True
    return any(type(op) is ops.SetItem or getattr(op, "place", None) is not None for op in operations(function.body))


def _of(builders: Builders, function: Function) -> Iterator[Overwritten]:
    watch = _Hazards()
    walk = Walk(builders, function, watch)
    proof, doubts = _proven(walk)
    if proof:
        watch = _Hazards(doubts)
        walk = Walk(builders, function, watch, proof)
    for hazard in watch.found.values():
        unread = hazard.need is Need.READ and not isinstance(hazard.at, ops.Operate) and not walk.takers.get(hazard.at)
        if not unread:  # else the new value is what those who read the old name want
            yield hazard


def _proven(walk: Walk) -> tuple[Value, frozenset[Doubt]]:
    """Return what a backward pass shows to have a graph: the only thing that what it runs through was made of."""
    seen = {*walk.differentiated}
    todo, roots, parted = [*walk.differentiated], set[Version](), False
    while todo:
        version = todo.pop()
        maker = walk.makers[version]
        parted |= isinstance(version, tuple)
        if walk.is_live(frozenset({version})):
            return NOTHING, frozenset()
        if not maker.of:
            roots.add(version)
        todo += maker.of - seen
        seen |= maker.of
    if len(roots) != 1:
        return NOTHING, frozenset()
    return frozenset(roots), frozenset({Doubt.BESIDE}) if parted else frozenset()


class _Hazards(Watch):
    """Finds what is overwritten too early while a function is walked through."""

    def __init__(self, doubts: frozenset[Doubt] = frozenset()) -> None:
        self.found: dict[tuple[Op, Need], Overwritten] = {}
        self._doubts = doubts

    def given(self, walk: Walk, op: Op, name: str, layers: Layers, values: Sequence[Value]) -> None:
        """Note what an operation keeps for backward."""
        if walk.state.off or not values:
            return
        if not layers:
            short = saved_tensors.short(name)
            if short in saved_tensors.INPUT_KEPT and walk.is_live(values[0]):
                self._keep(walk, op, short, values[0])
            elif short in saved_tensors.OPERANDS_KEPT and len(values) > 1:
                for value, other in ((values[0], values[1]), (values[1], values[0])):
                    if walk.is_live(other):
                        self._keep(walk, op, short, value)
            return
        firsts = tuple(map(first, layers))
        kinds = {saved_tensors.short(layer.kind) for layer in firsts}
        kind = kinds.pop() if len(kinds) == 1 else ""
        weighed = walk.trains(firsts) and (kind in saved_tensors.INPUT_KEPT_FOR_WEIGHTS or kind == _SEVERAL)
        for value in values if kind == _SEVERAL else values[:1]:
            if weighed or (kind in saved_tensors.INPUT_KEPT and walk.is_live(value)):
                self._keep(walk, op, kind, value)

    def _keep(self, walk: Walk, op: Op, name: str, value: Value) -> None:
        if len(value) == 1:
            (version,) = value
            walk.state.mark(version, _KEPT, (op, name))

    def reads(self, walk: Walk, op: Op, value: Value, name: str) -> None:
        """Find what reads a value that has been overwritten under another name."""
        if len(value) != 1:
            return
        (version,) = value
        for hazard, by in walk.state.marked(version, _OVER):
            unknown = not name and isinstance(op, ops.Call | ops.CallMethod)  # it may begin with a ReLU of its own
            same = unknown and by is not None and by.kind in _IDEMPOTENT
            if op is not hazard.at and op.span[2:] >= hazard.at.span[2:] and not same:  # and not in another iteration
                self.found[hazard.at, Need.READ] = Overwritten(
                    Need.READ, hazard.at, op, "", hazard.target, hazard.built, False, frozenset({Doubt.INTENDED})
                )

    def overwrites(self, walk: Walk, op: Op, target: Temp, value: Value, by: Layer | None) -> None:
        """Find what still needs a value."""
        if len(value) != 1 or (isinstance(op, ops.CallMethod) and op.name in _HARMLESS):
            return
        (version,) = value
        built = by.made if by is not None and by.made is not op else None
        held = walk.reading.made.get(target)
        needed = None
        if not walk.state.off and not walk.state.evaluating:
            needed = self._needed(walk, op, version)
        if needed is not None:
            need, other, what = needed
            refused, doubts = self._is_refused(walk, need)
            doubts |= self._doubts
            self.found[op, need] = Overwritten(need, op, other, what, held, built, refused, doubts)
        if self._is_silent(walk, op, value, by):
            hazard = Overwritten(Need.READ, op, None, "", held, built, False)
            walk.state.mark(version, _OVER, (hazard, by))

    @staticmethod
    def _is_silent(walk: Walk, op: Op, value: Value, by: Layer | None) -> bool:
        """Does nothing about the operation say that it is there for its effect on who reads the old name?"""
        if isinstance(op, ops.Operate):
            return isinstance(op.place, Name) and walk.is_live(value)
        if by is None or not isinstance(op, ops.Call | ops.CallMethod) or op.dropped:
            return False
        return not walk.reading.called(op).endswith("_")

    def _needed(self, walk: Walk, op: Op, version: Version) -> tuple[Need, Op | None, str] | None:
        """Return why torch, or backward, does not allow that a version is overwritten."""
        maker = walk.makers[version]
        made = version if isinstance(version, Op) else None
        names = {saved_tensors.short(name) for name in maker.names}
        if names <= _EXPANDED:
            return Need.EXPANDED, made, names.pop()
        if maker.names == (PARAMETER,):
            if not walk.is_live(frozenset({version})) or not _is_own(walk, made):
                return None
            built = next((layer.made for layer in maker.layers), made)
            return Need.LEAF, built, "parameter"
        if walk.is_live(frozenset({version})) and _keeps_output(maker.names, maker.layers):
            return Need.OUTPUT, made, saved_tensors.short(maker.names[0])
        for kept, name in walk.state.marked(version, _KEPT):
            if kept is not op and not _updates_state(walk, op):
                return Need.INPUT, kept, name
        return None

    @staticmethod
    def _is_refused(walk: Walk, need: Need) -> tuple[bool, frozenset[Doubt]]:
        """Will torch or a backward raise, or is it not seen whether anything is differentiated?"""
        trains = "backward" in walk.function.mentions
        cls = walk.reading.cls
        is_forward = walk.function.name == "forward" and cls is not None and walk.builders.index.is_network(cls)
        if need in (Need.LEAF, Need.EXPANDED) or trains or is_forward:
            return True, frozenset()
        return False, frozenset({Doubt.UNDIFFERENTIATED})


def _is_own(walk: Walk, made: Op | None) -> bool:
    """Is a parameter changed where gradients are on? Elsewhere helpers do so that are called without gradients."""
    return walk.function.name in ("forward", "__init__") or not isinstance(made, ops.GetAttribute)


def _updates_state(walk: Walk, op: Op) -> bool:
    """`state.copy_(state * decay + x)`, outside of a forward and of training: who decodes does not differentiate."""
    if not isinstance(op, ops.CallMethod) or op.name != _COPYING:
        return False
    return walk.function.name != "forward" and "backward" not in walk.function.mentions


def _keeps_output(names: Sequence[str], layers: Layers) -> bool:
    if layers:
        return all(_keeps_its_output(last(layer)) for layer in layers)
    return all(map(saved_tensors.output_is_kept, names))


def _keeps_its_output(layer: Layer) -> bool:
    """Does a layer keep its output for backward? In-place LeakyReLU and its kin do, having nothing else."""
    if activations.module_kind(layer.kind) in activations.SAVES_ONE:
        return layer.in_place is True
    return bool(layer.kind) and saved_tensors.output_is_kept(layer.kind)


def _in_sequentials(builders: Builders, function: Function) -> Iterator[Overwritten]:
    """Yield the activations that overwrite what the layer before them in a Sequential has made."""
    reading = builders.reading(function)
    for call in (call for call in reading.calls if reading.called(call) == SEQUENTIAL):
        for before, after in pairwise(builders.children(function, call) or ()):
            if len(before) == len(after) == 1 and after[0].in_place and _keeps_its_output(before[0]):
                what, at = saved_tensors.short(before[0].kind), after[0].made
                if at is not None and at.owner.unit is function.unit:
                    yield Overwritten(Need.OUTPUT, at, before[0].made, what, None, at, True)

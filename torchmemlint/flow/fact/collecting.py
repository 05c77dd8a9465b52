"""Collecting: tensors without a graph that a loop keeps on a device, to bring them to the host when it has ended."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import How, Reading, Reset
from torchmemlint.flow.domain.provenance import Numbers
from torchmemlint.flow.domain.refs import Bare, Loop, Object, Point, Ref, first_key
from torchmemlint.flow.fact import extents
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.ir.defuse import definitions, operands
from torchmemlint.immutable import immutable


@immutable()
class Collected:
    """A list that grows on a device, though the program only wants a copy of it on the host."""

    point: Point
    on_device: Point  # what shows that the loop computes there
    to_host: Point
    loop: Loop
    doubts: frozenset[Doubt]


def collected(run: Run, evidence: Evidence) -> Iterator[Collected]:
    """Yield the lists of one run that grow on a device."""
    for keep in run.effects(fx.Keep):
        if not is_collection(keep):
            continue
        device = on_device(run, evidence, keep)
        to_host = _to_host(run, keep)
        if device is not None and to_host is not None and _is_only_moved(run, evidence, keep):
            doubts = evidence.cut | ({Doubt.GIVEN} if keep.phi in evidence.handed else set())
            doubts |= set() if _is_wide(keep) else {Doubt.SIZE}
            yield Collected(keep.point, device, to_host, keep.loop, doubts)


def is_collection(kept: fx.Keep) -> bool:
    """Does a collection that nothing empties take tensors without a graph that were not brought to the host?"""
    bare = all(type(source) is Bare and not source.host for source in kept.events)
    return bare and kept.how is How.COLLECTION and kept.reset is Reset.NEVER


def _is_wide(kept: fx.Keep) -> bool:
    """Is there something for every token or pixel, as what is done with it shows, and not a few numbers a sample?"""
    for op in kept.point.chain()[:1]:
        return extents.is_wide(definitions(op.owner), *operands(op))
    return False


def on_device(run: Run, evidence: Evidence, kept: fx.Keep) -> Point | None:
    """Return what brings to a device what is kept there, or what it is computed from."""
    comes_from = run.provenance.ancestors(kept.events, numbers=Numbers.ALL)
    for event, move in run.met(fx.Move):
        if move.to_host or any(first_key(r) == "device" for r in move.device.refs):
            continue
        if any(map(evidence.is_network, move.of.refs)):
            continue
        if kept.loop in run.over and not move.of.refs.isdisjoint(run.over[kept.loop].refs):
            return move.point  # a loader whose batches come on the device
        copies = {s for s in run.provenance.parents if type(s) is Bare and Point(s.site, s.context) == move.point}
        if kept.loop in event.loops and not comes_from.isdisjoint(copies or (move.of.refs | move.of.graph)):
            return move.point
    return None


def _to_host(run: Run, kept: fx.Keep) -> Point | None:
    """Return what brings to the host, after the loop, what was kept."""
    for event, move in run.met(fx.Move):
        later = move.to_host and kept.loop not in event.loops
        if later and kept.phi in run.provenance.ancestors(move.of.graph, numbers=Numbers.COPIED):
            return move.point
    return None


def _is_only_moved(run: Run, evidence: Evidence, kept: fx.Keep) -> bool:
    """Is all that is done with a list that it is joined, so that it holds no numbers, and brought to the host?"""
    holder, readings = kept.place[0], evidence.readings
    if not _is_local(run, holder) or kept.phi in readings.get(Reading.USED, ()):
        return False
    arrays = {s for read in run.effects(fx.Read) if read.reading is Reading.ARRAY for s in read.sources}
    as_arrays = kept.phi in run.provenance.ancestors(arrays, numbers=Numbers.COPIED)
    return as_arrays or kept.phi in readings.get(Reading.JOINED, ())


def _is_local(run: Run, holder: Ref | None) -> bool:
    is_list = type(holder) is Object and holder.kind is Kind.LIST
    return is_list and holder not in run.lasting() and holder not in run.given()

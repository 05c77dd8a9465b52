"""Retention: a graph is held longer than it is of use."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.manners import How, Reset, Stored
from torchmemlint.flow.domain.refs import (
    Graph,
    Input,
    Key,
    Leaf,
    Loop,
    Object,
    Parameters,
    Part,
    Phi,
    Place,
    Point,
    Ref,
    Result,
    Slot,
    Source,
    path,
    root,
    with_graphs,
)
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.owning import gathers_layers, is_of_network
from torchmemlint.flow.ir.blocks import is_inside
from torchmemlint.flow.ir.defuse import definitions, operands
from torchmemlint.flow.ir.filling import is_refilled
from torchmemlint.flow.ir.ops import Call, CallMethod, Class, Function, Load, Op
from torchmemlint.immutable import immutable


class Fate(enum.Enum):
    """What becomes of a graph."""

    EACH = "differentiated in every iteration"
    LATER = "differentiated after the loop"
    UNKNOWN = "leaves what was seen"
    NEVER = "never differentiated"


@immutable()
class Retention:
    """Something that keeps graphs."""

    point: Point
    holder: Ref | None
    key: Key
    how: How
    grows: bool
    spent: bool
    fate: Fate
    read: bool
    doubts: frozenset[Doubt]
    sources: frozenset[Source]
    stored: Stored
    useless: bool = False  # was it differentiated before, or are only numbers read of it where others are?
    loop: Loop | None = None


def retentions(run: Run, evidence: Evidence) -> Iterator[Retention]:
    """Yield what keeps graphs in one run."""
    returned = run.provenance.ancestors(run.returned)
    steps = _steps(run)
    for event, effect in run.met(fx.Keep):
        if run.life is not None and effect.loop not in run.life:
            continue  # seen where it is run once
        if run.life is not None and _is_argument(effect.place):
            continue  # the next call is given another one
        if effect.how is How.COLLECTION and effect.place[0] is not None and evidence.is_known(effect.place[0]):
            continue  # a network is put together of networks
        if not with_graphs(effect.events):
            continue  # tensors without a graph
        doubts = evidence.best(effect.sources, effect.events)
        if doubts is None:
            continue
        if effect.place[0] not in run.lasting() and not any(evidence.is_pass(e) for e in effect.events):
            continue  # operations on a graph that there is anyway, for as long as the call lasts
        spent = _is_spent(evidence, effect)
        if not spent and is_of_network(evidence.index, effect.loop):
            if is_chain(run, effect) or gathers_layers(evidence.index, effect.loop):
                continue  # layer after layer: one pass, or what passes will go through
            doubts |= {Doubt.LAYERS}
        fate = Fate.NEVER
        if _is_needed_after(evidence, event, effect) or effect.phi in evidence.for_more:
            fate = Fate.LATER  # whoever else keeps the graphs: they are needed then, or to make those of gradients
        elif effect.phi in evidence.differentiated_in and effect.how is not How.CACHE:
            inside = effect.loop in evidence.differentiated_in[effect.phi]
            fate = Fate.EACH if inside else Fate.LATER
            if fate is Fate.EACH and _is_of_few(run, event, effect):
                continue
            if fate is Fate.EACH and (
                is_refilled(effect.point.site) or (not any(steps) and _is_looked_through(run, effect.loop))
            ):
                continue
            if fate is Fate.EACH and any(part.key is Special.ELEMENT for part in path(effect.place[0])):
                doubts |= {Doubt.ITEM}  # it was taken from what is not known: perhaps another one each time
        elif not spent and _is_returned(run, effect, returned):
            fate = Fate.UNKNOWN
            is_task = isinstance(effect.loop.site, Op) and _is_evaluating(run, evidence, effect)
            doubts |= {Doubt.EVALUATED if is_task else Doubt.CALLER}
        elif effect.phi in evidence.handed and not spent:
            is_looked_at = evidence.is_read(effect.phi) and not evidence.differentiated
            doubts |= {Doubt.GIVEN if is_looked_at else Doubt.READER}
        if fate in (Fate.NEVER, Fate.UNKNOWN) and (_is_one_pass(run, effect) or _is_of_inputs(run, evidence, effect)):
            continue
        if spent and (_within_a_step(steps, event, effect) or _is_bounded(run, effect)):
            continue
        if _is_emptied(effect, fate):
            doubts |= {Doubt.RESET}
        read = evidence.is_read(effect.phi)
        if fate is Fate.NEVER and not read and any(map(_is_forward, effect.events)):
            doubts |= {Doubt.READER}
        holder, key = effect.place
        if holder is not None and _is_called_for(root(holder), effect.loop):
            doubts |= {Doubt.ITEM}  # perhaps another one each time, too
        yield Retention(
            effect.point,
            holder,
            key,
            effect.how,
            True,
            spent,
            fate,
            read,
            doubts,
            effect.events,
            effect.stored,
            loop=effect.loop,
        )
    for event, slotted in run.met(fx.Slotted):
        doubts = evidence.best(slotted.sources)
        graphs = {s for s in run.provenance.ancestors(slotted.sources, parts=False) if evidence.graph(s) is not None}
        if doubts is None or not any(map(_is_begun, graphs)) or _is_given_up(run, slotted.slot):
            continue
        if _is_passing(run, slotted.slot.holder, event.loops) or _is_of_pass(
            evidence, slotted.slot.holder, event.loops
        ):
            continue
        fate = Fate.NEVER
        if slotted.slot in evidence.differentiated:
            fate = Fate.EACH
        elif slotted.slot in returned:
            fate = Fate.UNKNOWN
            doubts |= {Doubt.CALLER}
        spent = graphs <= evidence.differentiated
        read = evidence.is_read(slotted.slot)
        if fate is Fate.NEVER and not read:
            doubts |= {Doubt.READER}
        yield Retention(
            slotted.point,
            slotted.slot.holder,
            slotted.slot.key,
            slotted.how,
            False,
            spent,
            fate,
            read,
            doubts,
            slotted.sources,
            slotted.stored,
            spent or (read and bool(evidence.differentiated)),
        )


def _is_forward(source: Source) -> bool:
    """Is it the pass of a network that nobody runs in what was seen? Who does may read what the network keeps."""
    return type(source) is Graph and isinstance(source.site, Function)


def _is_called_for(holder: Ref, loop: Loop) -> bool:
    """Does a call of what was not seen give it, in each iteration?"""
    if type(holder) is not Object or holder.kind is not Kind.OPAQUE:
        return False
    return isinstance(loop.site, Op) and _is_made_in(holder, loop)


def _is_argument(place: Place) -> bool:
    """Is it a part of what a method is given: a tensor that it works on in place, a list that it fills?"""
    holder, _ = place
    return holder is not None and type(root(holder)) is Input


def _is_of_few(run: Run, event: Event, effect: fx.Keep) -> bool:
    """Is a sum replaced, and differentiated under a test alone: does it bring together what a few iterations made?"""
    if effect.how is not How.SUM or effect.reset is Reset.NEVER or is_bent(run, effect):
        return False
    through = [e for e, one in run.met(fx.Differentiate) if effect.phi in run.provenance.ancestors(one.sources)]
    return bool(through) and not any(e.branches.items() <= event.branches.items() for e in through)


def is_bent(run: Run, effect: fx.Keep) -> bool:
    """Is something else than a weighted sum computed of what is kept? That may need all of it."""
    return any(effect.phi in run.provenance.ancestors(bend.sources) for bend in run.effects(fx.Bend))


def _is_bounded(run: Run, effect: fx.Keep) -> bool:
    """Does what holds it keep only a few: a deque with a limit? Of spent graphs, that is nothing."""
    holder, _ = effect.place
    return holder is not None and run.state.heap.get(holder, Special.BOUNDED) is not None


def _is_emptied(effect: fx.Keep, fate: Fate) -> bool:
    """Is it emptied so often, or with what is done with it, that what it keeps may be of no weight?"""
    if effect.reset is Reset.SELDOM:
        return fate is not Fate.NEVER or effect.how is not How.SUM
    return effect.reset is Reset.OFTEN


def _is_spent(evidence: Evidence, effect: fx.Keep) -> bool:
    """Has backward run through all passes among the graphs that an iteration adds; without any, through all graphs?"""
    graphs = {e for e in effect.events if evidence.graph(e) is not None}
    passes = set(filter(evidence.is_pass, graphs))
    return bool(graphs) and (passes or graphs) <= effect.spent


def _is_needed_after(evidence: Evidence, event: Event, effect: fx.Keep) -> bool:
    """Are the graphs of all iterations differentiated after the loop? Those of the last one need no loop, nor a phi."""
    known, found = evidence.differentiated_in, set[Loop]()
    for source in effect.events:
        if source not in known or effect.loop in evidence.differentiated_in[source]:
            return False
        found |= evidence.differentiated_in[source]
    return not found <= event.loops or any(type(s) is Phi for s in known)


def _is_evaluating(run: Run, evidence: Evidence, effect: fx.Keep) -> bool:
    """Does a module that was put into evaluation mode begin one of the graphs?"""
    above = run.provenance.ancestors(effect.events)
    return any(evidence.callees.get(s, set()) & evidence.evaluating for s in above)


def _is_begun(source: Source) -> bool:
    """Does a graph begin here? What only the caller gives is kept by the caller, too."""
    return isinstance(root(source), Graph | Part | Result)


def _is_given_up(run: Run, slot: Slot) -> bool:
    """Does a slot hold something else in the end?"""
    held = run.state.heap.get(slot.holder, slot.key)
    return held is not None and slot not in run.provenance.ancestors(held.graph)


def _is_passing(run: Run, holder: Ref, loops: frozenset[Loop]) -> bool:
    """Is an object that keeps a graph made in each of these iterations, and gone with it, as a variable is?"""
    left, seen = [holder], {holder}
    while left:
        one = left.pop()
        if type(one) is not Object or one.kind is Kind.FRAME or one in run.lasting() or one in run.given():
            return False
        if not all(_is_made_in(one, loop) for loop in loops):
            return False
        left += one.holders - seen
        seen |= one.holders
    return True


def _is_of_pass(evidence: Evidence, holder: Ref, loops: frozenset[Loop]) -> bool:
    """Is it (a part of) what a network gives anew in each iteration?"""
    result, made_in = root(holder), evidence.run.provenance.made_in
    return type(result) is Result and evidence.is_pass(result) and any(result in made_in(loop) for loop in loops)


def _is_made_in(made: Object | Leaf, loop: Loop) -> bool:
    """Is it made in each iteration of a loop? A life begins when its object has been made."""
    sites = (made.site, *made.context)
    if not isinstance(loop.site, Op):
        return not any(isinstance(site, Class) for site in sites)
    return is_inside(sites, loop.site)


def _is_returned(run: Run, effect: fx.Keep, returned: set[Source]) -> bool:
    """Is what is kept given to the caller, by itself or with the object that keeps it?"""
    if effect.phi in returned or effect.place[0] in run.given():
        return True
    return _is_replaced(run, effect) and not effect.events.isdisjoint(returned)


def _is_replaced(run: Run, effect: fx.Keep) -> bool:
    """Does an iteration replace what the one before it kept under the same key?"""
    if effect.how is How.OUTPUT:
        return False
    return effect.place[1] is not Special.ELEMENT and effect.phi not in run.provenance.ancestors(effect.sources)


def is_chain(run: Run, effect: fx.Keep) -> bool:
    """Does what an iteration makes come from what the one before it made, also apart from what is kept?"""
    ancestors = run.provenance.ancestors
    carried = {s for s in ancestors(effect.events) if type(s) is Phi and s.loop is effect.loop}
    return any(effect.events & ancestors((phi,)) for phi in carried) or all(
        type(one) is Graph and _is_layer(one.site, effect) for one in effect.events
    )


def _is_layer(site: object, effect: fx.Keep) -> bool:
    """Does an operation with parameters work on a variable that comes round: `x = F.conv2d(x, weights[i])`?"""
    holder, name = effect.place
    if holder is not None or not isinstance(site, Call | CallMethod) or not isinstance(effect.loop.site, Op):
        return False
    if site.owner is not effect.loop.site.owner:
        return False
    given = definitions(site.owner).origins(*operands(site))
    return any(isinstance(one, Load) and one.name.text == name for one in given)


def _is_one_pass(run: Run, effect: fx.Keep) -> bool:
    """Is it a pass that goes through the same layers again and again: is all that is left of it one result?"""
    return not effect.read and effect.place[0] is None and is_chain(run, effect)


def _is_of_inputs(run: Run, evidence: Evidence, effect: fx.Keep) -> bool:
    """Are tensors kept that each iteration makes and asks for gradients, of no network? Who gets them wants these."""
    if evidence.differentiated:
        return False
    above = run.provenance.ancestors(effect.events)
    leaves = [source for source in above if type(source) is Leaf]
    if not leaves or not all(_asks(leaf.site) and _is_made_in(leaf, effect.loop) for leaf in leaves):
        return False  # others are parameters, which are read off a network
    passes = {forward.graph for forward in run.effects(fx.Forward) if forward.module.refs}
    return passes.isdisjoint(above) and not any(type(root(s)) is Result and evidence.is_pass(s) for s in above)


def _asks(site: object) -> bool:
    """Does a call say itself that its result asks for gradients?"""
    named = isinstance(site, Call | CallMethod) and any(one.name == "requires_grad" for one in site.arguments)
    return named or (isinstance(site, CallMethod) and site.name == "requires_grad_")


def _within_a_step(steps: list[frozenset[Loop]], event: Event, kept: fx.Keep) -> bool:
    """Is a loop repeated within one step of training: does an optimizer step around it, but not in it?

    Beside it, too, where losses are summed up: what a list keeps is more than their nodes.
    """
    around = event.loops - {kept.loop}
    outside = (not one.isdisjoint(around) or (kept.how is How.SUM and one <= around) for one in steps)
    return not any(kept.loop in one for one in steps) and any(outside)


def _steps(run: Run) -> list[frozenset[Loop]]:
    """Return the loops around each step of an optimizer."""
    steps = (e for e in (*run.of(fx.Step), *run.of(fx.InvokeMethod)) if getattr(e.effect, "name", "") == "step")
    return [e.loops for e in steps]


def _is_looked_through(run: Run, loop: Loop) -> bool:
    """Is a graph that a loop lengthens kept on purpose: each time, for the gradient of an input?"""
    passes = [event.effect for event in run.of(fx.Differentiate) if loop in event.loops]
    if not passes or not all(one.retains for one in passes):
        return False
    return any(type(of) is not Parameters for of in run.read_gradients())


def backward_through(run: Run, kept: Retention) -> Point | None:
    """Return the first backward pass that runs through what is kept."""
    for differentiate in run.effects(fx.Differentiate):
        if not kept.sources.isdisjoint(run.provenance.ancestors(differentiate.sources)):
            return differentiate.point
    return None

"""Services: calls that manage memory or watch the program, and whether they are made for every batch."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from functools import cache, partial

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import contained
from torchmemlint.flow.domain.refs import Behind, Object, Point, Ref, root
from torchmemlint.flow.domain.values import NONE
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.conditions import is_met
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Event, Run, callee
from torchmemlint.flow.fact.numbers import Numbers
from torchmemlint.flow.ir.blocks import is_inside, operations
from torchmemlint.flow.ir.control import Break, For, Return, Try, With
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Call, Function, GetAttribute, Load, Op
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import services as known

_PASSES = (fx.Differentiate, fx.Forward, fx.Infer, fx.Invoke, fx.InvokeMethod)
_COUNTING = frozenset({"range", "trange"})
_TRAINING = frozenset("train fit backward step zero_grad training_step".split())


class Each(enum.Enum):
    """What shows that something happens for every batch."""

    LOADER = "the loop runs over the batches of a loader"
    BACKWARD = "the loop runs a backward pass each time"
    MODEL = "the loop runs a model each time"
    PHASES = "the loop runs over batches, and has loops of its own for several passes each time"
    CALLED = "a framework calls this function for every batch"
    STEP = "this function runs one backward pass and one optimizer step for what it is given"


@immutable()
class Service:
    """A call that a rule speaks of, with what shows that it is made each time."""

    code: str
    name: str  # qualified
    point: Point
    each: Each | None = None
    shown: Point | None = None
    inside: bool = False  # does the call stand in the loop itself?


_Shown = Callable[[fx.Repeat], tuple[Each, Point] | None]


def services(engine: Engine, done: list[tuple[Run, Evidence]]) -> Iterator[Service]:
    """Yield the calls in some files that cost more than they give."""
    met = [
        (run, evidence, event, effect)
        for run, evidence in done
        for event, effect in run.met(fx.Serve)
        if effect.name in known.NOTED and effect.point.chain()
    ]
    names = {effect.name for _, _, _, effect in met}
    switched_off = any(e.name in known.ANOMALY_SWITCH and _flag(e, "mode") is False for _, _, _, e in met)
    looked_at = not names.isdisjoint(known.RECORDED) or any(
        e.name in known.RECORDING and not _flag(e, "enabled") for _, _, _, e in met
    )
    measuring = {e.point.chain()[0].owner for _, _, _, e in met if e.name in known.MEASURING}
    shown = cache(partial(_shown, engine))
    for run, evidence, event, effect in met:
        owner = effect.point.chain()[0].owner
        if any(type(one.point.site) is Try for one in event.around):
            continue  # where something was raised
        collects = (
            effect.name in known.COLLECT and not effect.arguments.all() and names.isdisjoint(known.COLLECTOR_CHOSEN)
        )
        if (effect.name in known.EMPTY_CACHE or collects) and owner not in measuring:
            found = _each(engine, run, event, partial(shown, run, evidence))
            if found is not None:
                yield Service("TML503" if collects else "TML502", effect.name, effect.point, *found)
        around = _is_entered(effect)
        if (around or _trains(owner)) and all(is_met(fork, branch) for fork, branch in event.branches.items()):
            switches = effect.name in known.ANOMALY_SWITCH and _flag(effect, "mode") is True and not _is_option(effect)
            switches = switches and (around or not switched_off)
            records = effect.name in known.RECORDING and _flag(effect, "enabled") is not False and not looked_at
            profiled = _profiled(run, effect, partial(shown, run, evidence)) if effect.name in known.PROFILING else None
            if switches or records or profiled is not None or effect.name in known.ANOMALY_CONTEXT:
                yield Service("TML605", effect.name, effect.point, shown=profiled)


def _flag(effect: fx.Serve, name: str) -> bool | None:
    """Return what a call switches on or off: on, if it does not say; None if it is not known."""
    value = effect.arguments.get(0, name)
    if value is None:
        return True
    return bool(value.constant) if value.known else None


def _is_option(effect: fx.Serve) -> bool:
    """Does an attribute say whether a mode is switched on, or an argument with a default? Others may choose."""
    op = effect.point.chain()[0]
    made = definitions(op.owner).made
    options = {parameter.name for parameter in op.owner.parameters if parameter.has_default}
    for one in getattr(op, "arguments", ())[:1]:
        by = made.get(one.temp)
        if isinstance(by, GetAttribute) or (isinstance(by, Load) and by.name.text in options):
            return True
    return False


def _trains(function: Function) -> bool:
    """Is this a file's body, a function that trains, or the constructor or a property of an object that does?"""
    if function.parent is None:
        return True
    each = function.name == "__init__" or function.is_decorated("property", "cached_property")
    those = function.cls.methods.values() if function.cls is not None and each else (function,)
    names = (name for one in those for name in one.mentions)
    return any(name in _TRAINING or name.startswith(("train", "run_train")) for name in names)


def _profiled(run: Run, effect: fx.Serve, shown: _Shown) -> Point | None:
    """Return the loop over batches that a profiler records from its first batch to its last; None where it does not."""
    op, schedule = effect.point.chain()[0], effect.arguments.named.get("schedule", NONE)
    within = _entered(op)
    if within is None or _flag(effect, "enabled") is False or not (schedule.known and schedule.constant is None):
        return None
    for event in run.events:
        for loop in (one for one in event.around if isinstance(one, fx.Repeat)):
            point = Point(loop.loop.site, loop.loop.context)
            if is_inside(point.chain(), within) and not _is_short(loop) and shown(loop) is not None:
                return point
    return None


def _is_short(loop: fx.Repeat) -> bool:
    """May it be left early, or does it count to a number that is written down?"""
    site = loop.loop.site
    if not isinstance(site, For) or any(isinstance(op, Break | Return) for op in operations(site.body)):
        return True
    flow = definitions(site.owner)
    made = flow.made.get(site.source)
    if not isinstance(made, Call) or flow.path(made.callee) not in _COUNTING:
        return False
    return bool(made.arguments) and Numbers(site.owner, flow).at_most(made.arguments[-1].temp) is not None


def _is_entered(effect: fx.Serve) -> bool:
    """Is what a call gives entered as a context? It has a body to work on, and ends with that."""
    return _entered(effect.point.chain()[0]) is not None


def _entered(op: Op) -> With | None:
    return next((taker for taker in definitions(op.owner).following(op) if type(taker) is With), None)


def _each(engine: Engine, run: Run, event: Event, shown: _Shown) -> tuple[Each, Point, bool] | None:
    """Return what shows that an event happens for every batch, where that is, and whether it stands in the loop."""
    found = _in_loop(engine, event, shown)
    if found is None and (backward := _backward_of_step(run, event)) is not None:
        return Each.STEP, backward, False
    return found


def _backward_of_step(run: Run, event: Event) -> Point | None:
    """Return the backward pass of the function that makes a call, if it is a step of a training: one for each batch.

    It runs one and steps an optimizer, both outside of its loops, and is given something to do so with.
    """
    function = event.effect.point.chain()[0].owner
    if function.parent is None or not roles.is_given(function) or not _is_plain_in(function, event):
        return None
    if any(isinstance(e, fx.Fork) and _owner(e) is function and not is_met(e, event.branches[e]) for e in event.around):
        return None
    if not any(step.name == "step" and _is_plain_in(function, one) for one, step in run.met(fx.Step)):
        return None
    passes = (one for one in run.of(fx.Differentiate) if _is_plain_in(function, one))
    return next((one.effect.point for one in passes), None)


def _is_plain_in(function: Function, event: Event) -> bool:
    """Does something happen in a function, or in what that calls, and in none of the loops in there?"""
    chain = event.effect.point.chain()
    owners = [op.owner for op in chain]
    if function not in owners:
        return False
    within = {function, *owners[: owners.index(function)]}
    return not any(isinstance(e, fx.Repeat) and _owner(e) in within for e in event.around)


def _owner(effect: fx.Repeat | fx.Fork) -> Function | None:
    """Return the function in which a loop or test stands."""
    site = effect.loop.site if isinstance(effect, fx.Repeat) else effect.point.site
    return site.owner if isinstance(site, Op) else None


def _in_loop(engine: Engine, event: Event, shown: _Shown) -> tuple[Each, Point, bool] | None:
    """Return the same for what a loop repeats, or what a framework calls."""
    repeats = [e for e in event.around if isinstance(e, fx.Repeat) and isinstance(e.loop.site, Op)]
    loop = repeats[-1] if repeats else None
    within = event.around[event.around.index(loop) :] if loop is not None else event.around
    if not all(is_met(e, event.branches[e]) for e in within if isinstance(e, fx.Fork)):
        return None
    site = event.effect.point.chain()[0]
    if loop is None:
        is_called = roles.is_called_for_batches(engine, site.owner)
        return (Each.CALLED, event.effect.point, False) if is_called else None
    assert isinstance(loop.loop.site, Op)
    inside = loop.loop.site.owner is site.owner
    found = shown(loop)
    return (*found, inside) if found is not None else None


def _shown(engine: Engine, run: Run, evidence: Evidence, loop: fx.Repeat) -> tuple[Each, Point] | None:
    """Return what shows that a loop has one round for each batch, and no other loop in it has."""
    passes = [event for event in passes_of(run, evidence) if loop in event.around]
    deeper = [e for e in passes if innermost(engine, e) is not loop]
    backward = next((e for e in passes if type(e.effect) is fx.Differentiate), None)
    loaders = engine.index.contracts.names("loaders")
    if any(type(r) is Object and str(r.about) in loaders for r in contained(run.state, [loop.over])):
        each = Each.PHASES if deeper else Each.LOADER  # once for many passes: it costs next to nothing
        return None if deeper and backward is None else (each, Point(loop.loop.site, loop.loop.context))
    runs = [e for e in passes if type(e.effect) is not fx.Differentiate]
    lasting = [e for e in runs if not any(_is_another(run, loop, r) for r in callee(e.effect))]
    if deeper or (runs and not lasting):
        return None  # passes have a loop of their own, or each round has a network of its own
    if backward is not None:
        return Each.BACKWARD, backward.effect.point
    return (Each.MODEL, lasting[0].effect.point) if lasting else None


def innermost(engine: Engine, event: Event) -> fx.Repeat | None:
    """Return the innermost loop around an event, but for those of a network's forward: they are parts of one pass."""
    for effect in reversed(event.around):
        if isinstance(effect, fx.Repeat):
            site = effect.loop.site
            if not (isinstance(site, Op) and roles.is_of_forward(engine, site.owner)):
                return effect
    return None


def passes_of(run: Run, evidence: Evidence, since: int = 0) -> Iterator[Event]:
    """Yield the backward and forward passes among the events of a run, from one of these on."""
    for event in run.events[since:]:
        effect = event.effect
        if type(effect) in _PASSES and (
            not isinstance(effect, fx.Invoke | fx.InvokeMethod) or evidence.is_pass(effect.result)
        ):
            yield event


def _is_another(run: Run, loop: fx.Repeat, module: Ref) -> bool:
    """Is it another network in each iteration of a loop, which takes or makes it?"""
    begin = root(module)
    if begin in run.provenance.made_in(loop.loop):
        return True
    if type(module) is Behind and any(r is begin or r is module.base for r in loop.over.refs):
        return True
    site = getattr(begin, "site", None)
    return isinstance(site, Op) and isinstance(loop.loop.site, Op) and loop.loop.site.contains(site)

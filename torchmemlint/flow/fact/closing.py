"""Closing: code under `torch.no_grad()` that no tensor which is made in it leaves for what may record a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import HOLDERS, Mode, reached
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.provenance import Numbers
from torchmemlint.flow.domain.refs import Bare, Object, Point, Site, Source
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.reasons import Pass
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import Await, With, Yield
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Bind, Call, CallMethod, Define, DefineClass, Function, Load, Op, Operate, Span
from torchmemlint.flow.ir.places import Name, Scope
from torchmemlint.immutable import immutable

_NO_GRAD = frozenset({"torch.no_grad", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad"})
_READ = frozenset({Reading.NUMBER, Reading.ARRAY, Reading.TEXT})


class Guard(NamedTuple):
    """`torch.no_grad()` as a context or decorator."""

    function: Function
    span: Span


@immutable()
class Closed:
    """A guard with the passes that run under it. `leaves`: a tensor that is made there leaves it."""

    guard: Guard
    passes: tuple[Op, ...]  # the operations of the function that lead to them
    leaves: bool
    doubts: frozenset[Doubt]


class Guards:
    """The guards of functions, by the operations that run under them."""

    def __init__(self) -> None:
        self._known: dict[Function, dict[Op, Guard]] = {}

    def around(self, point: Point) -> set[Guard]:
        """Return the guards that something happens under."""
        found = (self._of(op.owner).get(op) for op in point.chain())
        return {guard for guard in found if guard is not None}

    def _of(self, function: Function) -> dict[Op, Guard]:
        known = self._known.get(function)
        if known is None:
            known = self._known[function] = {}
            if "no_grad" in function.mentions or any(d.name in _NO_GRAD for d in function.decorators):
                self._collect(function, known)
        return known

    def _collect(self, function: Function, into: dict[Op, Guard]) -> None:
        for decorator in function.decorators:
            if decorator.name in _NO_GRAD and decorator.called and not decorator.arguments:
                _put(Guard(function, decorator.span), function.body, into)
        flow = definitions(function)
        for op in (op for op in operations(function.body) if isinstance(op, With)):
            for temp in op.contexts:
                made = flow.made.get(temp)
                if isinstance(made, Call | CallMethod) and not made.arguments and flow.called(made) in _NO_GRAD:
                    _put(Guard(function, made.span), op.body, into)


def _put(guard: Guard, body: Iterable[Op], into: dict[Op, Guard]) -> None:
    """Note what runs under a guard: nothing where it is left on the way, or where a function keeps its variables."""
    ops = list(operations(body))
    bound = set(_names(ops, Bind, Operate))
    if not any(_lasts(op, bound) for op in ops):
        into.update(dict.fromkeys(ops, guard))


def _lasts(op: Op, bound: Set[str]) -> bool:
    if isinstance(op, Define):
        return op.function.name != "<genexpr>" and (bool(op.defaults) or not bound.isdisjoint(_taken(op.function)))
    return isinstance(op, DefineClass | Yield | Await)


def _taken(function: Function) -> Iterator[str]:
    """Yield the variables of functions around it that a function uses."""
    for one in (function, *function.nested):
        yield from _names(operations(one.body), Load, Bind, Operate, scope=Scope.CELL)
        if one is not function:
            yield from _taken(one)


def _names(ops: Iterable[Op], *kinds: type[Op], scope: Scope | None = None) -> Iterator[str]:
    """Yield the names that operations of some kinds read or bind."""
    for op in ops:
        name = getattr(op, "place" if isinstance(op, Operate) else "name", None) if isinstance(op, kinds) else None
        if isinstance(name, Name) and (scope is None or name.scope is scope):
            yield name.text


def closed(run: Run, evidence: Evidence, guards: Guards) -> Iterator[Closed]:
    """Yield the guards of one run under which networks run."""
    passes: dict[Guard, dict[Point, None]] = {}
    for event in inferring(run, evidence):
        for guard in guards.around(event.effect.point):
            passes.setdefault(guard, {})[event.effect.point] = None
    if not passes:
        return
    made: dict[Guard, set[Source]] = {}
    points: dict[Point, set[Source]] = {}
    for source in run.provenance.parents:
        if type(source) is Bare:
            point = Point(source.site, source.context)
            points.setdefault(point, set()).add(source)
            for guard in guards.around(point):
                made.setdefault(guard, set()).add(source)
    leaving, read = _leaving(run, evidence), _read(run)
    for guard, found in passes.items():
        inside = made.get(guard, set())
        dropped = any(points.get(point, set()).isdisjoint(read) for point in found)  # run for what it leaves behind
        leaves = dropped or not inside.isdisjoint(leaving) or _hands_out_new(run, guard, guards)
        ops = dict.fromkeys(op for point in found for op in point.chain() if op.owner is guard.function)
        yield Closed(guard, tuple(ops), leaves, evidence.cut)


def inferring(run: Run, evidence: Evidence) -> Iterator[Event]:
    """Yield the passes of networks with gradients off."""
    yield from run.of(fx.Infer)
    for event, call in run.calls():
        if call.mode is Mode.OFF and not evidence.callees[call.result].isdisjoint(evidence.networks):
            yield event


def _leaving(run: Run, evidence: Evidence) -> set[Source]:
    """Return what code that was not seen may get, or what meets an operation that may record a graph."""
    found = set(run.returned) if run.entry.parent is not None else set[Source]()
    for holder in run.lasting():
        for value in run.state.heap.edges(holder).values():
            found |= value.graph
    for call in run.unseen():
        if evidence.callees[call.result].isdisjoint(evidence.networks):
            for value in call.arguments.all():
                found |= reached(run.state, value, HOLDERS)
    return run.provenance.ancestors(found) | evidence.readings.get(Reading.MET, set())


def _read(run: Run) -> set[Source]:
    """Return what numbers that are read come from."""
    sources = {s for read in run.effects(fx.Read) if read.reading in _READ for s in read.sources}
    return run.provenance.ancestors(sources, numbers=Numbers.ALL)


def _hands_out_new(run: Run, guard: Guard, guards: Guards) -> bool:
    """Is a tensor that a factory makes there given to the caller, or kept?"""
    kept = run.given() | run.lasting() if run.entry.parent is not None else set()
    new = (r for r in kept if type(r) is Object and r.kind is Kind.TENSOR)
    return any(guard in guards.around(Point(r.site, r.context)) for r in new)


# Operations that run a network with gradients off wherever somebody is seen to lead there.


class Guarding:
    """What some runs show of who runs networks with gradients off."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._off: set[Site] = set()
        self._on: set[Site] = set()  # in what is run as a program
        for run in runs:
            self._off.update(*(effect.point.chain() for effect in run.effects(fx.Infer)))
            if run.entry.parent is None:
                self._on.update(*(effect.point.chain() for effect in run.effects(fx.Forward)))

    def is_doubtful(self, run: Run, one: Pass) -> bool:
        """Does only a function that nothing calls lead to a pass with gradients on, and all others without?"""
        site, entry = one.point.site, run.entry
        called = entry.parent is None or run.method_of is not None or len(one.point.chain()) < 2
        return not called and site in self._off and site not in self._on

"""Loading: files of tensors that are read, what becomes of what they hold, and whether that lies on the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.domain.effects import Evidence as Shown
from torchmemlint.flow.domain.heap import HOLDERS, contained, reachable, reached
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.provenance import Numbers
from torchmemlint.flow.domain.refs import Bare, Object, Point, Ref, is_outside, root
from torchmemlint.flow.domain.values import PLAIN, Value
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.files import file_in_program, is_for_ranks, path_given
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.weights import weights
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.defuse import definitions, operands
from torchmemlint.flow.ir.ops import CallMethod, Constant, Function, Op, Operate
from torchmemlint.flow.ir.places import Spread
from torchmemlint.knowledge import checkpoints as known

_MODULE = frozenset({Shown.MODULE, Shown.EVALUATING, Shown.TRAINING})
_COMPUTED = (Reading.USED, Reading.MET, Reading.JOINED)


@dataclass(slots=True)
class Load:
    """A file that is read, and what becomes of what it holds in all runs."""

    op: Op
    name: str  # qualified, of the function that reads it
    as_saved: bool  # for certain no `map_location`: everything goes back to the device that it was saved from
    on_host: bool = False  # `map_location` is seen to say so
    copied: Point | None = None  # where it is copied into tensors that exist already
    to_modules: bool = False  # are these not only an optimizer's?
    module: Point | None = None  # what shows that it holds a module
    saved: Point | None = None  # where it, or what is computed from it, is saved to another file
    returned: bool = False  # is it given to callers that are not in view?
    adopted: bool = False  # did some of its tensors become parameters as they are?
    large: bool = False  # may these have much of it?
    own: bool = False  # has the program itself saved it before?
    open: bool = False  # is more done with it than that it is copied, or read as numbers?
    # The runs of it, with where it is copied.
    seen: list[tuple[Run, Evidence, Event, list[Event]]] = field(default_factory=list, repr=False)

    @property
    def small(self) -> bool:
        """Is it known to be copied into little?"""
        return self.copied is not None and not self.large


class Loading:
    """The files that are read in some runs, and where files are saved."""

    def __init__(self, engine: Engine, done: Iterable[tuple[Run, Evidence]]) -> None:
        self._engine = engine
        self.loads: dict[Op, Load] = {}
        self._settled: set[tuple[Function, object]] = set()  # files that a function places or has saved, as written
        self._saved: list[bool] = []  # is it on the host?
        for run, evidence in done:
            self._collect(run, evidence)

    def of_owners(self) -> Iterator[Load]:
        """Yield the loads that put back what they read where it was saved, unless their function knows better."""
        for load in self.loads.values():
            file = (load.op.owner, _file(load.op))
            wanted = load.as_saved and not load.adopted  # where the parameters are wanted, that is
            own = load.own and not is_for_ranks(load.op.owner.unit)
            if wanted and not own and file not in self._settled and "quantize_dynamic" not in load.op.owner.mentions:
                yield load

    def is_mixed(self, load: Load) -> bool:
        """Does its function compute something of its tensors and those of another file, which must be on one device?"""
        flow, owner = definitions(load.op.owner), load.op.owner
        own = {one for one in self.loads if one.owner is owner}
        for op in operations(owner.body) if len(own) > 1 else ():
            if type(op) is Operate:
                sides = [own.intersection(flow.origins(one)) for one in operands(op)]
                if all(sides) and len(sides) > 1 and load.op in (met := set().union(*sides)) and len(met) > 1:
                    return True
        return False

    @property
    def saves_from_host(self) -> bool:
        """Was all that is seen to be saved moved to the host first?"""
        return bool(self._saved) and all(self._saved)

    def _collect(self, run: Run, evidence: Evidence) -> None:
        read: dict[Point, Load] = {}
        written: list[tuple[object, Event]] = []
        for event, effect in run.met(fx.Serve):
            if not effect.point.chain():
                continue
            op = effect.point.chain()[0]
            if effect.name == known.SAVING:
                self._settled.add((op.owner, _file(op, 1)))
                written.append((file_in_program(effect.point.chain(), 1), event))
                self._saved.append(_is_on_host(run, effect, op))
            if effect.name in known.LOADERS:
                load = read[effect.point] = self._read(op, effect.name)
                load.seen.append((run, evidence, event, []))
                file = file_in_program(effect.point.chain(), 0)
                load.own |= any(file == saved and _is_led_to(event, by) for saved, by in written if file is not None)
        if read:
            _Fates(self._engine, run, evidence, read).note()

    def _read(self, op: Op, name: str) -> Load:
        load = self.loads.get(op)
        if load is None:
            load = self.loads[op] = Load(op, name, _is_as_saved(op, known.LOADERS[name]))
            if not load.as_saved:
                self._settled.add((op.owner, _file(op)))
        return load


class _Fates:
    """What becomes of what files hold, in one run."""

    def __init__(self, engine: Engine, run: Run, evidence: Evidence, read: dict[Point, Load]) -> None:
        self.engine, self.run, self.evidence, self.read = engine, run, evidence, read

    def note(self) -> None:
        """Add to the loads what this run shows of them."""
        run = self.run
        for source in run.provenance.parents:
            if type(source) is Bare and source.host and (point := Point(source.site, source.context)) in self.read:
                self.read[point].on_host = True
        taking = set(map(id, self._takings()))
        for use in run.effects(fx.Use):
            load = self.read.get(file_of(use.reference) or use.point) if use.evidence in _MODULE else None
            if load is not None:
                load.module = load.module or use.point
        for call in run.unseen():
            if id(call) not in taking:
                self._open(value for value in call.arguments.all())
        for point in self._held(Value(graph=frozenset(self.evidence.readings.get(Reading.ADOPTED, ())))):
            self.read[point].adopted = self.read[point].open = True
        computed = {s for how in _COMPUTED for s in self.evidence.readings.get(how, ())}
        self._open([Value(graph=frozenset(computed))])
        self._open(value for holder in outliving(run) for value in run.state.heap.edges(holder).values())
        for serve in run.effects(fx.Serve):
            if serve.name == known.SAVING:
                for point in self._held(serve.arguments.value(0, "obj")):
                    self.read[point].saved = serve.point
        if run.entry.parent is not None:
            given = [run.result, Value(graph=run.returned)]
            for point in {point for value in given for point in self._held(value)}:
                self.read[point].returned |= self.read[point].op.owner is run.entry
            self._open(given)
        for load in self.read.values() if run.cut else ():
            load.open = True

    def _open(self, values: Iterable[Value]) -> None:
        for point in {point for value in values for point in self._held(value)}:
            self.read[point].open = True

    def _takings(self) -> Iterator[Effect]:
        """Yield the calls by which objects take over states, having noted which of them were read."""
        run = self.run
        for event in (*run.of(fx.Serve), *run.of(fx.InvokeMethod), *run.of(fx.Invoke)):
            effect = event.effect
            match effect:
                case fx.Serve(name=known.RESTORING | known.BUILDING, arguments=given):
                    receiver, state, given = given.value(0), given.get(1, "state_dict"), given.rest()
                case fx.InvokeMethod(name=known.RESTORING, receiver=receiver, arguments=given):
                    state = given.get(0, "state_dict")
                case fx.InvokeMethod(arguments=given) | fx.Invoke(arguments=given) if _builds(effect):
                    receiver, state = PLAIN, given.named.get("state_dict")
                case _:
                    continue
            yield effect
            assigns = given.constant(2, "assign", False) is not False
            what = _written(effect)  # what it is loaded into
            for point in self._held(state) if state is not None else ():
                load = self.read[point]
                if assigns:
                    load.open = True  # the loaded tensors themselves become the parameters
                elif _has_tensors(self.evidence, receiver, what):
                    load.copied = load.copied or effect.point
                    load.large = load.large or not weights(self.engine, self.run.state, receiver).are_small
                    load.to_modules = load.to_modules or not _is_optimizer(receiver, what)
                    for run_, _, read, copies in load.seen:
                        if run_ is run and read.effect.point == point:
                            copies.append(event)

    def _held(self, value: Value) -> set[Point]:
        """Return the files of which a value holds something."""
        state, found = self.run.state, set[Point]()
        sources = reached(state, value, HOLDERS)
        for source in self.run.provenance.ancestors(sources, numbers=Numbers.COPIED) | contained(state, [value]):
            if (point := file_of(source)) is not None and point in self.read:
                found.add(point)
        return found


def _is_led_to(event: Event, other: Event) -> bool:
    """Does one thing happen whenever another has happened before, as far as tests decide it?"""
    return event.branches.items() <= other.branches.items()


def outliving(run: Run) -> set[Ref]:
    """Return what outlives a run, or is given to whoever called it; of files, what something else holds of them."""
    if run.entry.parent is None:
        return set()
    holders = (h for h in run.state.heap.table if h is run.receiver or (is_outside(h) and file_of(h) is None))
    return reachable(run.state, holders) | run.given()


def file_of(reference: Ref) -> Point | None:
    """Return where a file was read that something was a part of."""
    begin = root(reference)
    if type(begin) is Bare or (type(begin) is Object and begin.about in known.LOADERS):
        return Point(begin.site, begin.context)
    return None


def _builds(effect: Effect) -> bool:
    op = next(iter(effect.point.chain()), None)
    return isinstance(op, CallMethod) and op.name == known.BUILDING


def _written(effect: Effect) -> str:
    """Return what a state is loaded into, as written."""
    op = next(iter(effect.point.chain()), None)
    if not isinstance(op, CallMethod) or op.name == known.BUILDING:
        return ""
    return definitions(op.owner).path(op.base).lower()


def _names(receiver: Value) -> list[str]:
    return [str(r.about).lower() for r in receiver.refs if type(r) is Object and r.kind is Kind.OPAQUE]


def _has_tensors(evidence: Evidence, receiver: Value, written: str) -> bool:
    """May an object have tensors for a state? A module or optimizer has; of others, what they are called tells."""
    if any(evidence.is_known(r) or (type(r) is Object and r.kind is Kind.OPTIMIZER) for r in receiver.refs):
        return True
    return not any(word in name for word in known.WITHOUT_TENSORS for name in (written, *_names(receiver)))


def _is_optimizer(receiver: Value, written: str) -> bool:
    kinds = {r.kind for r in receiver.refs if type(r) is Object}
    if kinds & {Kind.OPTIMIZER, Kind.MODULE, Kind.INSTANCE}:
        return kinds == {Kind.OPTIMIZER}
    return any(known.OPTIMIZER in name for name in (written, *_names(receiver)))


# The calls that read and save.


def _is_as_saved(op: Op, position: int) -> bool:
    """Does a call say for certain not where to put what it reads?"""
    given = getattr(op, "arguments", ())
    if any(a.spread in (Spread.STAR, Spread.STARS) for a in given):
        return False
    placed = [a for n, a in enumerate(given) if a.name == "map_location" or (n == position and not a.name)]
    made = definitions(op.owner).made
    return all(isinstance(by := made.get(a.temp), Constant) and by.value is None for a in placed)


def _file(op: Op, position: int = 0) -> object:
    """Return which file a call reads or saves, as written."""
    temp = path_given(op, position)
    return None if temp is None else definitions(op.owner).written(temp)


def _is_on_host(run: Run, effect: fx.Serve, op: Op) -> bool:
    """Does what is saved lie on the host: all of it that is known to be tensors?"""
    if not known.TO_HOST.isdisjoint(op.owner.mentions):
        return True
    found = reached(run.state, effect.arguments.value(0, "obj"), HOLDERS)
    return all(s.host for s in found if type(s) is Bare)

"""Evidence: which sources have a graph, and with which doubts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from torchmemlint.doubts import Doubt, rank
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Evidence as Shown
from torchmemlint.flow.domain.heap import HOLDERS, Mode, ModeOf, reached
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import GOING_ON, Reading
from torchmemlint.flow.domain.provenance import Numbers
from torchmemlint.flow.domain.refs import (
    NO_PATH,
    Bare,
    Behind,
    Graph,
    Loop,
    Object,
    Part,
    Passed,
    Point,
    Ref,
    Result,
    Source,
    first_key,
    path,
    root,
    with_graphs,
)
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.measuring import measured
from torchmemlint.flow.fact.methods import Methods, stripped, worlds
from torchmemlint.flow.fact.nothings import is_missing, tools
from torchmemlint.flow.fact.owning import constructs_network, owned
from torchmemlint.flow.models import contracted, gradients
from torchmemlint.knowledge import modules

_FOLLOWED = dict.fromkeys(GOING_ON, Numbers.COPIED)
_READINGS = [reading for reading in Reading if reading not in GOING_ON]
CERTAIN: frozenset[Doubt] = frozenset()


def _is_remembered(event: Event) -> bool:
    """Does it happen only if a module was in training mode before?"""
    return any(isinstance(test, fx.Fork) and gradients.is_remembered(test.test) for test in event.branches)


class Evidence:
    """What one run shows of its sources."""

    def __init__(self, engine: Engine, run: Run, networks: Iterable[Ref] = (), passing: Iterable[Ref] = ()) -> None:
        """Other runs show that some are networks, and that calls of some pass graphs on."""
        self.run = run
        self.index = engine.index
        self.passing: set[Ref] = set(passing)  # what is called on the way to a backward pass
        self.networks: set[Ref] = set(networks)
        self.tensors: set[Ref]
        self.predictions: set[Ref]  # what loss functions are given
        self.with_gradients: set[Ref]  # parameters, or other tensors whose gradient was read
        self.detached: set[Ref]  # where detach() was called
        self.evaluating: set[Ref]
        self.training: set[Ref]
        self.restored: set[Ref]  # put back into the mode that they were in
        self.movable: set[Ref]  # moved, with a state, or with a network among their parts
        self.moved: set[Ref] = set()  # networks only because of that, and because they are called
        self.unsure: set[Ref] = set()  # networks only because of what they give, in what need not run any
        self._is_for_users = roles.predicts(engine, run.entry) or roles.evaluates(engine, run.entry)
        self.callees: dict[Source, set[Ref]] = {}
        self.methods = Methods(lambda source: self.graph(source) is not None)
        self.made: set[Source] = set()  # by calls without an input, or for a network that is being made: no passes
        self.called: set[Ref] = set()  # itself, later
        self.modes: dict[Source, Mode | ModeOf] = {}
        self.proven: set[Source] = set()  # without a graph there, backward would raise
        self.wholes: set[Source] = set()  # of these, some part is proven to have one
        self.overwritten: set[Source] = set()  # parts of results that are replaced by something without a graph
        self.arrays: set[Source] = set()  # with a graph there, what is done with them would raise
        self.passed: set[Source] = set()  # made from such, by what was not seen, and differentiated
        self.differentiated: set[Source] = set()
        self.recorded: set[Source] = set()  # nothing else can have the graph that backward needs
        self.differentiated_in: dict[Source, set[Loop]] = {}
        self.evaluated_at: dict[Ref, Point] = {}
        self.for_more: set[Source] = set()  # differentiated, but only by what creates a graph for another one
        self._filled = {load.result for load in run.effects(fx.Load)}  # perhaps, by code that was not seen
        self._through: list[tuple[set[Source], set[Source]]] = []  # by one backward pass, and which calls of that
        self.readings: dict[Reading, set[Source]] = {}
        self.read: dict[Reading, set[Source]] = {}  # and not what that is made from
        self.owned = owned(engine, run)
        self._from_passes: dict[Source, bool] = {}
        self.cut = frozenset({Doubt.CUT}) if run.cut else CERTAIN
        self._collect()

    def _collect(self) -> None:
        run = self.run
        shown: dict[Shown, set[Ref]] = {kind: set() for kind in Shown}
        for event, use in run.met(fx.Use):
            restores = use.evidence is Shown.TRAINING and _is_remembered(event)
            shown[Shown.RESTORED if restores else use.evidence].add(use.reference)
            if use.evidence is Shown.EVALUATING:
                self.evaluated_at[use.reference] = use.point
        self.evaluating, self.training, self.restored = (
            shown[kind] for kind in (Shown.EVALUATING, Shown.TRAINING, Shown.RESTORED)
        )
        self.tensors, self.predictions, self.with_gradients = (
            shown[kind] for kind in (Shown.TENSOR, Shown.LOSS, Shown.GRADIENT)
        )
        self.detached = {root(r) for r in shown[Shown.DETACHED]}
        self.networks |= self.evaluating | self.training | self.restored | shown[Shown.MODULE]
        movable = self.movable = shown[Shown.MOVED] | shown[Shown.STATE]
        movable.update(r.base for r in self.networks if type(r) is Behind)
        optional: set[Ref] = set()
        pipelines: set[Ref] = set()
        environments = worlds(run)
        for call in run.unseen():
            makes = not call.arguments.all()
            if isinstance(call, fx.Invoke):
                callees = set(call.callee.refs)
                self.called |= callees
                # What is moved to a device, or has a state or a network, and is called: a network. So are its parts.
                self.moved |= callees & (movable - self.networks)
                self.networks |= callees & (movable | self.owned)
                makes = makes or constructs_network(self.index, call.point)
            else:
                callees = {Behind.of(r, call.name) for r in call.receiver.refs if r.depth < NO_PATH}
                self.methods.add(call)
                if call.name in self.index.contracts.pipeline_methods:
                    pipelines |= call.receiver.refs
                makes = makes or (call.name == "step" and not call.receiver.refs.isdisjoint(environments))
            self.callees.setdefault(call.result, set()).update(callees)
            self.modes[call.result] = call.mode
            if makes:
                self.made.add(call.result)
            if any("grad" in name for name in call.arguments.named):  # `compute_grads=True` decides about gradients
                optional |= callees
        self.callees = {result: tools(self.index, found) or found for result, found in self.callees.items()}
        self.modes |= {result: Mode.EITHER for result, callees in self.callees.items() if callees & optional}
        self.networks.update(self.methods.forwards(self.tensors, self.detached, self.index.contracts))
        for forward in run.effects(fx.Forward):
            self.modes[forward.graph] = forward.mode
            self.callees.setdefault(forward.graph, set()).update(forward.module.refs)
        self.overwritten = {
            Behind.of(effect.holder, effect.key)
            for effect in run.effects(fx.Write)
            if effect.holder.symbolic and not effect.weak and not with_graphs(effect.value.graph)
        }
        for creates in (False, True):  # one that creates a graph is no last one: others say how long it is needed
            for event, backward in run.met(fx.Differentiate):
                if backward.creates is creates:
                    self._differentiate(backward, event.loops)
        known, self.networks = self.networks, self.networks | self._detached_callees()
        new = self.networks - known
        self.unsure |= new - self.called if self.differentiated or self._is_for_users else new  # a method may do else
        self.networks -= {r for r in self.networks if r in pipelines or contracted.is_metric(r)}  # they record no graph
        for read in run.effects(fx.Read):
            found = run.provenance.ancestors(read.sources, numbers=_FOLLOWED.get(read.reading, Numbers.NONE))
            self.readings.setdefault(read.reading, set()).update(found)
            self.read.setdefault(read.reading, set()).update(read.sources)
            if read.reading in (Reading.ARRAY, Reading.TEXT):
                self.arrays |= run.provenance.computed_from(read.sources)
        self.readings[Reading.MEASURED] = measured(run)

    def _detached_callees(self) -> set[Ref]:
        """Return networks, and what is given some: detached beside training or for an array, no trained graph in it."""
        arrays = self.methods.operands(self.detached & stripped(self.run))  # of methods, only these show something
        called = self.methods.operands(self.detached) if self.differentiated else arrays
        calls = self.run.unseen() if called else ()
        shown = (one for one in calls if one.result in (called if isinstance(one, fx.Invoke) else arrays))
        return set[Ref]().union(*(self.callees[call.result] for call in shown if self._may_run(call, arrays)))

    def _may_run(self, call: fx.Invoke | fx.InvokeMethod, arrays: set[Source]) -> bool:
        values = call.arguments.all()
        given = {s for value in values for s in value.graph if self._is_called(s)}
        others = call.result not in arrays and any(r in self.called or self.is_known(r) for v in values for r in v.refs)
        return given.isdisjoint(self.differentiated) and not others and self.methods.may_run(call, self.made, self.run)

    def is_network(self, reference: Ref) -> bool:
        """Is it a network, for certain or by its use?"""
        return reference in self.networks or self.is_known(reference)

    def is_known(self, reference: Ref) -> bool:
        """Is it a network for certain, of a library or of the project?"""
        if type(reference) is not Object:
            return False
        is_own = reference.kind is Kind.INSTANCE and self.index.is_network(reference.about.cls)
        return is_own or reference.kind is Kind.MODULE

    def _differentiate(self, backward: fx.Differentiate, loops: frozenset[Loop]) -> None:
        """Note what a backward pass goes through, and of which sources it shows that they have a graph."""
        provenance, sources, creates = self.run.provenance, backward.sources, backward.creates
        through = provenance.ancestors(sources)
        inner = provenance.ancestors(sources, cut=backward.ends) - backward.ends if backward.ends else through
        for source in inner - self.differentiated if creates else inner:
            self.differentiated_in.setdefault(source, set()).update(loops)
        self.for_more |= through - self.differentiated if creates else set()
        self.differentiated |= through
        near = {s for s in provenance.ancestors(sources, parts=False) if self._may_record(s)}
        self._through.append((through, near))
        self.passing.update(*(self.callees.get(root(s), ()) for s in near))
        if not through.isdisjoint(self._filled):
            return  # code that was not seen may have put the graph there
        begins = {s for s in near if self._is_of_network(s)} or {s for s in near if root(s) not in self.made} or near
        first = {s for s in begins if begins.isdisjoint(self._above(s) | self._above(root(s)))}
        alike = {frozenset(self.callees.get(root(s), ())) for s in first if type(root(s)) is Result}
        single = len(first) == 1 or (
            len(alike) == 1 and alike != {frozenset()} and all(type(s) is Result for s in first)
        )
        if not any(type(s) is Graph for s in near):
            self.proven |= first if single else set()  # nothing else can have the graph that backward needs
            owners = {self._owner(c) for s in first for c in self.callees.get(root(s), ())}
            self.networks |= owners & self.called if len(owners) == 1 and not single else set()
        begun = {root(s) for s in first}
        self.recorded |= begun if len(begun) == 1 else set()
        if single or len(begun) == 1:
            self.wholes |= {root(s) for s in first - self.overwritten if type(s) is Behind}
        self.passed |= {s for s in near - first if any(type(p) is Graph or p in self.proven for p in self._above(s))}
        for source in (s for s in through if type(s) is Passed):
            beside = provenance.ancestors(sources, cut={source}) - {source}
            if all(source in self._above(s) for s in beside if type(s) is Passed or self._may_record(s)):
                self.proven.add(source)  # nothing beside it has the graph that backward needs
        self.proven |= sources if not near and len(sources) == 1 else set()

    def _owner(self, callee: Ref) -> Ref:
        """Return what a method belongs to, if that is called itself, too: a network with methods of its own."""
        return callee.base if type(callee) is Behind and callee.base in self.called else callee

    def _above(self, source: Source) -> set[Source]:
        return self.run.provenance.ancestors((source,), parts=False) - {source}

    def _is_called(self, source: Source) -> bool:
        """Is it a forward pass, or (a part of) the result of a call?"""
        is_result = type(root(source)) is Result and root(source) in self.callees and source not in self.networks
        return is_result or type(source) is Graph

    def _is_of_network(self, source: Source) -> bool:
        """Is it a forward pass, or (a part of) what a network gives?"""
        return type(source) is Graph or not self.networks.isdisjoint(self.callees.get(root(source), ()))

    def _may_record(self, source: Source) -> bool:
        """Is it called, with gradients enabled, and not what tells a number of a tensor: `x.size()`?"""
        begin = root(source)
        return self._is_called(source) and self.modes.get(begin) is not Mode.OFF and begin not in self.methods.values

    def graph(self, source: Source) -> frozenset[Doubt] | None:
        """Return the doubts whether a source has a graph; None if nothing shows that it has."""
        kind = type(source)
        if kind is Bare or source in self.networks or source in self.called:
            return None  # what is called is no tensor
        if source in self.arrays and not (kind is Graph and source in self.differentiated | self.detached):
            return None
        mode = self.cut | {Doubt.MODE} if self._is_mode_open(source) else self.cut
        if kind is Graph or source in self.proven or source in self.wholes:
            return mode
        if source in self.passed or (source in self.predictions and source in self.differentiated):
            return mode | {Doubt.PASSED_ON}
        if kind is Result or (kind is Behind and type(root(source)) is Result):
            origin = root(source)
            callees = self.callees.get(origin, set())
            part = CERTAIN if kind is Result or self._is_main(source, callees) else frozenset({Doubt.PART})
            if origin in self.made:
                callees = set()
            if callees & self.networks:
                doubts = {Doubt.NETWORK_BY_USE} | ({Doubt.TENSOR_BY_USE} if callees <= self.unsure else set())
                unsure = callees <= self.moved and self._is_from_passes(origin)
                return mode | part | doubts | ({Doubt.FORMULA} if unsure else set())
            if any(self._by_path(c) for c in callees):
                is_method = any(type(c) is Behind and self.is_known(c.base) for c in callees)
                doubts = set() if is_method else {Doubt.NETWORK_BY_USE}
                if not (self._is_shown(source) or self._is_shown(origin)):
                    doubts.add(Doubt.METHOD)
                elif self._is_from_passes(origin):
                    doubts.add(Doubt.FORMULA)
                return mode | part | doubts
            if source in self.differentiated:
                if origin in self.wholes and source in self.tensors:
                    return mode | {Doubt.BESIDE}
                if source in self._wanted:
                    return mode | part | {Doubt.AMONG}
            if (source in self.tensors or origin in self.tensors) and not self.methods.passes_on(origin):
                return mode | part | {Doubt.TENSOR_BY_USE}
        return None

    @cached_property
    def _wanted(self) -> set[Source]:
        """What is differentiated where no pass is: something there has a graph. Beside a pass nothing need have one."""
        return set[Source]().union(*(through for through, near in self._through if not any(map(self.is_pass, near))))

    def _is_mode_open(self, source: Source) -> bool:
        """Is it not known whether gradients are enabled where a source begins, and does no backward show it?"""
        mode = self.modes.get(source)
        return (mode is Mode.EITHER or isinstance(mode, ModeOf)) and source not in self.recorded

    def _is_from_passes(self, result: Source) -> bool:
        """Is a result made of what passes gave? Then it may be a formula, and the tensor's graph be theirs."""
        known = self._from_passes.get(result)
        if known is None:
            parents, seen = self.run.provenance.parents, {result}
            queue = [result]
            while queue and not known:
                new = parents.get(queue.pop(), set()) - seen
                seen |= new
                known = any(self.is_pass(s) for s in new)
                queue += [s for s in new if not self._is_called(s)]
            known = self._from_passes[result] = bool(known)
        return known

    def _is_main(self, source: Source, callees: set[Ref]) -> bool:
        """Is this part what was computed: used as a tensor, or a network's first, named or differentiated one?"""
        if self._is_shown(source):
            return True
        key = first_key(source)
        others = type(key) is int and key > 0
        return bool(callees & self.networks) and (not others or source in self.differentiated)

    def is_read(self, source: Source, *readings: Reading) -> bool:
        """Is it read in one of these ways, or in any?"""
        return any(source in self.readings.get(reading, ()) for reading in readings or _READINGS)

    def is_differentiated(self, source: Source) -> bool:
        """Is it, or some part of it, differentiated?"""
        found = self.differentiated
        return source in found or any(type(s) is Behind and root(s) is source for s in found)

    def is_pass(self, source: Source) -> bool:
        """Does a forward pass, or what may be one, begin a graph here?"""
        if type(source) is Graph:
            return True
        callees = self.callees.get(root(source), set())
        return (
            source in self.proven
            or root(source) in self.wholes
            or bool(callees & self.networks)
            or any(self._by_path(c) for c in callees)
        )

    def _by_path(self, callee: Ref) -> bool:
        """Is it a part of something that was used as a network?"""
        return not is_missing(self.index, callee) and any(self.is_network(p.base) for p in path(callee))

    def best(self, sources: Iterable[Source], among: frozenset[Source] | None = None) -> frozenset[Doubt] | None:
        """Return the doubts of the source, `among` some, that has a graph most surely; None if none has."""
        parents = self.run.provenance.parents
        found: list[frozenset[Doubt]] = []
        seen: set[Source] = set()
        queue = [(source, CERTAIN) for source in sources]
        while queue:  # what is reached without a call that was not seen comes first
            following: list[tuple[Source, frozenset[Doubt]]] = []
            while queue:
                source, way = queue.pop()
                if source in seen:
                    continue
                seen.add(source)
                doubts = self.graph(source) if among is None or source in among else None
                if doubts is not None:
                    found.append(doubts | way)
                if not self.methods.keeps_graph(source):
                    continue
                whole = self._whole(source)
                further = self._on_the_way(whole, source) - way
                (following if further else queue).extend((p, way | further) for p in parents.get(whole, ()))
            queue = following
        return min(found, key=rank, default=None)

    def _whole(self, source: Source) -> Source:
        """Return the result of a call that was not seen in place of a part of it: its graphs come the same way."""
        whole = root(source)
        return whole if type(whole) is Result and not self.is_pass(whole) else source

    def _on_the_way(self, result: Source, part: Source) -> frozenset[Doubt]:
        """Return the doubts whether a call that was not seen passes on the graphs that it is given to a part of it."""
        if type(part) is Part:
            return frozenset() if self._is_tensor(part) else frozenset({Doubt.PART})
        if type(part) is Passed and part not in self.proven:
            return frozenset({Doubt.PASSED_ON})
        if result not in self.callees or type(result) is not Result or result in self.proven or result in self.passed:
            return CERTAIN
        if self.methods.operation(result) is not None:
            return CERTAIN
        return frozenset({Doubt.PASSED_ON if self._is_shown(result) or self._is_shown(part) else Doubt.UNSEEN_CALL})

    def _is_tensor(self, part: Part) -> bool:
        """Is what a network gave beside its first result a tensor, as all results of torch's own layers are?"""
        if part in self.tensors or part in self.differentiated:
            return True
        networks = self.callees.get(part.whole, set())
        names = [str(r.about).partition(":")[0] for r in networks if type(r) is Object]  # "class: parameter"
        return bool(names) and len(names) == len(networks) and all(map(modules.gives_tensors, names))

    def _is_shown(self, source: Source) -> bool:
        """Does its use show that it is a tensor?"""
        return source in self.tensors or source in self.predictions

    @cached_property
    def handed(self) -> set[Source]:
        """What calls that were not seen have among their arguments."""
        values = [value for call in self.run.unseen() for value in call.arguments.all()]
        return self.run.provenance.ancestors({s for v in values for s in reached(self.run.state, v, HOLDERS)})

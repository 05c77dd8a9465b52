"""Passes: forward passes that record a graph, what becomes of their results, and why that is waste."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator
from functools import cached_property

from torchmemlint.closure import closure
from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.domain.heap import Mode, reachable, reached
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.manners import How, Reading
from torchmemlint.flow.domain.refs import Behind, Leaf, Loop, Object, Point, Ref, Result, Source, first_key, path, root
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.families import is_unseen
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.pending import pending
from torchmemlint.flow.fact.reasons import Pass, Reason
from torchmemlint.flow.fact.rest import Rest
from torchmemlint.flow.fact.teaching import Teaching
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import CallMethod, Function, Op, Unit

_TRAINING = frozenset({"backward", "step", "grad"})


class Passes:
    """The forward passes of one run."""

    def __init__(
        self, engine: Engine, run: Run, evidence: Evidence, differentiating: Callable[[], Iterable[Unit]]
    ) -> None:
        """`differentiating` gives all files that ask autograd for gradients."""
        self.engine, self.run, self.evidence = engine, run, evidence
        self._differentiating = differentiating
        self.returned = run.provenance.ancestors(run.returned)
        self.trains = bool(run.of(fx.Differentiate))
        self.teaching = Teaching(engine, run, evidence)
        self.hooked = How.HOOK in {*(k.how for k in run.effects(fx.Keep)), *(s.how for s in run.effects(fx.Slotted))}

    @cached_property
    def growing(self) -> dict[Source, Point]:
        """The graphs that live on from iteration to iteration, with what keeps them."""
        found: dict[Source, Point] = {}
        for keep in self.run.effects(fx.Keep):
            for source in keep.events - keep.spent:
                found.setdefault(source, keep.point)
        return found

    @cached_property
    def stored(self) -> set[Source]:
        """What is kept where code that is not seen may read it."""
        run, sources = self.run, set[Source]()
        lasting = run.lasting()
        for slotted in run.effects(fx.Slotted):
            if slotted.slot.holder in lasting or self._is_part(slotted.slot.holder):
                sources |= slotted.sources
        sources.update(*(put.sources for put in run.effects(fx.Put) if put.escapes))
        for write in run.effects(fx.Write):
            if write.key is Special.CACHED:  # a decorator hands it out to whoever calls next
                sources |= reached(run.state, write.value)
        if not self.trains:  # it may be done elsewhere, with what containers hold
            for holder in lasting:
                for value in run.state.heap.edges(holder).values():
                    sources |= value.graph
        return run.provenance.ancestors(sources)

    def _is_part(self, holder: Ref) -> bool:
        """Is it a part of a network, which finds there what it computes with: weights that another network gives?"""
        if type(holder) is Behind:
            return holder.key is Special.ELEMENT and self.evidence.is_network(holder.base)
        return type(holder) is Object and holder.kind is Kind.MODULE

    @cached_property
    def _near(self) -> set[Source]:
        """The passes that lead to what is read or detached by no other pass."""
        parents, read = self.run.provenance.parents, self.evidence.read

        def above(source: Source) -> Iterable[Source]:
            return () if self.evidence.is_pass(source) else (root(source), *parents.get(source, ()))

        ends = (s for how in (Reading.DETACHED, Reading.NUMBER, Reading.DISCRETE) for s in read.get(how, ()))
        seen = closure(ends, above)
        return seen | {root(s) for s in seen}

    @cached_property
    def given(self) -> set[Source]:
        """What is handed to code that is not seen, but for networks, and what passes graphs on elsewhere."""
        provenance, found = self.run.provenance, set[Source]()
        known = self.evidence.networks | self.evidence.passing
        for source in provenance.parents:
            if type(source) is Result and not self.evidence.callees.get(source, {source}) <= known:
                found |= provenance.ancestors((source,)) - {source}
        return found

    @cached_property
    def all(self) -> list[Pass]:
        """The forward passes that record a graph; of a forward that is taken apart, those that are detached."""
        return list(self._inner() if self.run.inner else self._passes())

    def _passes(self) -> Iterator[Pass]:
        evidence = self.evidence
        if self.run.life is not None:
            return  # seen where it is run once
        for met, forward in self.run.met(fx.Forward):
            doubts, refs = evidence.graph(forward.graph), forward.module.refs
            if doubts is not None and refs:
                yield self._pass(forward.point, forward.graph, refs, met.loops, forward.evaluating, doubts)
        for event, call in self.run.calls():
            refs = self._network(call)
            if not refs or call.mode is Mode.OFF or call.result in evidence.networks:
                continue
            if all(map(self.run.is_plain, call.arguments.all())):
                continue  # nothing goes through it: it makes an object, or does what a text says
            if type(call.point.site) is CallMethod and call.point.site.dropped:
                continue  # called for what it does
            doubts = evidence.graph(call.result)
            if doubts is not None:
                yield self._pass(call.point, call.result, refs, event.loops, call.evaluating, doubts)

    def untold(self) -> Iterator[Pass]:
        """Yield the passes of which it was not seen what becomes of them."""
        return (one for one in self.all if one.reason is None and not one.differentiated)

    def _inner(self) -> Iterator[Pass]:
        """Yield the passes that are detached beside one, under the same tests, whose graph the forward gives away."""
        tests: dict[Source, ItemsView[Effect, bool]] = {}
        for event, forward in self.run.met(fx.Forward):
            tests[forward.graph] = event.branches.items()
        given = [other for graph, other in tests.items() if graph in self.returned]
        for one in self._passes():
            under = tests.get(one.source)
            if one.reason is Reason.DETACHED and under is not None and any(under <= other for other in given):
                yield one

    def differentiated(self) -> Iterator[Op]:
        """Yield the operations that led to a differentiated pass, or to a call that may be one."""
        return (op for source, point in self._begun() if self.is_needed(source) for op in point.chain())

    def unsettled(self) -> Iterator[tuple[Op, ...]]:
        """Yield the operations that led to each pass which may need its graph, for all that was seen."""
        for one in self.all:
            if one.reason is None:
                yield tuple(one.point.chain())
        for source, point in self._begun():
            if self.teaching.idle.get(source) and self.evidence.is_differentiated(source):
                yield tuple(point.chain())

    def _begun(self) -> Iterator[tuple[Source, Point]]:
        """Yield what (may) begin graphs, and where."""
        yield from ((forward.graph, forward.point) for forward in self.run.effects(fx.Forward))
        yield from ((call.result, call.point) for call in self.run.unseen())

    def is_needed(self, source: Source) -> bool:
        """Is it differentiated so that it reaches what is trained, or its gradient asked for?"""
        if self.evidence.is_read(source, Reading.HOOKED, Reading.MEASURED):
            return True
        return self.evidence.is_differentiated(source) and source not in self.teaching.idle

    def is_unmade(self, one: Pass) -> bool:
        """May it matter who makes the entry's object, and calls the method? Nobody was seen who does.

        It does not where the network is of the object's own making, unless that is a network itself, whose users may
        turn gradients off; nor where a contract says how the method is called, or what it does agrees with its name;
        nor where it hands out the graph of another pass.
        """
        cls, entry = self.run.method_of, self.run.entry
        if cls is None or self.trains or roles.is_called_to_infer(self.engine, entry):
            return False
        if Doubt.ROLE not in one.doubts and (roles.predicts(self.engine, entry) or roles.evaluates(self.engine, entry)):
            return False
        if one.reason is Reason.DETACHED and any(map(self.evidence.is_pass, self.returned)):
            return False
        return self.engine.index.is_network(cls) or not all(map(self.teaching.is_made, one.module))

    def _network(self, effect: fx.Invoke | fx.InvokeMethod) -> frozenset[Ref]:
        """Return the networks that a call of what is not known may run."""
        evidence = self.evidence
        if isinstance(effect, fx.Invoke):
            refs = effect.callee.refs
            return refs if refs & evidence.networks or effect.evaluating else frozenset()
        refs = frozenset(evidence.callees.get(effect.result, ()))
        if refs & evidence.networks:
            return refs
        is_network = effect.evaluating or any(map(evidence.is_known, effect.receiver.refs))
        used = is_network and effect.result in evidence.tensors  # another method than forward
        return effect.receiver.refs if used else frozenset()

    def _pass(
        self,
        point: Point,
        source: Source,
        module: frozenset[Ref],
        loops: frozenset[Loop],
        evaluating: bool,
        doubts: frozenset[Doubt],
    ) -> Pass:
        differentiated = self.evidence.is_differentiated(source)
        reason: Reason | None = None
        wanted = self.evidence.modes.get(source) is Mode.WANTED and not self._wanted_elsewhere
        wanted = wanted or self.evidence.is_read(source, Reading.HOOKED, Reading.MEASURED)
        if differentiated and source in self.teaching.idle and not wanted and not self.run.cut:
            reason = Reason.UNTRAINED
            doubts |= self.teaching.idle[source] | ({Doubt.CALLER} if self._is_of_network() else set())
        if not (
            differentiated or wanted or self._rest.differentiates_near(self._functions(point)) or self._is_array(source)
        ):
            reason, more = self._reason(point, source, module, loops, evaluating)
            doubts |= more
            if reason is not None:
                doubts |= {Doubt.MENTIONED} if not self.trains and self.run.mentioned() else set()
                doubts |= self._of_framework() | self._of_kind(point, source, module)
                doubts -= {Doubt.CUT} if self._rest.is_harmless else set()
        kept, switched = self.growing.get(source), self.switched(module) if reason is Reason.EVALUATING else None
        through = reason in (Reason.DETACHED, Reason.READ) and source not in self._near
        return Pass(point, source, module, loops, differentiated, reason, doubts, evaluating, kept, switched, through)

    @cached_property
    def _wanted_elsewhere(self) -> bool:
        """Are gradients switched on for another pass, which is differentiated?"""
        return any(m is Mode.WANTED and self.evidence.is_differentiated(s) for s, m in self.evidence.modes.items())

    @cached_property
    def _rest(self) -> Rest:
        return Rest(self.engine, self.run)

    def _is_array(self, source: Source) -> bool:
        """Is it, or are all its parts that are read, made an array, as nothing with a graph can be?"""
        evidence = self.evidence
        made = self.run.provenance.computed_from(evidence.read.get(Reading.ARRAY, ()))  # not what calls are given
        if source in evidence.detached or source not in made | {root(s) for s in made}:
            return False
        parts = {how: {s for s in read if s is not source and root(s) is source} for how, read in evidence.read.items()}
        arrays = parts.get(Reading.ARRAY, set())
        return not arrays or all(read <= arrays for read in parts.values())

    def switched(self, module: frozenset[Ref]) -> Point | None:
        """Return where eval() was called on a network, or on what it is a part of."""
        for reference in sorted(module, key=lambda r: r.serial):
            for whole in (reference, *(part.base for part in path(reference))):
                for known in (self.evidence.evaluated_at, self._switched_with):
                    if whole in known:
                        return known[whole]
        return None

    @cached_property
    def _switched_with(self) -> dict[Ref, Point]:
        """The parts of networks, with where eval() was called on these."""
        state, found = self.run.state, dict[Ref, Point]()
        for whole, at in self.evidence.evaluated_at.items():
            found |= dict.fromkeys(reachable(state, [whole]) - found.keys(), at)
        return found

    def _reason(
        self, point: Point, source: Source, module: frozenset[Ref], loops: frozenset[Loop], evaluating: bool
    ) -> tuple[Reason | None, frozenset[Doubt]]:
        returned, stored, given = source in self.returned, source in self.stored, source in self.given
        leaves = returned or stored or given
        numbers = self.evidence.is_read(source, Reading.NUMBER, Reading.DISCRETE)
        detached = self.evidence.is_read(source, Reading.DETACHED) and not (returned or stored)
        if evaluating and not (detached and self.trains):
            restored = not module.isdisjoint(self.evidence.restored)
            is_task = restored or bool(loops) or any(roles.predicts(self.engine, f) for f in self._functions(point))
            doubts = {Doubt.EVALUATED if is_task else Doubt.EVALUATED_ONCE} if leaves else set()
            if self.trains and (returned or stored):
                doubts.add(Doubt.READER)
            if returned and ((module & self.evidence.training and not is_task) or self._is_open()):
                doubts.add(Doubt.CALLER)
            if not leaves and self.hooked and not numbers:
                return None, frozenset()  # it is run for what its hooks keep
            return Reason.EVALUATING, frozenset(doubts)
        doubts = {Doubt.BASE} if self._is_open() else set()
        doubts |= {Doubt.READER} if not module.isdisjoint(self._leaving) else set()
        if numbers and not (returned or stored):
            entry = self.run.entry
            if self._is_uncalled() and (given or entry.name == "forward" or roles.is_exported(entry)):
                doubts.add(Doubt.UNCALLED)
            more = {Doubt.GIVEN, Doubt.READER} if self.trains else {Doubt.GIVEN}
            return Reason.READ, frozenset(doubts | (more if given else set()))
        if detached:
            alone = any(map(is_unseen, module)) and not any(map(self.evidence.is_pass, self.returned))
            if self._is_uncalled() and (alone or roles.infers(self.engine, self.run.entry)):
                doubts.add(Doubt.UNCALLED)
            doubts |= pending(self.engine.index, point)
            return Reason.DETACHED, frozenset(doubts | ({Doubt.HANDED} if given else set()))
        if roles.is_called_to_infer(self.engine, self.run.entry):  # what it may differentiate leads to an input
            if not self.trains or (given and not (returned or stored or self._leaves(source))):
                return Reason.ROLE, frozenset()
        elif not self.trains and self._is_for_users(point, returned):
            return Reason.ROLE, frozenset(doubts | {Doubt.EVALUATED if self.evidence.evaluating else Doubt.ROLE})
        if (loops or self._is_step) and not (leaves or self.run.cut) and self._is_unused(point, source, module, loops):
            return Reason.UNUSED, frozenset(doubts)
        return None, frozenset()

    def _is_for_users(self, point: Point, returned: bool) -> bool:
        """Does what runs it infer or evaluate? What evaluates gives numbers: a graph that it gives is to train."""
        engine, numbers = self.engine, self.evidence.evaluating or not returned
        return any(roles.infers(engine, f) or (numbers and roles.evaluates(engine, f)) for f in self._functions(point))

    @cached_property
    def _is_step(self) -> bool:
        """Does the entry differentiate what its callers give it? They run it again and again."""
        backwards = [met.loops for met, _ in self.run.met(fx.Differentiate)]
        return bool(backwards) and not any(backwards) and roles.is_given(self.run.entry)

    def _is_unused(self, point: Point, source: Source, module: frozenset[Ref], loops: frozenset[Loop]) -> bool:
        """Is what a network gives dropped at once, or in an iteration over data? It is run for its own changes.

        Not where a hook takes it, or what differentiates may read it off a network that was not seen; nor where it is
        tried whether the pass fails, for want of memory.
        """
        evidence, run, head = self.evidence, self.run, roles.head(self.engine, point)
        unseen = any(map(is_unseen, module))
        if not head or roles.is_of_forward(self.engine, head[0].owner):
            return False
        if definitions(head[0].owner).following(head[0]) and (
            unseen or not any(run.over[one].refs for one in loops if one in run.over)
        ):
            return False  # perhaps to see how long it takes
        if self.hooked or any(run.of(fx.Register)) or any(site.owner.handles for site in head):
            return False
        if source in self._taken or evidence.is_read(source, *Reading) or self._leaves(source):
            return False
        if not all(evidence.is_known(r) or r in evidence.evaluating | evidence.training for r in module):
            return False
        return not unseen or (not self.trains and all(_TRAINING.isdisjoint(f.mentions) for f in self._functions(point)))

    def _leaves(self, source: Source) -> set[Source]:
        """Return the tensors that it is made from which ask for gradients by themselves."""
        above = self.run.provenance.ancestors((source,))
        return {s for s in above if type(s) is Leaf} | (above & self.run.asking())

    @cached_property
    def _leaving(self) -> set[Ref]:
        """Networks that were not seen, from which what differentiates goes through a tensor that is read off them."""
        shown = self.evidence.differentiated
        return {s.base for s in shown if type(s) is Behind and type(s.key) is str and s.base in self.evidence.networks}

    @cached_property
    def _taken(self) -> set[Source]:
        """What something is made from."""
        found = set[Source]().union(*self.run.provenance.parents.values())
        return found | {root(source) for source in found}

    def _of_framework(self) -> frozenset[Doubt]:
        """Return the doubt whether a framework lets the pass record a graph."""
        cls = self.run.method_of
        return frozenset({Doubt.TURN}) if cls is not None and roles.takes_turns(self.engine, cls) else frozenset()

    def _of_kind(self, point: Point, source: Source, module: frozenset[Ref]) -> frozenset[Doubt]:
        """Return the doubt whether an unseen network differentiates in forward: by inputs that ask for gradients."""
        if not any(map(is_unseen, module)):
            return frozenset()
        read = self.run.read_gradients()  # what the run itself has asked for
        asked, made = {source, *(self.run.asked() - read)}, {r.site for r in read if type(r) is Object}
        leaves = (s for s in self._leaves(source) if type(s) is not Leaf or s.site not in made)
        if self._has_derivatives(source) or any(type(s) is Leaf or s in asked for s in leaves):
            return frozenset({Doubt.INSIDE})
        inside = self._differentiate_inside({function.unit for function in self._functions(point)})
        if not inside and any(type(root(r)) is Result for r in module):  # it is looked up by a name, or made elsewhere
            others = (unit for unit in self._differentiating() if "__name__" not in unit.module.mentions)  # no programs
            inside = self._differentiate_inside(others)
        return frozenset({Doubt.INSIDE}) if inside else frozenset()

    def _differentiate_inside(self, units: Iterable[Unit]) -> bool:
        """Do networks of some files differentiate when they are run?"""
        index = self.engine.index
        return any(index.differentiates(cls) for unit in units for cls in unit.classes if index.is_network(cls))

    def _has_derivatives(self, source: Source) -> bool:
        """Is a part of the result read that networks take by differentiating?"""
        names = self.engine.index.contracts.names("derivatives").plain
        read = set[Source]().union(*self.evidence.readings.values())
        return any(type(s) is Behind and root(s) is source and first_key(s) in names for s in read)

    def _is_open(self) -> bool:
        """Is the entry a method of a class with a base that is not seen, which may differentiate what it returns?"""
        cls, entry = self.run.method_of, self.run.entry
        if cls is None or roles.is_called_to_infer(self.engine, entry) or roles.is_step(self.engine, entry):
            return False
        return self.engine.index.is_open(cls) and not self.engine.index.is_network(cls)

    def _is_uncalled(self) -> bool:
        """Is the entry a method of a network, other than one that trains it?"""
        cls = self.run.method_of
        return cls is not None and not self.trains and self.engine.index.is_network(cls)

    def _is_of_network(self) -> bool:
        """Is the entry a method of a network, which others may train as a whole, unless it says what is trained?"""
        cls = self.run.method_of
        if cls is None or roles.makers_of_optimizers(self.engine, cls, self.run.entry):
            return False
        return self.engine.index.may_be_network(cls)

    def _functions(self, point: Point) -> Iterator[Function]:
        yield from (self.run.entry, *(site.owner for site in point.chain()))

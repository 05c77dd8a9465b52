"""The application of a summary: the callee's symbols become the caller's values, and its effects are performed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Arguments, Effect, Point, Remark
from torchmemlint.flow.domain.frame import CallSite, Frame, Summary
from torchmemlint.flow.domain.heap import Mode, ModeOf, State, reached, renew
from torchmemlint.flow.domain.memory import (
    bare,
    begin,
    changed_in_place,
    computed,
    differentiate,
    each_key,
    erase,
    key_of,
)
from torchmemlint.flow.domain.refs import (
    Bare,
    Behind,
    Derived,
    External,
    Graph,
    Key,
    Kind,
    Loop,
    Object,
    Part,
    Phi,
    Ref,
    Result,
    Slot,
    Source,
    Special,
    extended,
    is_outside,
    root,
    with_graphs,
)
from torchmemlint.flow.domain.values import (
    LIMIT,
    NO_CONSTANT,
    NO_SOURCES,
    NOTHING,
    SOLE,
    Value,
    constant,
    limited,
    of,
    tensor,
)
from torchmemlint.flow.engine import access, instances
from torchmemlint.flow.engine.loops import is_among
from torchmemlint.flow.engine.references import MAKERS, resting_on
from torchmemlint.flow.ir.blocks import missed
from torchmemlint.flow.ir.ops import For
from torchmemlint.flow.models import containers, gradients, guards, modules, optimizers

_NOTED = frozenset({fx.Bend, fx.Hold, fx.Infer, fx.Move, fx.Put, fx.Ran, fx.Serve})  # only taken down: no work
_QUIET = _NOTED | {fx.Note, fx.Read, fx.Use, fx.Step, fx.Differentiate}  # they change nothing that an object holds


class Substitution:
    """One application of a summary."""

    def __init__(self, frame: Frame, state: State, bound: dict[Ref, Value], point: Point) -> None:
        self.frame, self.state, self.point = frame, state, point
        self.map: dict[Ref, Value] = dict(bound)
        self.entry_mode = state.mode
        self.calls = (point.site, *point.context)
        self.parents: Mapping[Source, Iterable[Source]] = {}
        self.edges: dict[Ref, list[tuple[Key, Value]]] = {}  # what objects that the callee made hold
        self.installed: dict[tuple[Ref, Key], Value] = {}
        self.behind: dict[Ref, list[Ref]] = {}  # what was met so far of each symbol
        self.places: list[Source] = []  # phis, slots and parts that were met just now

    def apply(self, summary: Summary, yields: bool = False) -> Value:
        """Perform the summary's effects and return what the call gives."""
        self.parents = summary.parents
        for wanted in summary.symbols:
            self.of(wanted)
        self._install(summary.edges)
        self.frame.applying += 1
        self.perform(summary.effects)
        self.frame.applying -= 1
        for source, parents in summary.parents.items():
            self._derive(source, parents)
        if any(type(effect) not in _QUIET for effect in summary.effects):  # else no more is known than before
            for holder in self.edges:
                self._refresh(holder)
        if yields:
            return self.value(summary.yielded)
        return self.value(summary.returned)

    # Values.

    def of(self, reference: Ref) -> Value:
        """Return a reference of the callee as a value of the caller."""
        found = self.map.get(reference)
        if found is None:
            found = self.map[reference] = MAKERS[type(reference)](self, reference)
            kind = type(reference)
            if kind is Phi or kind is Slot or kind is Part:
                self._met(reference)
            elif kind is Bare:
                self.frame.arise(next(iter(found.graph)))
            elif (base := resting_on(reference)) is not None:
                self.behind.setdefault(base, []).append(reference)
        return found

    def _met(self, place: Source) -> None:
        """Record what a phi, slot or part was made from; those among it follow in turn, for their chain may be long."""
        self.places.append(place)
        if len(self.places) == 1:
            for source in self.places:
                self._derive(source, self.parents.get(source, ()))
            self.places.clear()

    def value(self, value: Value) -> Value:
        """Return a value of the callee as one of the caller."""
        if not value.refs and not value.graph:
            return value
        if len(value.refs) == 1 and (value.graph == value.refs or not value.graph):
            return self._single(value)
        refs: set[Ref] = set()
        opened, constant = value.open, value.constant
        for r in value.each():
            mine = self.of(r)
            refs |= mine.refs
            opened = opened or mine.open
            if constant is SOLE and mine.constant is not SOLE:
                constant = NO_CONSTANT
            if len(value.refs) == 1 and r.symbolic:
                constant = mine.constant
        kept, more = limited(frozenset(refs))
        graph: set[Source] = set()
        for s in value.graph:
            mine = self.of(s)
            graph |= mine.graph
            if s.symbolic and mine.refs and s not in value.refs:
                graph |= reached(self.state, mine)
        return Value(kept, frozenset(graph), constant, opened or more)

    def _single(self, value: Value) -> Value:
        """Return a value that is one reference, or one symbol with its graph."""
        (r,) = value.refs
        mine = self.of(r)
        if r.symbolic and value.graph and mine.open >= value.open and len(mine.refs) <= LIMIT:
            return mine
        refs, more = limited(mine.refs)
        constant = mine.constant if r.symbolic else value.constant
        return Value(refs, mine.graph if value.graph else NO_SOURCES, constant, value.open or mine.open or more)

    def sources(self, sources: Iterable[Source]) -> frozenset[Source]:
        """Return sources of the callee as sources of the caller."""
        result: set[Source] = set()
        for s in sources:
            mine = self.of(s)
            result |= mine.graph
            if s.symbolic and mine.refs:
                result |= reached(self.state, mine)
        return frozenset(result)

    def key(self, key: Key) -> Key:
        """Return a key of the callee as a key of the caller."""
        if not isinstance(key, Ref):
            return key
        return key_of(self.of(key))

    def arguments(self, arguments: Arguments) -> Arguments:
        """Return the arguments of a call of the callee as the caller gives them."""
        for value in arguments.all():
            self._refreshed(value)
        return Arguments(
            [self.value(v) for v in arguments.positional],
            {name: self.value(v) for name, v in arguments.named.items()},
            None if arguments.star is None else self.value(arguments.star),
            None if arguments.stars is None else self.value(arguments.stars),
        )

    def _derive(self, source: Source, parents: Iterable[Source]) -> None:
        kind = type(source)
        if kind is Result or kind is Derived:
            return  # performed anew
        mine = self.of(source)
        given = self.sources(parents)
        for s in mine.graph:
            if type(s) is kind:
                self.frame.provenance.derive(s, given)

    def _install(self, edges: list[tuple[Ref, Key, Value]]) -> None:
        """Let the objects that the callee made hold what they held at its end, as far as that is known by now."""
        for holder, key, value in edges:
            if key is Special.MADE:
                for mine in self.of(holder).each():
                    if type(mine) is Object:
                        renew(self.state, mine)
            else:
                self.edges.setdefault(holder, []).append((key, value))
        for holder in self.edges:
            self._refresh(holder)

    def _refresh(self, holder: Ref) -> None:
        """Let an object hold what is known by now; what has been written to it since is kept beside that."""
        heap, installed = self.state.heap, self.installed
        for mine in self.of(holder).each():
            for callee_key, value in self.edges[holder]:
                key, new = self.key(callee_key), self.value(value)
                place = (mine, key)
                before = installed.get(place)
                if before is not None and heap.get(mine, key) is not before:
                    heap.add(mine, key, new)
                else:
                    heap.put(mine, key, new)
                installed[place] = heap.get(mine, key) or new

    def _refreshed(self, value: Value, depth: int = 3) -> None:
        """Refresh the objects that a value of the callee holds."""
        for r in value.each():
            if r in self.edges:
                self._refresh(r)
                if depth:
                    for _, held in self.edges[r]:
                        self._refreshed(held, depth - 1)

    # Effects.

    def perform(self, effects: list[Effect]) -> None:
        """Perform effects in order."""
        machine = self.frame.machine
        machine.spend(sum(type(effect) not in _NOTED for effect in effects), self.state)
        if machine.is_exhausted():
            self.frame.cut = True
            return
        for effect in effects:
            _PERFORMERS[type(effect)](self, effect)

    def _within(self, state: State, effects: list[Effect]) -> None:
        saved, self.state = self.state, state
        self.perform(effects)
        self.state = saved

    def write(self, effect: fx.Write) -> None:
        """Put what the callee puts behind a symbol."""
        self._refreshed(effect.value)
        base, value = self.of(effect.holder), self.value(effect.value)
        setter = instances.item_setter(self.frame, self.state, base) if effect.item else None
        if setter is not None:
            index = effect.key
            given = self.of(index) if isinstance(index, Ref) else constant(index)
            self.frame.machine.call(self.frame, self.state, setter, Arguments([given, value]), self.at(effect))
        elif effect.key is Special.GRAPH:
            changed_in_place(self.frame, self.state, base, value.graph, self.at(effect))
        elif base.refs and isinstance(effect.key, str) and not effect.weak:
            instances.set_attribute(self.frame, self.state, base, effect.key, value, self.at(effect))
        elif base.refs:
            key = self._key_of(base, effect.key)
            self.frame.machine.write(self.frame, self.state, base, key, value, self.at(effect), effect.weak)

    def _key_of(self, base: Value, key: Key) -> Key:
        """Return a key of a container; what runs over its own keys does so here, too."""
        is_own = type(key) is Behind and key is each_key(key.base) and self.of(key.base).refs == base.refs
        return each_key(next(iter(base.refs))) if is_own and len(base.refs) == 1 else self.key(key)

    def erase(self, effect: fx.Erase) -> None:
        """Empty what the callee empties."""
        key = None if effect.key is None else self.key(effect.key)
        erase(self.frame, self.state, self.of(effect.holder), key, self.at(effect))

    def at(self, effect: Effect) -> Point:
        """Return where an effect happens, seen from the caller."""
        return effect.point.below(self.calls)

    def renew(self, effect: fx.Renew) -> None:
        """Begin another object, or go on to another item: if that is an object of the caller, it stays what it is."""
        made = type(effect.made) is Object
        for mine in self.of(effect.made).each():
            if made and type(mine) is Object:
                begin(self.frame, self.state, mine, self.at(effect))
            elif type(mine) is Behind:
                access.take(self.frame, self.state, of(mine), self.at(effect))

    def invoke(self, effect: fx.Invoke) -> None:
        """Call what the callee could not know."""
        with_mode = self._enter(effect.mode)
        value = self.frame.machine.call(
            self.frame, self.state, self.value(effect.callee), self.arguments(effect.arguments), self.at(effect)
        )
        self._leave(with_mode, effect.mode)
        self._answer(effect.result, value)

    def invoke_method(self, effect: fx.InvokeMethod) -> None:
        """Call a method of what the callee could not know."""
        with_mode = self._enter(effect.mode)
        value = self.frame.machine.call_method(
            self.frame,
            self.state,
            self.value(effect.receiver),
            effect.name,
            self.arguments(effect.arguments),
            self.at(effect),
        )
        self._leave(with_mode, effect.mode)
        self._answer(effect.result, value)

    def load(self, effect: fx.Load) -> None:
        """Read what stands in a place by now."""
        base, machine = self.value(effect.base), self.frame.machine
        frame, state, point, key = self.frame, self.state, self.at(effect), self.key(effect.key)
        if effect.key is Special.ELEMENT and isinstance(effect.point.site, For):
            value = machine.advance(frame, state, base, point)
        elif effect.item:
            value = machine.item(frame, state, base, key, point)
        else:
            value = machine.attribute(frame, state, base, key, point)
        self._answer(effect.result, value)

    def mode(self, mode: Mode | ModeOf) -> Mode | ModeOf:
        """Return the mode of an effect of the callee, as it is here."""
        if mode is Mode.CALLER:
            return self.state.mode
        if isinstance(mode, ModeOf):
            return guards.mode_within(self.frame.machine.index.contracts, self.state.mode, self.of(mode.context))
        return mode

    def _enter(self, mode: Mode | ModeOf) -> Mode | ModeOf:
        saved = self.state.mode
        self.state.mode = self.mode(mode)
        return saved

    def _leave(self, saved: Mode | ModeOf, mode: Mode | ModeOf) -> None:
        if mode is not Mode.CALLER:
            self.state.mode = saved

    def _answer(self, result: Result, value: Value) -> None:
        self.map[result] = value
        for known in self.behind.pop(result, ()):
            self.map.pop(known, None)

    def ran(self, effect: fx.Ran) -> None:
        """Note that a module was run."""
        self.frame.note_run(self.at(effect))

    def forward(self, effect: fx.Forward) -> None:
        """Begin a graph, if the mode allows it here."""
        frame, state = self.frame, self.state
        mode = self.mode(effect.mode)
        graph = effect.graph
        if mode is Mode.OFF:
            self.map[graph] = tensor(bare(frame, self.sources(effect.inputs), self.at(effect)))
            frame.note_run(self.at(effect))
            self.infer(effect)
            return
        if frame.inside:
            frame.note_run(self.at(effect))
            outer = frame.inside[-1]
            if outer is not None:
                frame.provenance.derive(outer, self.sources(effect.inputs))
            self.map[graph] = NOTHING if outer is None else tensor((outer,))
            return
        new = Graph.of(graph.site, extended(graph.context, self.calls))
        self.map[graph] = tensor((new,))
        inputs = self.sources(effect.inputs)
        frame.bend(inputs)
        frame.provenance.derive(new, inputs)
        frame.arise(new)
        state.spent = state.spent - {new}
        module = self.value(effect.module)
        evaluating = self._is_evaluating(effect, module)
        frame.log(fx.Forward(self.at(effect), module, inputs, mode, new, evaluating, effect.given))

    def infer(self, effect: fx.Infer | fx.Forward) -> None:
        """Run a module with gradients off."""
        module = self.value(effect.module)
        self.frame.log(fx.Infer(self.at(effect), module, self._is_evaluating(effect, module)))

    def _is_evaluating(self, effect: fx.Infer | fx.Forward, module: Value) -> bool:
        """Was eval() called last on a module, which perhaps only a caller knows?"""
        symbolic = any(r.symbolic for r in effect.module.refs)
        return gradients.is_evaluating(self.state, module) if symbolic else effect.evaluating

    def derive(self, effect: fx.Derive) -> None:
        """Compute with what the caller gives: a leaf begins a graph, and without gradients there is none."""
        state = self.state
        saved = self._enter(effect.mode)
        inputs = self.sources(effect.inputs)
        sources = computed(self.frame, state, inputs, self.at(effect), effect.copies, sums=effect.sums)
        self._leave(saved, effect.mode)
        self.map[effect.node] = tensor(sources)

    def differentiate(self, effect: fx.Differentiate) -> None:
        """Run backward."""
        sources = self.sources(effect.sources)
        options = effect.retains, effect.creates, effect.asked, effect.named
        differentiate(self.frame, self.state, sources, self.at(effect), *options)

    def read(self, effect: fx.Read) -> None:
        """Read values."""
        self.frame.read(self.sources(effect.sources), effect.reading)

    def bend(self, effect: fx.Bend) -> None:
        """Compute what is no sum."""
        self.frame.bend(self.sources(effect.sources))

    def use(self, effect: fx.Use) -> None:
        """Note what a use shows of an object of the caller."""
        base = self.of(effect.reference)
        if effect.evidence in (fx.Evidence.EVALUATING, fx.Evidence.TRAINING):
            name = "eval" if effect.evidence is fx.Evidence.EVALUATING else "train"
            for target in base.each():
                modules.switch(CallSite(self.frame, self.state, self.at(effect), Arguments()), target, name)
            return
        if effect.evidence is fx.Evidence.GRADIENT:  # of what does not matter
            self.frame.log(fx.Use(self.at(effect), effect.reference, effect.evidence))
            return
        if effect.evidence is fx.Evidence.HANDED:
            gradients.hand(self.frame, self.state, [base], self.at(effect))
            return
        computed_here = (type(effect.reference) is Derived or not base.refs) and len(base.graph) == 1
        by_graph = computed_here or effect.evidence is fx.Evidence.DETACHED
        for target in base.graph if by_graph else base.each():
            if effect.evidence is fx.Evidence.TAUGHT:
                gradients.use(self.frame, self.state, target, self.at(effect))
            elif (
                target.symbolic
                or type(target) in (Derived, Part)
                or (type(target) is Object and target.kind is Kind.OPAQUE)
            ):
                self.frame.log(fx.Use(self.at(effect), target, effect.evidence))

    def keep(self, effect: fx.Keep) -> None:
        """Let grow what the callee lets grow in places of its own; others' places grow by its writes."""
        holder, _ = effect.place
        if holder is not None and is_outside(holder):
            return
        loop = Loop.of(effect.loop.site, extended(effect.loop.context, self.calls))
        if loop in self.frame.bounded:
            return
        phi = next((s for s in self.of(effect.phi).graph if type(s) is Phi), None)
        if phi is None:
            return
        for event in effect.events:
            if type(event) is Graph:  # its pass may have used more than it was given: what an attribute holds
                self._derive(event, self.parents.get(event, ()))
        provenance, around = self.frame.provenance, frozenset((*self.frame.loops, loop))
        held, sources = self.sources(effect.came_round), self.sources(effect.sources)
        came_round = provenance.ancestors(held, around)
        if phi not in came_round:
            return
        stored = provenance.alone(sources, came_round & provenance.ancestors(sources, around))
        made = provenance.made_in(loop)
        if with_graphs(effect.events):
            events = with_graphs(frozenset(s for s in stored if root(s) in made))
        else:  # nothing of the caller decides whether it makes them
            events = self.sources(effect.events) & stored
        if events:
            place = phi.place
            seen = provenance.ancestors(self.frame.read_in.get(loop, ()), around)
            read = effect.read or is_among(phi, events, seen)
            point, how = self.at(effect), effect.how
            spent = events & (self.sources(effect.spent) | self.state.spent)
            reset = fx.Reset.OFTEN if place[0] in self.frame.erased.get(loop, ()) else effect.reset
            flags = reset, read, effect.stored
            self.frame.log(fx.Keep(point, place, phi, sources, held, events, spent, how, loop, *flags))

    def hold(self, effect: fx.Hold) -> None:
        """Note what variables of the callee hold when its loop comes round."""
        held = tuple((name, self.sources(sources)) for name, sources in effect.held)
        self.frame.log(fx.Hold(self.at(effect), held))

    def slotted(self, effect: fx.Slotted) -> None:
        """Store in a slot of an object that the callee made; others' slots are stored to by its writes."""
        if effect.slot.holder.symbolic:
            return
        sources = self.sources(effect.sources)
        for mine in self.of(effect.slot.holder).each():
            slot = Slot.of(mine, self.key(effect.slot.key))
            self.frame.provenance.derive(slot, sources)
            repeated = effect.repeated or bool(self.frame.loops)
            how = fx.How.HOOK if self.frame.hooks else effect.how
            if sources:
                self.frame.log(fx.Slotted(self.at(effect), slot, sources, how, repeated, effect.stored))

    def put(self, effect: fx.Put) -> None:
        """Put something into a container that the callee made; into those of others, its writes do."""
        sources = self.sources(effect.sources)
        if sources:
            self.frame.log(fx.Put(self.at(effect), sources, effect.made.below(self.calls), effect.names))

    def freeze(self, effect: fx.Freeze) -> None:
        """Set `requires_grad`."""
        set_flag = modules.assign_requires_grad if effect.assigned else gradients.set_requires_grad
        set_flag(self.frame, self.state, self.of(effect.reference), self.value(effect.flag), self.at(effect))

    def note(self, effect: fx.Note) -> None:
        """Note what is remarkable in the callee, or in what its caller wants of it."""
        flag, at = self.value(effect.flag), self.at(effect)
        if effect.what is Remark.DATA:
            self.frame.log(fx.Note(at, effect.what, of=self.value(effect.of), mode=self.mode(effect.mode)))
            return
        within = effect.within and effect.within.below(self.calls)
        point = at if effect.flag.known else self.point
        guards.note(self.frame, effect.what, flag, point, within if effect.flag.known else within or at)

    def move(self, effect: fx.Move) -> None:
        """Bring something to the host or to an accelerator."""
        of, device = self.value(effect.of), self.value(effect.device)
        self.frame.log(fx.Move(self.at(effect), of, effect.to_host, device, effect.waits, effect.as_given))

    def serve(self, effect: fx.Serve) -> None:
        """Manage memory, or load data."""
        given = containers.spread(self.state, self.arguments(effect.arguments))
        self.frame.log(fx.Serve(self.at(effect), effect.name, given))

    def set_mode(self, effect: fx.SetMode) -> None:
        """Change the gradient mode."""
        self.state.mode = self.entry_mode if effect.mode is Mode.CALLER else self.mode(effect.mode)
        self.frame.log(fx.SetMode(effect.point, self.state.mode))

    def register(self, effect: fx.Register) -> None:
        """Register a hook."""
        modules.register(
            self.frame, self.state, self.of(effect.owner), self.value(effect.hook), effect.kind, self.at(effect)
        )

    def step(self, effect: fx.Step) -> None:
        """Run an optimizer's step."""
        optimizers.step(self.frame, self.value(effect.holder), effect.name, self.at(effect))

    def returned(self, effect: fx.Returned) -> None:
        """Do nothing: what a callee returns is no end."""

    def repeat(self, effect: fx.Repeat) -> None:
        """Run a loop of the callee with what is known of it here."""
        loop = Loop.of(effect.loop.site, extended(effect.loop.context, self.calls))
        places = []
        for holder, key in effect.places:
            if holder is not None:
                places += [(mine, self.key(key)) for mine in self.of(holder).refs if not isinstance(mine, External)]
        over = self.frame.over[loop] = self.value(effect.over)
        if effect.bounded or access.is_short(self.state, over):
            self.frame.bounded.add(loop)
        state = self.state
        self.frame.machine.run_loop(
            self.frame, state, loop, lambda inside: self._within(inside, effect.effects), tuple(places)
        )

    def fork(self, effect: fx.Fork) -> None:
        """Perform the effects of the branches that can be taken."""
        test = self.value(effect.test)
        if test.known:
            self.perform(effect.then if test.constant else effect.orelse)
            return
        frame, state = self.frame, self.state
        outer, frame.effects = frame.effects, []
        other = state.copy()
        found, frame.missing = frame.missing, frame.missing | missed(effect.point.site)
        self.perform(effect.then)
        frame.missing = found
        then, frame.effects = frame.effects, []
        self._within(other, effect.orelse)
        orelse, frame.effects = frame.effects, outer
        state.join(other)
        if then or orelse:
            frame.log(fx.Fork(self.at(effect), test, then, orelse))


_PERFORMERS: dict[type[Effect], Callable[[Substitution, Any], None]] = {
    fx.Write: Substitution.write,
    fx.Erase: Substitution.erase,
    fx.Renew: Substitution.renew,
    fx.Invoke: Substitution.invoke,
    fx.InvokeMethod: Substitution.invoke_method,
    fx.Load: Substitution.load,
    fx.Forward: Substitution.forward,
    fx.Ran: Substitution.ran,
    fx.Infer: Substitution.infer,
    fx.Derive: Substitution.derive,
    fx.Differentiate: Substitution.differentiate,
    fx.Read: Substitution.read,
    fx.Bend: Substitution.bend,
    fx.Use: Substitution.use,
    fx.Keep: Substitution.keep,
    fx.Hold: Substitution.hold,
    fx.Slotted: Substitution.slotted,
    fx.Put: Substitution.put,
    fx.Freeze: Substitution.freeze,
    fx.SetMode: Substitution.set_mode,
    fx.Note: Substitution.note,
    fx.Move: Substitution.move,
    fx.Serve: Substitution.serve,
    fx.Register: Substitution.register,
    fx.Step: Substitution.step,
    fx.Returned: Substitution.returned,
    fx.Repeat: Substitution.repeat,
    fx.Fork: Substitution.fork,
}

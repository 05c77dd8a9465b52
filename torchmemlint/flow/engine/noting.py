"""The effects of a callee that change nothing that an object of its caller holds."""

from __future__ import annotations

from torchmemlint.closure import closure
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import HOLDERS, Mode
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import TAKEN_UP, How, Reset, Stored
from torchmemlint.flow.domain.memory import differentiate
from torchmemlint.flow.domain.refs import (
    Derived,
    Graph,
    Loop,
    Object,
    Part,
    Phi,
    Point,
    Slot,
    Source,
    extended,
    is_outside,
    root,
    with_graphs,
)
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.engine.holding import is_network
from torchmemlint.flow.engine.loops import is_among
from torchmemlint.flow.engine.renaming import Renaming
from torchmemlint.flow.models import containers, gradients, guards, optimizers
from torchmemlint.flow.models.hooks import register
from torchmemlint.flow.models.parameters import assign_requires_grad


class Noting(Renaming):
    """Takes down in the caller what is noted of a callee."""

    def read(self, effect: fx.Read) -> None:
        """Read values."""
        self.frame.read(self.sources(effect.sources), effect.reading)

    def bend(self, effect: fx.Bend) -> None:
        """Compute what is no sum."""
        self.frame.bend(self.sources(effect.sources))

    def compute(self, effect: fx.Compute) -> None:
        """Compute something of what the caller gives."""
        if self.state.mode is not Mode.OFF:
            self.frame.compute(with_graphs(self.sources((effect.source,))), self.at(effect))

    def use(self, effect: fx.Use) -> None:
        """Note what a use shows of an object of the caller."""
        base = self.of(effect.reference)
        if effect.evidence in gradients.SWITCHES:
            for target in base.each():
                gradients.switch(self.frame, self.state, target, effect.evidence)
                self.frame.log(fx.Use(self.at(effect), target, effect.evidence))
            return
        if effect.evidence is fx.Evidence.GRADIENT:  # of what does not matter
            self.frame.log(fx.Use(self.at(effect), effect.reference, effect.evidence))
            return
        if effect.evidence is fx.Evidence.HANDED:
            gradients.hand(self.frame, self.state, [base], self.at(effect))
            return
        if effect.evidence is fx.Evidence.TAUGHT:  # the callee was given a list of groups, or a result that is one
            gradients.use_of_all(self.frame, self.state, [base], self.at(effect))
            return
        computed_here = (type(effect.reference) is Derived or not base.refs) and len(base.graph) == 1
        by_graph = computed_here or effect.evidence is fx.Evidence.DETACHED
        for target in base.graph if by_graph else base.each():
            if (
                target.symbolic
                or type(target) in (Derived, Part)
                or (type(target) is Graph and effect.evidence is fx.Evidence.DETACHED)
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
        passes = [event for event in effect.events if type(event) is Graph]  # they may use what an attribute holds
        for source in (*passes, *closure(effect.came_round, self._slots)):  # by now, more is known of these
            self._derive(source, self.parents.get(source, ()))
        provenance, around = self.frame.provenance, frozenset((*self.frame.loops, loop))
        held, sources = (self.sources(sources, HOLDERS) for sources in (effect.came_round, effect.sources))
        came_round = provenance.ancestors(held, around)
        if phi not in came_round:
            return
        stored = provenance.alone(sources, came_round & provenance.ancestors(sources, around))
        made = provenance.made_in(loop)
        events = self.sources(effect.events) & stored  # which of these have a graph, the caller decides
        if with_graphs(effect.events) and (not events or with_graphs(events)):
            events = with_graphs(frozenset(s for s in stored if root(s) in made))
        if events:
            place = phi.holder, phi.key
            seen = provenance.ancestors(self.frame.read_in.get(loop, ()), around)
            read = effect.read or is_among(phi, events, seen)
            point, how = self.at(effect), effect.how
            spent = events & (self.sources(effect.spent) | self.state.spent)
            reset = Reset.OFTEN if place[0] in self.frame.erased.get(loop, ()) else effect.reset
            flags = reset, read, self._stored(effect)
            self.frame.log(fx.Keep(point, place, sources, events, held, phi, spent, how, loop, *flags))

    def _slots(self, source: Source) -> list[Source]:
        """Return the slots that something has come through."""
        return [parent for parent in self.parents.get(source, ()) if type(parent) is Slot]

    def hold(self, effect: fx.Hold) -> None:
        """Note what variables of the callee hold when its loop comes round."""
        held = tuple((name, mine) for name, sources in effect.held if (mine := self.sources(sources)))
        if held:
            self.frame.log(fx.Hold(self.at(effect), held))

    def slotted(self, effect: fx.Slotted) -> None:
        """Store in a slot of an object that the callee made; others' slots are stored to by its writes."""
        sources = self.sources(effect.sources)
        for mine in self.of(effect.slot.holder).each():
            slot = Slot.of(mine, self.key(effect.slot.key))
            self.frame.provenance.derive(slot, sources)
            repeated = effect.repeated or bool(self.frame.loops)
            how = How.HOOK if self.frame.hooks else effect.how
            if sources:
                self.frame.log(fx.Slotted(self.at(effect), slot, sources, how, repeated, self._stored(effect)))

    def _stored(self, effect: fx.Keep | fx.Slotted) -> Stored:
        """Return what is kept: of what the callee takes for a tensor, the caller may know that it only holds some."""
        known = any(self.of(source).graph for source in effect.sources)
        return effect.stored if known else Stored.HOLDER

    def put(self, effect: fx.Put) -> None:
        """Put something into a container that the callee made; into those of others, its writes do."""
        sources = self.sources(effect.sources)
        if sources:
            self.frame.log(fx.Put(self.at(effect), sources, effect.names, effect.escapes))

    def note(self, effect: fx.Note) -> None:
        """Note what is remarkable in the callee, or in what its caller wants of it."""
        flag, at = self.value(effect.flag), self.at(effect)
        if effect.what in TAKEN_UP:
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

    def remember(self, effect: fx.Remember) -> None:
        """Keep what a function is given whose decorator does so."""
        self.frame.log(fx.Remember(self.at(effect), effect.function, self.arguments(effect.arguments)))

    def infer(self, effect: fx.Infer | fx.Forward) -> None:
        """Run a module with gradients off."""
        module = self.value(effect.module)
        self.frame.log(fx.Infer(self.at(effect), module, self._is_evaluating(effect, module)))

    def _is_evaluating(self, effect: fx.Infer | fx.Forward, module: Value) -> bool:
        """Was eval() called last on a module, which perhaps only a caller knows?"""
        symbolic = any(r.symbolic for r in effect.module.refs)
        return gradients.is_evaluating(self.state, module) if symbolic else effect.evaluating

    def differentiate(self, effect: fx.Differentiate) -> None:
        """Run backward."""
        sources = self.sources(effect.sources)
        options = effect.retains, effect.creates, effect.asked, effect.named, self.sources(effect.ends)
        differentiate(self.frame, self.state, sources, self.at(effect), *options)

    def step(self, effect: fx.Step) -> None:
        """Run an optimizer's step."""
        optimizers.step(self.frame, self.value(effect.holder), effect.name, self.at(effect))

    def returned(self, effect: fx.Returned) -> None:
        """Do nothing: what a callee returns is no end."""

    def freeze(self, effect: fx.Freeze) -> None:
        """Set `requires_grad`."""
        set_flag = assign_requires_grad if effect.assigned else gradients.set_requires_grad
        set_flag(self.frame, self.state, self.of(effect.reference), self.value(effect.flag), self.at(effect))

    def register(self, effect: fx.Register) -> None:
        """Register a hook."""
        register(self.frame, self.state, self.of(effect.owner), self.value(effect.hook), effect.kind, self.at(effect))

    def hooked(self, effect: fx.Hooked) -> None:
        """Let what the callee has given a hook hold it."""
        hook = self.value(effect.hook)
        for handle in self.of(effect.handle).refs:
            for owner in self.of(effect.owner).each():
                self.frame.log(fx.Hooked(self.at(effect), owner, effect.kind, handle, hook))

    def circle(self, effect: fx.Circle) -> None:
        """Let what the callee has made hold itself, with what the caller has given it."""
        held = self.value(effect.holds).each()
        networks = [point.below(self.calls) for point in effect.networks]
        networks += [Point(r.site, r.context) for r in held if type(r) is Object and is_network(self.frame, r)]
        symbols = Value(frozenset(r for r in held if r.symbolic))
        sources = self.sources(effect.sources)
        self.frame.log(fx.Circle(self.at(effect), effect.way, tuple(networks), symbols, sources, effect.sole))

    def hoard(self, effect: fx.Hoard) -> None:
        """Note what the callee still held when it ended."""
        networks = tuple(point.below(self.calls) for point in effect.networks)
        self.frame.log(fx.Hoard(self.at(effect), networks, effect.variable))

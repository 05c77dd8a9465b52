"""The application of a summary: the callee's symbols become the caller's values, and its effects are performed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.domain.frame import Summary
from torchmemlint.flow.domain.heap import Mode, ModeOf, State
from torchmemlint.flow.domain.keys import each_key
from torchmemlint.flow.domain.kinds import Special
from torchmemlint.flow.domain.memory import bare, begin, changed_in_place, computed, erase
from torchmemlint.flow.domain.refs import (
    PATH_LIMIT,
    Behind,
    Derived,
    External,
    Graph,
    Key,
    Loop,
    Object,
    Ref,
    Result,
    extended,
)
from torchmemlint.flow.domain.values import NOTHING, Value, constant, of, tensor
from torchmemlint.flow.engine import access, instances
from torchmemlint.flow.engine.lazy import is_short
from torchmemlint.flow.engine.loops import note_loop
from torchmemlint.flow.engine.noting import Noting
from torchmemlint.flow.ir.blocks import missed
from torchmemlint.flow.ir.control import For, If
from torchmemlint.flow.models import containers, handing, library

# They change nothing that an object holds.
_QUIET = fx.TAKEN_DOWN | {fx.Infer, fx.Serve, fx.Use, fx.Note, fx.Read, fx.Step, fx.Differentiate}
# No work: each takes a tenth of what a call, a loop, a branch, or what reads or writes the heap takes.
_LIGHT = _QUIET | {fx.Derive, fx.Forward, fx.Hold, fx.Keep, fx.SetMode, fx.Slotted}


class Substitution(Noting):
    """One application of a summary."""

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

    def perform(self, effects: list[Effect]) -> None:
        """Perform effects in order."""
        machine = self.frame.machine
        machine.spend(sum(type(effect) not in _LIGHT for effect in effects), self.state)
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
        elif effect.key is Special.LAST:
            for holder in base.each():
                containers.put_last(self.frame, self.state, holder, value, self.at(effect))
        elif effect.key is Special.GRAPH:
            changed_in_place(self.frame, self.state, base, value.graph, self.at(effect))
        elif base.refs and isinstance(effect.key, str) and not effect.weak:
            instances.set_attribute(self.frame, self.state, base, effect.key, value, self.at(effect))
        elif base.refs:
            for target, key in self._targets(base, effect.key):
                self.frame.machine.write(self.frame, self.state, target, key, value, self.at(effect), effect.weak)

    def _targets(self, base: Value, key: Key) -> Iterator[tuple[Value, Key]]:
        """Yield containers, with a key. What runs over the keys of its own container does so here, too."""
        if type(key) is Behind and key is each_key(key.base) and self.of(key.base).refs == base.refs:
            yield from ((of(r), each_key(r)) for r in base.each() if r.depth < PATH_LIMIT)
        else:
            yield base, self.key(key)

    def erase(self, effect: fx.Erase) -> None:
        """Empty what the callee empties."""
        key = None if effect.key is None else self.key(effect.key)
        erase(self.frame, self.state, self.of(effect.holder), key, self.at(effect))

    def renew(self, effect: fx.Renew) -> None:
        """Begin another object, or go on to another item: if that is an object of the caller, it stays what it is."""
        made = type(effect.made) is Object
        with_mode = self._enter(effect.mode)
        items = self.of(effect.made)
        self._leave(with_mode, effect.mode)
        for mine in items.each():
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
        with_mode = self._enter(effect.mode)
        if type(effect.result.read) is Object:
            value = handing.asked(frame, state, base, effect.key, effect.item, point, next(iter(base.each()), None))
        elif effect.key is Special.ELEMENT and isinstance(effect.point.site, For):
            value = machine.advance(frame, state, base, point)
        elif effect.item:
            value = machine.item(frame, state, base, key, point)
        else:
            value = machine.attribute(frame, state, base, key, point)
        self._leave(with_mode, effect.mode)
        self._answer(effect.result, value)

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

    def derive(self, effect: fx.Derive) -> None:
        """Compute with what the caller gives: a leaf begins a graph, and without gradients there is none."""
        state = self.state
        saved = self._enter(effect.mode)
        inputs = self.sources(effect.inputs)
        if type(effect.node) is Derived:
            sources = computed(self.frame, state, inputs, self.at(effect), effect.copies, sums=effect.sums)
        else:
            sources = library.passed(self.frame, inputs, self.at(effect), state.mode)
        self._leave(saved, effect.mode)
        self.map[effect.node] = tensor(sources)

    def set_mode(self, effect: fx.SetMode) -> None:
        """Change the gradient mode."""
        self.state.mode = self.entry_mode if effect.mode is Mode.CALLER else self.mode(effect.mode)
        self.frame.log(fx.SetMode(effect.point, self.state.mode))

    def repeat(self, effect: fx.Repeat) -> None:
        """Run a loop of the callee with what is known of it here."""
        loop = Loop.of(effect.loop.site, extended(effect.loop.context, self.calls))
        places = []
        for holder, key in effect.places:
            if holder is not None:
                places += [(mine, self.key(key)) for mine in self.of(holder).refs if not isinstance(mine, External)]
        over = self.frame.over[loop] = self.value(effect.over)
        if effect.bounded or is_short(self.state, over):
            self.frame.bounded.add(loop)
        if not places and effect.is_still:
            note_loop(self.frame, loop, lambda: self.perform(effect.effects))
            return
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
        other = state if effect.is_still else state.copy()
        site, found = effect.point.site, frame.missing
        often = isinstance(site, If) and site.often
        frame.missing |= missed(site)
        frame.often += often
        self.perform(effect.then)
        frame.often -= often
        frame.missing = found
        then, frame.effects = frame.effects, []
        self._within(other, effect.orelse)
        orelse, frame.effects = frame.effects, outer
        if other is not state:
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
    fx.Compute: Substitution.compute,
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
    fx.Remember: Substitution.remember,
    fx.Register: Substitution.register,
    fx.Hooked: Substitution.hooked,
    fx.Circle: Substitution.circle,
    fx.Hoard: Substitution.hoard,
    fx.Step: Substitution.step,
    fx.Returned: Substitution.returned,
    fx.Repeat: Substitution.repeat,
    fx.Fork: Substitution.fork,
}

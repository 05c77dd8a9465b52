"""The engine of one project: functions run once for each way in which they are called, and their summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from torchmemlint.closure import closure
from torchmemlint.flow.domain import memory
from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.frame import Frame, Part, Summary, fresh_temps
from torchmemlint.flow.domain.heap import Heap, Mode, ModeOf, State
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import Code, Globals, Input, Key, Object, Point, Ref
from torchmemlint.flow.domain.values import NO_CONSTANT, NOTHING, PLAIN, SOME, UNKNOWN, Value, constant, of, symbol
from torchmemlint.flow.engine import access, calls, control, decorating, following, holding, loops
from torchmemlint.flow.engine.binding import Binding
from torchmemlint.flow.engine.given import Networks, networks
from torchmemlint.flow.engine.places import MODULE_NAME
from torchmemlint.flow.engine.store import Store
from torchmemlint.flow.engine.summaries import summarised
from torchmemlint.flow.engine.unknown import unknown
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.ops import Class, Constant, Function, Parameter, Passing, Unit
from torchmemlint.flow.models import settings
from torchmemlint.flow.names.index import Index, reference

BUDGET = 3_300  # work for one entry or summary, or one for each temporary of its own
_PASSES = BUDGET // 2  # of that, for all passes of one network
_LEAST = 300  # for one entry, where little is left for its files
_ASIDE = 2 * _LEAST  # for one that is run only for what it leaves behind
_LARGE = 500  # objects
_MAIN = "__main__"  # the name of a module that Python runs as a script


@dataclass(slots=True)
class _Share:
    """The work of one entry or summary."""

    spent: int = 0
    most: int = field(default_factory=lambda: BUDGET)  # for now
    passed: Counter[Object] = field(default_factory=Counter)  # of that, by passes of each network
    within_part: bool = False
    long: set[Object] = field(default_factory=set)  # networks that it could not run to their ends


@dataclass(eq=False)
class Engine:
    """Runs the functions of a project."""

    index: Index
    pulse: Callable[[], None] = field(default=lambda: None)  # called again and again; may end it all by raising
    active: list[Function] = field(default_factory=list)
    called: dict[Function, Mode] = field(default_factory=dict)  # by another function of the project, in which mode
    left: dict[Function, Mode] = field(default_factory=dict)  # by a run that was cut, and in which mode
    unsure: set[Function] = field(default_factory=set)  # of that, by a run that may be begun in another mode
    given: dict[Function, Networks] = field(default_factory=dict)  # networks, by a call that was not followed
    _modules: dict[Unit, tuple[Frame, State]] = field(default_factory=dict)
    _programs: dict[Unit, tuple[Frame, State]] = field(default_factory=dict)
    _imported: dict[Unit, list[Unit]] = field(default_factory=dict)
    _ready: set[Unit] = field(default_factory=set)  # modules whose bodies have been run to their ends
    _share: _Share = field(default_factory=_Share)
    _left: int = 0  # for the files that are run
    _summaries: Store = field(init=False)

    def __post_init__(self) -> None:
        self._summaries = Store(self._summarised)

    # What its parts ask of each other.

    call = staticmethod(calls.call)
    call_method = staticmethod(calls.call_method)
    attribute = staticmethod(access.attribute)
    item = staticmethod(access.item)
    iterate = staticmethod(access.iterate)
    advance = staticmethod(access.advance)
    consume = staticmethod(access.consume)
    write = staticmethod(memory.write)
    run_loop = staticmethod(loops.run_loop)
    postpone = staticmethod(unknown)

    def default(self, state: State, code: Code, parameter: Parameter) -> Value:
        """Return what a parameter is that is not given: the default that its definition evaluated."""
        if not parameter.has_default:
            return settings.option(code.function, parameter.name) or UNKNOWN
        place: Key = ("default " + parameter.name, 0)
        found = state.heap.get(code, place)
        if found is None and type(code.frame) is Globals:
            found = self.end_of(code.function.unit).heap.get(code, place)
        return UNKNOWN if found is None else found

    def begin(
        self,
        called: Mapping[Function, Mode],
        left: Mapping[Function, Mode],
        given: Mapping[Function, Networks],
        work: int,
    ) -> None:
        """Begin with other files: what is known of them so far is that these functions are called."""
        self.called, self.left, self.unsure, self._left = dict(called), dict(left), set(), work
        self.given = dict(given)
        self._summaries.begin()

    def imported(self, units: Iterable[Unit]) -> set[Unit]:
        """Return some files and all that they import, directly or not."""
        return closure(units, self._imports)

    def spend(self, effects: int, state: State) -> None:
        """Count the work of one entry or summary: effects, and what it takes to branch where many objects are held."""
        self.pulse()
        work = effects + len(state.heap.table) // _LARGE
        self._share.spent += work
        self._left -= work

    def is_finished(self) -> bool:
        """Is the work for these files used up?"""
        return self._left <= 0

    def is_exhausted(self) -> bool:
        """Has it used up its share of work?"""
        return self._share.spent > self._share.most

    @contextmanager
    def part(self, frame: Frame, network: Object | None = None, alone: bool = False) -> Iterator[Part]:
        """Make an object, or run a network, with two thirds of the work that is left: the rest is for what follows.

        `alone`: nothing follows. One that would take more does not end the run: what was not put into the object may be
        anything, and a pass is one pass whatever it is made of. The run is cut only if some of what it trains was seen.
        A network that took too much is not to be run once more.
        """
        share = self._share
        part = Part(is_short=network in share.long)
        if share.within_part or part.is_short:
            yield part
            return
        begun, most, was_cut, start = share.spent, share.most, frame.cut, len(frame.effects)
        share.most -= 0 if alone else max(0, most - begun) // 3
        if network is not None:
            share.most = min(share.most, begun + max(0, _PASSES - share.passed[network]))
        share.within_part = True
        try:
            yield part
        finally:
            share.most, share.within_part = most, False
            part.is_short = frame.cut and not was_cut
            if network is not None:
                share.passed[network] += share.spent - begun
                if part.is_short:
                    share.long.add(network)
        if part.is_short and (alone or not self.is_exhausted()):
            frame.cut = following.trains(frame.effects[start:])

    def unseen_instance(self, state: State, cls: Class, site: Function) -> Value:
        """Return an instance of a class that was made elsewhere, with arguments that are not known."""
        frame = Frame(site, self, Globals.of(site.unit.name), entry=True)
        init = self.index.method(cls, "__init__")
        first = site.body[0] if site.body else cls.parent.body[0]
        arguments = Arguments()
        if init is not None:
            for parameter in init.parameters[1:]:
                if parameter.passing is Passing.POSITIONAL:
                    arguments.positional.append(symbol(Input.of(init, parameter.name)))
        made = self.call(frame, state, of(reference(cls)), arguments, Point(first, (cls,)))
        self._note_calls(frame)
        return made

    # Modules.

    def end_of(self, unit: Unit) -> State:
        """Return the state that a module leaves which is imported; while it is being run, what it has come to."""
        self._import([unit])
        return self._modules[unit][1]

    def run_program(self, unit: Unit) -> tuple[Frame, State]:
        """Run the body of a module once, as a script: with what it does only if it is one."""
        ends = self._programs if _is_script(unit) else self._modules
        if ends is self._modules:
            self._import([unit])
        elif unit not in ends:
            self._import(self._imports(unit))
            self._run_module(unit, ends, PLAIN)
        self._note_calls(ends[unit][0])  # also if it was run before, for other files
        return ends[unit]

    def _import(self, units: Iterable[Unit]) -> None:
        """Run the bodies of modules, once, as an import does: each after those that it imports."""
        for unit in units:
            order = self._import_order(unit) if unit not in self._modules else []
            early = [needed for needed in order if not self._run_imported(needed)]
            for needed in early:
                self._run_imported(needed)

    def _run_imported(self, unit: Unit) -> bool:
        """Run the body of a module. Were all that it imports run before? Not where modules import each other."""
        complete = self._ready.issuperset(self._imports(unit))
        self._run_module(unit, self._modules, constant(unit.name))
        self._ready.add(unit)
        return complete

    def _run_module(self, unit: Unit, ends: dict[Unit, tuple[Frame, State]], name: Value) -> None:
        frame, state = ends[unit] = self.frame(unit.module), self.start(unit.module)
        if _is_script(unit):
            state.heap.put(frame.own, MODULE_NAME, name)
        with self._apart(), self.share(frame):
            self._run(frame, state)
        state.dead = False

    @contextmanager
    def share(self, frame: Frame) -> Iterator[None]:
        """Begin with a share of work; what goes too deep ends early, and says so."""
        outer, self._share = self._share, _Share(most=max(BUDGET, frame.function.temps))
        if frame.function.parent is not None:  # others of these files are to be run, too
            self._share.spent = max(0, BUDGET - max(self._left // 2, _LEAST))
        try:
            yield
        except RecursionError:
            frame.cut = True
            frame.loops.clear()
        finally:
            self._share = outer
            self._note_calls(frame)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Run an entry for what it leaves behind alone: with little work, none of it from others, calling nothing."""
        known = self.called.copy(), self.left.copy(), self.unsure.copy(), self._left
        self._left = min(self._left, 2 * _ASIDE)
        try:
            yield
        finally:
            self.called, self.left, self.unsure, self._left = known

    def _import_order(self, unit: Unit) -> list[Unit]:
        """Return a module and those that it imports, directly or not, as far as they have not been run."""
        order: list[Unit] = []
        met = {unit}
        path = [(unit, iter(self._imports(unit)))]
        while path:
            current, rest = path[-1]
            following = next((u for u in rest if u not in met and u not in self._modules), None)
            if following is not None:
                met.add(following)
                path.append((following, iter(self._imports(following))))
            else:
                order.append(current)
                path.pop()
        return order

    # Summaries.

    def summary(self, function: Function, bound: Binding, state: State) -> Summary | None:
        """Return the summary of a function for what its parameters are given; None while it is being made."""
        return self._summaries.of(function, bound, state, self.active)

    def is_unfinished(self, function: Function) -> bool:
        """Is a summary of it being made? That is made once more, then."""
        return self._summaries.is_unfinished(function, self.active)

    def is_to_repeat(self, frame: Frame, function: Function) -> bool:
        """Does a call begin a circle? Calls within one that is being repeated, or will be, are a part of it."""
        return self._summaries.is_to_repeat(function, self.active, frame.loops)

    def _summarised(self, function: Function, constants: dict[str, object]) -> Summary:
        """Run a function for its summary: the work is its own, not that of the entry that asks for it first."""
        with self._apart():
            self._share.most = max(BUDGET, function.temps)
            frame, end = self.run(function, constants)
            return summarised(frame, end)

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """Work for what is run once for all, whoever asks for it first: with a share of its own, and no file's."""
        outer, left, self._share = self._share, self._left, _Share()
        try:
            yield
        finally:
            self._share, self._left = outer, left

    def may_train(self, summary: Summary) -> bool:
        """Does a function run a network or train one, or may it where it was not followed to its end?"""
        if following.trains(summary.effects):
            return True
        names = self.index.contracts.names("differentiates").last_parts
        units = {function.unit for function, _ in following.within([(summary, Mode.CALLER)])}
        return any(not names.isdisjoint(function.mentions) for unit in units for function in unit.functions)

    def leave(self, function: Function, mode: Mode | ModeOf) -> None:
        """Note that a function was called in a mode, but not followed."""
        following.note(self.left, [(function, mode)])

    def give(self, function: Function, bound: Binding) -> None:
        """Note which networks a function is given that may have to be run by itself."""
        if function not in self.given and (found := networks(self.index, bound)):
            self.given[function] = found

    def _note_calls(self, frame: Frame) -> None:
        """Note what a run from outside has called: what it shows is doubted if it was not run to its end."""
        calls = following.within(frame.followed.items())
        following.note(self.left if frame.cut else self.called, calls)

    def run(self, function: Function, known: dict[str, object]) -> tuple[Frame, State]:
        """Run a function with symbols for its inputs, but for those whose constants are known."""
        frame = self.frame(function)
        state = self.start(function)
        for parameter in function.parameters:
            value = symbol(Input.of(function, parameter.name))
            constant = known.get(parameter.name, NO_CONSTANT)
            if constant is not NO_CONSTANT:
                graph = value.graph if constant is SOME else NOTHING.graph
                value = Value(value.refs if constant is SOME else frozenset(), graph, constant)
            if parameter.name in function.shared:
                state.heap.put(frame.own, parameter.name, value)
            else:
                state.variables[parameter.name] = value
        for name in function.around & known.keys():
            state.heap.put(Input.of(function, Special.OUTER), name, Value(constant=known[name]))
        self._run(frame, state)
        return frame, state

    def run_body(self, frame: Frame, state: State) -> None:
        """Run the body of a frame's function, and join all ways out of it."""
        control.run_block(frame, state, frame.function.body)
        for other in frame.exits:
            state.join(other)
        holding.note(frame, state)

    def _run(self, frame: Frame, state: State) -> None:
        calling = [] if frame.function.parent is None else self.active  # who imports a module does not call it
        active, self.active = self.active, [*calling, frame.function]
        try:
            self.run_body(frame, state)
        finally:
            self.active = active

    def frame(self, function: Function) -> Frame:
        """Return a new frame of a function."""
        own: Ref = Object.of(Kind.FRAME, function, ())
        if function.parent is None:
            own = Globals.of(function.unit.name)
        return Frame(function, self, own, temps=fresh_temps(function), entry=function.parent is None)

    def start(self, function: Function) -> State:
        """Return the state that a function begins in."""
        mode = decorating.mode_of(self.index, function) or (Mode.ON if function.parent is None else Mode.CALLER)
        state = State({}, Heap(), mode, frozenset())
        if function.parent is None:
            for other in self._imports(function.unit):
                if other in self._modules:
                    state.heap.take(self._modules[other][1].heap)
            if not function.unit.stars:  # those give names that are not seen
                state.heap.put(Globals.of(function.unit.name), Special.BODY, PLAIN)
        else:
            outer = Input.of(function, Special.OUTER)
            own = Object.of(Kind.FRAME, function, ())
            state.heap.put(own, Special.OUTER, symbol(outer))
        return state

    def _imports(self, unit: Unit) -> list[Unit]:
        """Return the modules of the project that are run before a file which imports them."""
        known = self._imported.get(unit)
        if known is None:
            known = self._imported[unit] = self._all_imports(unit)
        return known

    def _all_imports(self, unit: Unit) -> list[Unit]:
        found: dict[Unit, None] = {}
        for where in [*unit.imports.values(), *unit.stars]:
            qualified = self.index.absolute(unit, where)
            for name in (qualified, qualified.rpartition(".")[0]):
                other = self.index.module(name) if name and not self.index.sources.is_library(name) else None
                if other is not None and other is not unit:
                    found[other] = None
        return list(found)


def _is_script(unit: Unit) -> bool:
    """Does the body of a module ask whether Python runs it as a script?"""
    if MODULE_NAME not in unit.module.mentions:
        return False
    return any(isinstance(op, Constant) and op.value == _MAIN for op in operations(unit.module.body))

"""Lives of objects: the methods of a class that nobody calls, each by itself, and all of them again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import Mode, State, reachable
from torchmemlint.flow.domain.memory import renew_keys
from torchmemlint.flow.domain.refs import (
    Begun,
    Bound,
    ClassRef,
    Globals,
    Graph,
    Input,
    Key,
    Loop,
    Object,
    Point,
    Ref,
    Result,
    Site,
    Source,
    root,
    with_graphs,
)
from torchmemlint.flow.domain.values import NO_SOURCES, NONE, UNKNOWN, Value, chosen, join, join_all, of
from torchmemlint.flow.engine import instances, steps
from torchmemlint.flow.engine.instances import code_of
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.inputs import enter, given
from torchmemlint.flow.fact.logs import Run, logged
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import CallMethod, Class, Function, SetAttribute

Call = Callable[[Frame, State], Value]


def runs(engine: Engine, cls: Class, methods: list[Function], end: State) -> Iterator[Run]:
    """Yield the runs of a class's methods on one object that is made with unknown arguments."""
    init = engine.index.method(cls, "__init__")
    state = end.copy()
    found = _made(engine, cls, init or methods[0], state)
    if found is None:
        return
    before, receiver = found
    yield before
    if init is None:
        _choose(engine, cls, state, receiver)
    ready = _filled(engine, cls, state, receiver)
    outer, within = _templates(engine, cls)
    entered = [*outer, *within, *(m for m in methods if m.name != "__init__" and m.body)]
    keeps = was_cut = False
    for method in entered:
        if method.cls is cls and method in engine.called and not is_hook(engine, method):
            continue  # by a method of a base class, meanwhile
        if method in within and not was_cut:
            continue
        run = _alone(engine, cls, method, receiver, ready)
        was_cut = was_cut or run.cut
        keeps = keeps or holds_graph(run.state, receiver)
        _begin_with(run, before)
        yield run
    if keeps:
        yield _life(engine, cls, entered, receiver, state)


def inner(engine: Engine, cls: Class, end: State) -> Iterator[Run]:
    """Yield the run of a network's forward in which each network that it calls makes a pass of its own."""
    forward, state = cls.methods["forward"], end.copy()
    found = _made(engine, cls, engine.index.method(cls, "__init__") or forward, state)
    if found is not None:
        before, receiver = found
        run = _alone(engine, cls, forward, receiver, state, inner=True)
        _begin_with(run, before)
        yield run


def _made(engine: Engine, cls: Class, first: Function, state: State) -> tuple[Run, Ref] | None:
    """Make an object of a class, with what is not known: return the run of that, and the object."""
    home: Ref = Globals.of(cls.unit.name)
    start = Frame(first, engine, home, entry=True)
    if not first.body:
        return None
    made = Value()
    with engine.share(start), engine.part(start, alone=True):
        arguments = given(engine, state, first, 1) if first.name == "__init__" else Arguments()
        made = engine.call(start, state, of(ClassRef.of(cls, home)), arguments, Point(first.body[0], (cls,)))
    return (logged(start, state, Value()), next(iter(made.refs))) if made.refs else None


def _begin_with(run: Run, before: Run) -> None:
    """Let a run begin with another one: with the making of its object."""
    run.events[:0] = before.events
    run.repeats[:0] = before.repeats
    run.cut = run.cut or before.cut
    for source, parents in before.provenance.parents.items():
        run.provenance.derive(source, parents)


def _choose(engine: Engine, cls: Class, state: State, receiver: Ref) -> None:
    """Let the fields of an object hold numbers that who makes one may choose."""
    for name in (name for c in engine.index.order(cls) for name, _ in c.fields):
        held = state.heap.get(receiver, name)
        if held is not None and type(held.constant) is int:
            state.heap.put(receiver, name, chosen(held) if held.constant else UNKNOWN)


def _filled(engine: Engine, cls: Class, state: State, receiver: Ref) -> State:
    """Return the state in which a method is called: what the constructor leaves None was filled, or was not.

    That is so where something is assigned to it outside of constructors: by another method, or from outside. What the
    class leaves None is alike.
    """
    own = {**_of_classes(engine, cls, state), **state.heap.edges(receiver)}
    empty = [name for name, held in own.items() if held == NONE and name in engine.index.stored]
    found = state.copy()
    for method in _storing(engine, cls, empty):
        found = _after(engine, cls, method, receiver, found, empty)
    for name in empty:
        if found.heap.get(receiver, name) in (None, NONE) and isinstance(receiver, Object):
            found.heap.put(receiver, name, join(NONE, instances.elsewhere(receiver, name, NO_SOURCES)))
    return found


def _of_classes(engine: Engine, cls: Class, state: State) -> dict[Key, Value]:
    """Return the attributes of a class and of its bases, the nearest ones."""
    classes = [ClassRef.of(one, Globals.of(one.unit.name)) for one in reversed(engine.index.order(cls))]
    return {key: held for one in classes for key, held in state.heap.edges(one).items()}


def _storing(engine: Engine, cls: Class, names: Iterable[str]) -> list[Function]:
    """Return the methods of a class that store some attributes, as they stand in the file."""
    methods: dict[str, Function] = {}
    for base in engine.index.order(cls) if names else ():
        methods = base.methods | methods
    wanted = set(names)
    found = (m for m in methods.values() if m.name != "__init__" and not wanted.isdisjoint(m.mentions))
    return sorted((m for m in found if not stored(m).isdisjoint(wanted)), key=lambda m: m.span)


def stored(method: Function) -> set[str]:
    """Return the attributes of its object that a method assigns to."""
    flow = definitions(method)
    return {op.name for op in operations(method.body) if type(op) is SetAttribute and flow.is_self(op.base)}


def _after(engine: Engine, cls: Class, method: Function, receiver: Ref, before: State, names: list[str]) -> State:
    """Return the state in which a method may have stored some attributes of its object, and changed no others."""
    with engine.aside():
        run = _alone(engine, cls, method, receiver, before)
    after = run.state
    kept = (value.graph for r in reachable(after, [receiver]) for value in after.heap.edges(r).values())
    if after.dead or any(_is_begun(root(s)) for s in run.provenance.ancestors(set().union(*map(with_graphs, kept)))):
        return before
    found = before.copy()
    found.heap = after.heap.copy()
    for name, held in before.heap.edges(receiver).items():
        made = after.heap.get(receiver, name)
        found.heap.put(receiver, name, join(held, made) if name in names and made is not None else held)
    return found


def _is_begun(source: Source) -> bool:
    """Does a graph begin there, which a method has left behind?"""
    return isinstance(source, Begun | Result)


def _templates(engine: Engine, cls: Class) -> tuple[list[Function], list[Function]]:
    """Return the methods of base classes that lead to methods which a class defines: they say in which mode those run.

    Apart: those that another one calls on the object. They are run by themselves only if that was not run to its end.
    """
    own = set(cls.methods) - {"__init__"}
    inherited: dict[str, Function] = {}
    for base in engine.index.order(cls)[1:]:
        for name, method in base.methods.items():
            if name not in own and method.body and not name.startswith("__"):
                inherited.setdefault(name, method)
    calls = {name: _called_on_itself(method) for name, method in inherited.items()}
    leading = {name for name, method in inherited.items() if method.mentions & own}
    while more := {name for name in inherited.keys() - leading if calls[name] & leading}:
        leading |= more
    within = {name for caller in leading for name in calls[caller] - {caller}}
    found = [(name in within, method) for name, method in inherited.items() if name in leading]
    return [method for inner, method in found if not inner], [method for inner, method in found if inner]


def _called_on_itself(method: Function) -> set[str]:
    """Return the names of the methods that one calls on its own object."""
    flow = definitions(method)
    return {op.name for op in flow.made.values() if type(op) is CallMethod and flow.is_self(op.base)}


def holds_graph(state: State, holder: Ref) -> bool:
    """Does something hold a graph, itself or through others?"""
    return any(value.graph for r in reachable(state, [holder]) for value in state.heap.edges(r).values())


def _alone(engine: Engine, cls: Class, method: Function, receiver: Ref, before: State, inner: bool = False) -> Run:
    frame = Frame(method, engine, Globals.of(method.unit.name), entry=True)
    state = before.copy()
    state.spent = frozenset()
    returned = Value()
    with engine.share(frame):
        for name in roles.makers_of_optimizers(engine, cls, method):
            engine.call_method(frame, state, of(receiver), name, Arguments(), Point(method))
        returned = perform(engine, frame, state, cls, method, receiver, inner)
    run = logged(frame, state, returned)
    run.method_of, run.receiver, run.inner = cls, receiver, inner
    return run


def _life(engine: Engine, cls: Class, methods: list[Function], receiver: Ref, before: State) -> Run:
    """Run all methods again and again: what one keeps, another may differentiate or drop.

    Those that a framework calls once in an epoch are run around a loop of the others.

    The entry of the run is the method whose result a framework differentiates, if there is one: it says what trains.
    """
    start = before.copy()
    entry = next((method for method in methods if roles.is_step(engine, method)), methods[0])
    start.variables["<object>"] = of(receiver)  # alive from one call to the next

    def call(method: Function) -> Call:
        return lambda frame, state: perform(engine, frame, state, cls, method, receiver)

    seldom = [method for method in methods if is_called(engine, method, "called-per-epoch")]
    often = [method for method in methods if method not in seldom]
    run = again(engine, entry, cls, start, [call(m) for m in often], [call(m) for m in seldom])
    run.method_of, run.receiver = cls, receiver
    return run


def again(
    engine: Engine, entry: Function, site: Site, before: State, calls: list[Call], seldom: Iterable[Call] = ()
) -> Run:
    """Make calls from outside in a loop, any of them or none each time, with other arguments.

    `seldom` are calls that are made once after many of the others, and then again.
    """
    frame = Frame(entry, engine, Globals.of(entry.unit.name), entry=True)
    state, life, epochs = before.copy(), Loop.of(site, ()), Loop.of(site, (site,))
    state.spent = frozenset()
    returned: list[Value] = []

    def make(calls: Iterable[Call], inside: State) -> None:
        for key in [key for key in frame.keys if type(root(key)) is Input]:
            renew_keys(frame, inside, key)
        for call in calls:
            path = inside.copy()
            returned.append(call(frame, path))
            path.dead = False
            spent = inside.spent | path.spent
            inside.join(path)
            inside.spent = spent  # a call that was not made has made no graph either

    def epoch(inside: State) -> None:
        engine.run_loop(frame, inside, life, partial(make, calls))
        make(seldom, inside)

    with engine.share(frame):
        if seldom:
            engine.run_loop(frame, state, epochs, epoch)
        else:
            engine.run_loop(frame, state, life, partial(make, calls))
    run = logged(frame, state, join_all(returned))
    run.life = frozenset({life, epochs})
    return run


def perform(
    engine: Engine, frame: Frame, state: State, cls: Class, method: Function, receiver: Ref, inner: bool = False
) -> Value:
    """Call a method from outside. The forward of a network is one pass; `inner`: or those of what it calls."""
    saved = state.mode
    state.mode = engine.left.get(method, saved)
    if is_called(engine, method, "called-without-gradients"):
        state.mode = Mode.OFF
    point = Point(method)
    callee = of(code_of(method)) if method.is_static else of(Bound.of(code_of(method), receiver))
    if not method.is_static and any(d.applied for d in method.decorators):
        callee = instances.attribute(frame, state, receiver, method.name, point)
    inside = not inner and engine.index.is_network(cls) and method.name == "forward"
    inside = inside and not engine.index.differentiates(cls)
    if inside:
        begun = Graph.of(method, ())
        frame.provenance.arise(begun, frame.loops)  # each call is a pass of its own
        frame.inside.append(begun)
    try:
        returned = enter(engine, frame, state, method, callee, 0 if method.is_static else 1, point)
    finally:
        if inside:
            frame.inside.pop()
    if roles.is_step(engine, method):
        steps.take(CallSite(frame, state, point, Arguments()), method, receiver, returned)
    state.mode = saved
    return returned


_CALLED = ("called-with-gradients", "called-without-gradients", "inference")


def is_hook(engine: Engine, method: Function) -> bool:
    """Does a framework call this method, whoever else does?"""
    return any(is_called(engine, method, term) for term in _CALLED)


def is_called(engine: Engine, method: Function, term: str) -> bool:
    """Does a framework call this method in a way that a contract speaks of?"""
    if method.cls is None:
        return False
    return engine.index.contracts.overrides(term, method.name, engine.index.libraries(method.cls))

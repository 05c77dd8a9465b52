"""Calls: of functions by their summaries, of objects by what they are, and of what is not known."""

from __future__ import annotations

from dataclasses import replace

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Evidence, Use
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import BOXES, State, contained, elements
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.memory import computed, sources_of
from torchmemlint.flow.domain.refs import (
    Behind,
    Bound,
    ClassRef,
    Code,
    External,
    Globals,
    Input,
    Key,
    Method,
    Object,
    Parameters,
    Point,
    Ref,
    SuperRef,
)
from torchmemlint.flow.domain.values import NO_SOURCES, NOTHING, PLAIN, UNKNOWN, Value, join, of
from torchmemlint.flow.engine import caches, instances
from torchmemlint.flow.engine.access import attribute
from torchmemlint.flow.engine.applying import apply
from torchmemlint.flow.engine.binding import Binding, bind
from torchmemlint.flow.engine.dispatching import dispatched
from torchmemlint.flow.engine.unknown import unknown, unknown_method
from torchmemlint.flow.models import (
    bareness,
    containers,
    contracted,
    gradients,
    guards,
    library,
    modules,
    optimizers,
    pipelines,
    settings,
    tables,
    tensors,
    torch_functions,
    trainers,
    workers,
)
from torchmemlint.flow.models.parameters import parameter_method
from torchmemlint.knowledge import operations

_UNSEEN = (workers.of_class, optimizers.configured, contracted.method, settings.update, tensors.moved_object)


def call(frame: Frame, state: State, callee: Value, arguments: Arguments, point: Point) -> Value:
    """Return the value of a call, with all that it does to the state and to the log."""
    callee = dispatched(callee, arguments)
    if len(callee.refs) == 1:
        return _call(frame, state, next(iter(callee.each())), callee, arguments, point)
    if not callee.refs:
        return unknown(frame, state, callee, arguments, point)
    result = NOTHING
    before = state.copy()
    for number, target in enumerate(callee.each()):
        path = before.copy() if number else state
        value = _call(frame, path, target, callee, arguments, point)
        if number:
            state.join(path)
        result = join(result, value)
    return result


def _call(frame: Frame, state: State, target: Ref, callee: Value, arguments: Arguments, point: Point) -> Value:
    match target:
        case Code():
            return call_function(frame, state, target, None, arguments, point)
        case Bound():
            if type(target.code) is Code:
                return call_function(frame, state, target.code, target.receiver, arguments, point)
            more = replace(arguments, positional=[of(target.receiver), *arguments.positional])
            return call(frame, state, of(target.code), more, point)
        case ClassRef():
            return instances.construct(frame, state, target, arguments, point)
        case External():
            return library.call(CallSite(frame, state, point, arguments), target.qualified)
        case Method():
            receiver, name = target.receiver, target.name
            if name == "forward" and type(receiver) is Object and receiver.kind is Kind.MODULE:
                return modules.forward(CallSite(frame, state, point, arguments), receiver)  # whatever replaces it now
            return call_method(frame, state, of(receiver), name, arguments, point)
        case Object():
            return _call_object(frame, state, target, arguments, point)
    return unknown(frame, state, Value(target.alone, callee.graph, open=callee.open), arguments, point)


def _unseen_forward(site: CallSite) -> Value:
    """Return what a network gives whose forward is not run: its pass's graph, and those of what it is given."""
    frame, state = site.frame, site.state
    given = computed(frame, state, sources_of(state, site.arguments.all()), site.point)
    return Value(graph=given.union(graph for graph in frame.inside[-1:] if graph is not None))


def _call_object(frame: Frame, state: State, target: Object, arguments: Arguments, point: Point) -> Value:
    site = CallSite(frame, state, point, arguments)
    if target.kind in (Kind.INSTANCE, Kind.MODULE):
        patched = state.heap.get(target, "forward")
        if patched is not None and patched.refs:  # `model.forward = ...`
            return call(frame, state, patched, arguments, point)
    match target.kind:
        case Kind.INSTANCE:
            method = instances.member(frame, state, target, "__call__")
            if method is not None:
                return call(frame, state, method, arguments, point)
            forward = instances.member(frame, state, target, "forward")
            if instances.is_of_library(frame, target.about.cls):
                return modules.run_forward(site, target, lambda: _unseen_forward(site))
            if forward is None:
                if any("forward" in cls.members for cls in frame.machine.index.order(target.about.cls)):
                    assigned = instances.attribute(frame, state, target, "forward", point)  # `forward = quiet(run)`
                    return call(frame, state, assigned, arguments, point)
                if instances.is_module(frame, target):
                    return modules.forward(site, target)
                return unknown(frame, state, of(target), arguments, point)
            if not instances.is_module(frame, target) or frame.machine.index.differentiates(target.about.cls):
                return call(frame, state, forward, arguments, point)
            return modules.run_forward(site, target, lambda: call(frame, state, forward, arguments, point))
        case Kind.MODULE if arguments.all():
            return modules.forward(site, target)
        case Kind.MODULE:  # no pass: a method that a name stands for
            return unknown(frame, state, of(target), arguments, point)
        case Kind.PARTIAL:
            kept = containers.kept_arguments(state, target)
            positional, named = [*kept.positional, *arguments.positional], {**kept.named, **arguments.named}
            merged = replace(arguments, positional=positional, named=named)
            inner = state.heap.get(target, Special.FUNCTION) or UNKNOWN
            if isinstance(inner.constant, str):  # `operator.methodcaller`
                return call_method(frame, state, site.value(0), inner.constant, kept, point)
            return call(frame, state, inner, merged, point)
        case Kind.GUARDED:
            inner = state.heap.get(target, Special.FUNCTION) or UNKNOWN
            saved, state.mode = state.mode, target.about
            value = call(frame, state, inner, arguments, point)
            state.mode = saved
            return value
        case Kind.MODE:
            return guards.decorate(site, target)
        case Kind.GENERATOR:
            return guards.decorate_by_generator(site, target)
        case Kind.OPAQUE:
            if (known := library.call_object(site, target)) is not None:
                return known
    return unknown(frame, state, of(target), arguments, point)


def call_method(frame: Frame, state: State, receiver: Value, name: str, arguments: Arguments, point: Point) -> Value:
    """Return the value of `receiver.name(...)` for all that the receiver may be."""
    site = CallSite(frame, state, point, arguments)
    if not receiver.refs:
        site = containers.consumed(site)
        if isinstance(receiver.constant, str):
            given = sources_of(state, site.arguments.all())
            frame.read(given, Reading.TEXT if name == "join" else Reading.NUMBER)
            return PLAIN
        if name in containers.METHODS and not receiver.graph and not receiver.known:
            return containers.on_unknown(site, name)
        return tensors.method(site, receiver, name)
    result = NOTHING
    for target in receiver.each():
        only = receiver if len(receiver.refs) == 1 else Value(target.alone, receiver.graph, open=receiver.open)
        before = _made_at(state, result, site.point)
        found = _method(site, target, only, name)
        if before:
            again = _made_at(state, found, site.point)
            for made, edges in before.items():
                for key, value in edges.items() if made in again else ():
                    state.heap.add(made, key, value)  # one object stands for what the methods of all targets make
        result = join(result, found)
    if receiver.is_short and name in modules.PARAMETERS:
        return result._replace(open=True)  # those of one network more
    return result


def _made_at(state: State, value: Value, point: Point) -> dict[Object, dict[Key, Value]]:
    """Return what holds which of the containers that a value is made of and that a call has made."""
    if not value.refs:
        return {}
    found = [r for r in contained(state, [value]) if type(r) is Object and r.site is point.site]
    found = [r for r in found if r.kind is not Kind.LAZY or not _is_of_boxes(state, r)]
    return {r: dict(state.heap.edges(r)) for r in sorted(found, key=lambda r: r.serial)}


def _is_of_boxes(state: State, view: Object) -> bool:
    """Is it a view of what holds containers, of which each grows by itself?"""
    holders = [holder for value in state.heap.edges(view).values() for holder in value.refs]
    held = [r for holder in holders for value in state.heap.edges(holder).values() for r in value.refs]
    return any(type(r) is Object and r.kind in BOXES for r in held)


def _method(site: CallSite, target: Ref, receiver: Value, name: str) -> Value:
    frame, state, arguments, point = site.frame, site.state, site.arguments, site.point
    if type(target) is Globals:  # a function of a file
        return call(frame, state, attribute(frame, state, of(target), name, point), arguments, point)
    if target.symbolic or (type(target) is Object and target.kind is Kind.OPAQUE):
        return _symbolic_method(site, target, receiver, name)
    match target:
        case External():
            return library.call(site, f"{target.qualified}.{name}")
        case Parameters():
            return parameter_method(site, target, name)
        case SuperRef():
            found = instances.attribute(frame, state, target, name, point)
            if all(type(r) is Method for r in found.refs):
                return _library_super(site, target, name)
            return call(frame, state, found, arguments, point)
        case Object():
            return _object_method(site, target, receiver, name)
        case ClassRef() if name == "apply" and frame.machine.index.is_operation(target.cls):
            return torch_functions.applied(site)
        case ClassRef() if instances.is_made_by(frame, target, name):
            return instances.restored(frame, state, target, arguments, point)
    found = attribute(frame, state, of(target), name, point)
    if found.refs == Method.of(target, name).alone:
        return unknown_method(site, receiver, name)
    return call(frame, state, found, arguments, point)


def _object_method(site: CallSite, target: Object, receiver: Value, name: str) -> Value:
    frame, state, arguments, point = site.frame, site.state, site.arguments, site.point
    kind = target.kind
    if kind in (Kind.LIST, Kind.TUPLE) and name not in containers.METHODS and operations.method(name) is not None:
        held = elements(state, target)  # no sequence has it: it is taken for what it holds
        if not any(type(r) is Object and r.kind in BOXES for r in held.refs):
            return call_method(frame, state, held if held is not NOTHING else UNKNOWN, name, arguments, point)
    if kind in BOXES:
        return containers.method(site, target, name, receiver.graph)
    if kind is Kind.MODULE:
        own = state.heap.get(target, name)
        if own is not None:
            return call(frame, state, own, arguments, point)
        return _module_method(site, target, receiver, name)
    if kind is Kind.INSTANCE:
        if instances.is_made_by(frame, target.about, name):
            return instances.restored(frame, state, target.about, arguments, point)
        found = instances.attribute(frame, state, target, name, point)
        own = state.heap.get(target, name)
        found = own if own is not None else found
        if found.refs == Behind.of(target, name).alone:  # of a class that is not seen
            for model in _UNSEEN:
                if (known := model(site, target, name)) is not None:
                    return known
        if name == "forward" and own is None and instances.is_module(frame, target) and not frame.inside:
            return _call_object(frame, state, target, arguments, point)
        if found.refs and found.refs != Method.of(target, name).alone:
            given = call(frame, state, found, arguments, point)
            return join(given, of(Parameters.of(target))) if name == "parameters" else given  # own, of the same network
        if instances.is_module(frame, target):
            return _module_method(site, target, receiver, name)
        if frame.machine.index.is_box(target.about.cls) and name in containers.METHODS:
            return containers.method(site, target, name, NO_SOURCES)
        return unknown_method(site, receiver, name)
    if kind is Kind.GENERATOR:
        sent = arguments.positional[0] if name == "send" and arguments.positional else PLAIN
        return run_generator(frame, state, target, sent, point) if name in ("__next__", "send") else PLAIN
    if kind is Kind.OPTIMIZER:
        return optimizers.method(site, target, name)
    if kind is Kind.TENSOR:
        return tensors.method(site, receiver, name)
    if kind in (Kind.MODE, Kind.STACK):
        return guards.method(site, target, name)
    return unknown_method(site, receiver, name)


def _module_method(site: CallSite, target: Ref, receiver: Value, name: str) -> Value:
    found = modules.method(site, target, name)
    return unknown_method(site, receiver, name) if found is None else found


def _symbolic_method(site: CallSite, target: Ref, receiver: Value, name: str) -> Value:
    frame, state = site.frame, site.state
    stored = state.heap.get(target, name)
    if stored is not None and stored.refs:
        return call(frame, state, stored, site.arguments, site.point)
    kept = settings.hyperparameters(site, target, name)
    if kept is not None:
        return kept
    if _has_own(frame, target, name) or _may_be_own(frame, target, name):
        return unknown_method(site, receiver, name)
    is_open = not frame.entry and name in frame.machine.index.operators  # a caller may know a class that defines it
    if name in modules.SWITCHES:
        is_own = is_open and type(target) is not Object
        return unknown_method(site, receiver, name) if is_own else modules.switch(site, target, name)
    if type(target) is Object:
        known = (
            workers.method(site, target, name)
            or library.of_distribution(site, target, receiver, name)
            or pipelines.method(site, target, name)
            or settings.method(site, target, name)
            or tables.method(site, target, name)
        )
        if known is not None:
            return known
        if library.is_plain(f"{target.about}.{name}"):
            return library.call(site, f"{target.about}.{name}")
    for model in (contracted.method, optimizers.of_closure):
        if (given := model(site, target, name)) is not None:
            return given
    if name in tensors.METHODS or name in tensors.MODULE_OR_TENSOR:
        if name in tensors.SHOWING:
            frame.log(Use(site.point, target, Evidence.TENSOR))
        elif name in tensors.MODULE_OR_TENSOR:
            frame.log(Use(site.point, target, Evidence.MOVED))
        return tensors.method(site, receiver, name)
    if name in modules.METHODS:
        return _module_method(site, target, receiver, name)
    if name in containers.ON_SYMBOLS and not is_open:
        return containers.method(site, target, name, receiver.graph)
    if gradients.freezes(name):
        gradients.set_requires_grad(frame, state, of(target), Value(constant=False), site.point)
    return unknown_method(site, receiver, name)


def _has_own(frame: Frame, target: Ref, name: str) -> bool:
    """Is it the `self` of a method whose class defines a method of this name, or may store something under it?"""
    if type(target) is not Input or (cls := target.function.cls) is None or target.name != target.function.receiver:
        return False
    general = name in modules.METHODS or name in modules.SWITCHES
    return not general or frame.machine.index.method(cls, name) is not None


def _may_be_own(frame: Frame, target: Ref, name: str) -> bool:
    """May a caller know it for an object whose class, in the same file, has a method of a name that libraries use?"""
    if frame.entry or type(target) is Object or not contracted.is_call(frame.machine.index.contracts, target, name):
        return False
    return any(name in cls.methods for cls in frame.function.unit.classes)


def _library_super(site: CallSite, target: SuperRef, name: str) -> Value:
    """Call a method of a base class that the project does not have: it passes on what it is given."""
    receiver, index = target.receiver, site.frame.machine.index
    instance = receiver if type(receiver) is Object and receiver.kind is Kind.INSTANCE else None
    cls = target.cls if instance is None else instance.about.cls
    if (instance is not None or receiver.symbolic) and index.is_box(cls):
        return PLAIN if name == "__init__" else containers.method(site, receiver, name, NO_SOURCES)
    if name == "__init__":
        if index.trainer(target.cls) is not None:
            trainers.hand(site, receiver)
        workers.initialise(site, receiver, target.cls)
        if modules.is_sequential(site, target.cls):
            modules.hold(site, receiver)
        contracted.hold(site, receiver, index.libraries(target.cls))
    gradients.use_of_all(site.frame, site.state, site.arguments.all(), site.point)
    if name in ("__init__", "__init_subclass__", "__setattr__", "__post_init__", "__enter__", "__exit__"):
        return PLAIN
    if name in modules.METHODS or name in modules.SWITCHES:
        return _module_method(site, receiver, of(receiver), name)
    bases = filter(index.is_network_name, index.libraries(target.cls))
    if name == "forward" and not all(map(bareness.is_bare_class, bases)):
        return modules.unseen_forward(site, receiver)
    given = sources_of(site.state, site.arguments.all())
    return Value(graph=computed(site.frame, site.state, given, site.point), open=True)


def call_function(
    frame: Frame, state: State, code: Code, receiver: Ref | None, arguments: Arguments, point: Point
) -> Value:
    """Call a function of the project by its summary."""
    function = code.function
    spread = [v for v in (arguments.star, arguments.stars) if v is not None]
    symbolic = any(r.symbolic for value in spread for r in value.refs)
    if symbolic and len(spread) > 1 and not frame.entry:  # only a caller knows which parameter is given which way
        callee = of(code) if receiver is None else of(Bound.of(code, receiver))
        return unknown(frame, state, callee, arguments, point)
    bound = bind(frame, state, code, receiver, arguments, point)
    if function.generator:
        made = Object.of(Kind.GENERATOR, point.site, point.context, code)
        state.heap.drop(made)
        for formal, value in bound.items():
            state.heap.put(made, formal.name, value)  # type: ignore[attr-defined]
        return of(made)
    kept = caches.earlier(frame, state, code, arguments, point)
    result = apply(frame, state, function, bound, arguments, point)
    if caches.keeps_results(function):
        caches.keep(frame, state, code, result, arguments)
        caches.remember(frame, function, bound, point)
    return join(result, kept)


def run_generator(frame: Frame, state: State, made: Object, sent: Value, point: Point) -> Value:
    """Return what a generator yields, with its effects, where it is consumed."""
    code: Code = made.about
    bound: Binding = {Input.of(code.function, Special.SENT): sent}
    names: list[str | Special] = [*(p.name for p in code.function.parameters), Special.OUTER]
    for name in names:
        bound[Input.of(code.function, name)] = state.heap.get(made, name) or UNKNOWN
    return apply(frame, state, code.function, bound, Arguments(), point, yields=True)

"""Gradient modes: contexts, decorators, setters, and contexts of the project's own."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Note, SetMode
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import ELEMENT, Mode, ModeOf
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.manners import Remark
from torchmemlint.flow.domain.refs import ClassRef, External, Method, Object, Point, Ref, Result
from torchmemlint.flow.domain.values import NONE, NOTHING, PLAIN, TRUE, Value, join, of
from torchmemlint.flow.ir.ops import Call, CallMethod, Function
from torchmemlint.flow.ir.places import Temp
from torchmemlint.flow.models import containers
from torchmemlint.flow.models.contracted import owners
from torchmemlint.knowledge.contracts import Contracts


def mode_named(known: Contracts, qualified: str, arguments: tuple[object, ...]) -> Mode | None:
    """Return the mode that a context or decorator of this name sets; None where it sets none."""
    if qualified in known.off:
        return Mode.ON if arguments[:1] == (False,) and "inference_mode" in qualified else Mode.OFF
    if qualified in known.on:
        return Mode.WANTED
    if qualified in known.setters:
        if not arguments or arguments[0] is ...:
            return Mode.EITHER
        return Mode.ON if arguments[0] else Mode.OFF
    return None


def mode_of(known: Contracts, function: Function) -> Mode | None:
    """Return the mode that a function's decorators set. What is written there is wanted: `@set_grad_enabled(True)`."""
    for decorator in function.decorators:
        mode = mode_named(known, decorator.name, decorator.arguments)
        if mode is not None:
            return Mode.WANTED if mode is Mode.ON else mode
    return None


def construct(site: CallSite, qualified: str) -> Value | None:
    """Return the context that a call of this name makes; None where it makes none. A setter sets its mode at once."""
    known = site.machine.index.contracts
    flag = site.constant(0, "mode", ...)
    given = (flag,) if site.arguments.all() else ()
    if given and qualified in known.off and site.arguments.positional and site.arguments.positional[0].refs:
        return _guarded(site, site.arguments.positional[0], Mode.OFF)  # no_grad(function)
    mode: Mode | ModeOf | None = mode_named(known, qualified, given)
    if mode is None:
        return None
    if qualified in known.setters:
        mode = _mode_read(site, site.value(0, "mode")) or mode
    made = Object.of(Kind.MODE, site.point.site, site.point.context, mode)
    if qualified in known.setters:
        site.frame.replaced[made] = site.state.mode
        set_mode(site, mode)
    return of(made)


def current(site: CallSite) -> Value:
    """Return whether gradients are on, as far as that is known; else a value by which the mode can be set again."""
    mode = site.state.mode
    site.frame.log(Note(site.point, Remark.ASKED, mode=mode))
    if mode in (Mode.ON, Mode.OFF):
        return Value(constant=mode is Mode.ON)
    return of(Object.of(Kind.MODE, site.point.site, site.point.context, mode))


def _mode_read(site: CallSite, flag: Value) -> Mode | ModeOf | None:
    """Return the mode that a flag was read from, in the same function."""
    for r in flag.refs if len(flag.refs) == 1 else ():
        if type(r) is Object and r.kind is Kind.MODE and r.context == site.point.context:
            mode: Mode | ModeOf = r.about
            return mode
    return None


def note(frame: Frame, what: Remark, flag: Value, point: Point, within: Point | None = None) -> None:
    """Note what is remarkable if a flag holds."""
    if flag.constant if flag.known else any(r.symbolic for r in flag.refs):
        frame.log(Note(point, what, flag, within))


def drop(frame: Frame, temp: Temp, what: Remark = Remark.DROPPED_MODE) -> None:
    """Note a mode that nothing takes from the call which makes it; a setter has set it."""
    modes = (r for r in frame.temps[temp].refs if type(r) is Object and r.kind is Kind.MODE and r not in frame.replaced)
    for mode in modes:
        if isinstance(mode.site, Call | CallMethod) and mode.site.dst == temp:
            note(frame, what, TRUE, frame.at(mode.site))


def _is_uncalled(frame: Frame, value: Value) -> bool:
    """Is it the class of a mode, in place of one?"""
    known = frame.machine.index.contracts
    named = [r.qualified for r in value.refs if type(r) is External]
    return len(named) == len(value.refs) == 1 and mode_named(known, named[0], ()) is not None


def set_mode(site: CallSite, mode: Mode | ModeOf) -> None:
    """Change the mode until it is changed again."""
    site.state.mode = mode
    site.frame.log(SetMode(site.point, mode))


def decorate(site: CallSite, context: Object) -> Value:
    """Return a function that runs in a context's mode."""
    value = site.value(0)
    if not value.refs:
        return of(context)
    return _guarded(site, value, context.about)


def decorate_by_generator(site: CallSite, target: Object) -> Value:
    """Return a function that a context of `contextmanager` is put around: it runs in the mode of the yield."""
    mode = _mode_of_yield(site, target)
    function = site.value(0)
    return _guarded(site, function, mode) if isinstance(mode, Mode) and mode is not Mode.CALLER else function


def _mode_of_yield(site: CallSite, target: Object) -> Mode | ModeOf:
    summary = site.machine.summary(target.about.function, {}, site.state)
    return Mode.CALLER if summary is None else summary.yield_mode


def _guarded(site: CallSite, function: Value, mode: Mode) -> Value:
    if function.refs and all(type(r) is ClassRef for r in function.refs):
        note(site.frame, Remark.MODE_OF_CLASS, TRUE, site.point)
        return function
    made = Object.of(Kind.GUARDED, site.point.site, site.point.context, mode)
    site.state.heap.put(made, Special.FUNCTION, function)
    return of(made)


def method(site: CallSite, target: Object, name: str) -> Value:
    """Return the value of a method of a context, or of an ExitStack."""
    if target.kind is Kind.STACK:
        if name == "enter_context":
            return enter(site, site.value(0))
        if name == "callback":
            site.write(of(target), ELEMENT, containers.partially(site), True)
            return site.value(0)
        if name in ("close", "aclose"):
            leave(site, of(target))
        return PLAIN
    if name == "__enter__":
        set_mode(site, target.about)
        return NONE
    return PLAIN


def enter(site: CallSite, context: Value) -> Value:
    """Enter a context, and return what it binds."""
    frame, state = site.frame, site.state
    result = NOTHING
    if _is_uncalled(frame, context):
        note(frame, Remark.UNCALLED_MODE, TRUE, site.point)
    for target in context.each():
        if type(target) is Object and target.kind is Kind.GENERATOR:
            result = join(result, _enter_generator(site, target))
        elif type(target) is Object and target.kind is Kind.INSTANCE:
            entered = site.machine.attribute(frame, state, of(target), "__enter__", site.point)
            known = any(not r.symbolic and not isinstance(r, Method) for r in entered.refs)
            result = join(result, site.call(entered) if known else of(target))
        else:
            result = join(result, Value(target.alone, context.graph))
    state.mode = mode_within(frame.machine.index.contracts, state.mode, context)
    return result if context.refs else context


def mode_within(known: Contracts, outer: Mode | ModeOf, context: Value) -> Mode | ModeOf:
    """Return the mode inside a context that is entered in an outer one."""
    modes = [r.about for r in context.refs if type(r) is Object and r.kind is Kind.MODE]
    if modes:
        return Mode.OFF if Mode.OFF in modes else modes[0]
    if outer is not Mode.OFF and any(name in known.names("shows-graph") for r in context.refs for name in owners(r)):
        return Mode.WANTED
    unknown = [r for r in context.refs if r.symbolic and not _is_neutral(known, r)]
    return ModeOf(unknown[0]) if unknown and outer is not Mode.OFF else outer


def mode_before(frame: Frame, context: Value, outer: Mode | ModeOf, point: Point) -> Mode | ModeOf:
    """Return the mode after a block with a context: a setter had set its mode before the block began."""
    for r in context.refs:
        if r in frame.replaced:
            outer = frame.replaced[r]
            frame.log(SetMode(point, outer))
    return outer


def _is_neutral(known: Contracts, context: Ref) -> bool:
    """Is it a context that leaves the mode alone, by how it is called: `accelerator.accumulate(model)`?"""
    site = context.site if type(context) is Result else None
    return isinstance(site, CallMethod) and known.neutral.has_method(site.name)


def _enter_generator(site: CallSite, target: Object) -> Value:
    """Run a function of `contextmanager` up to its yield: the block runs in the mode that stands there."""
    value = site.iterate(of(target))
    for places in site.frame.writes.values():  # what stands after its yield may change what it has added
        for note in (note for notes in places.values() for note in notes):
            if site.point.site in note.point.chain():
                note.boxes = frozenset()
    mode = _mode_of_yield(site, target)
    if mode is not Mode.CALLER:
        site.state.mode = mode
    return value


def leave(site: CallSite, context: Value) -> None:
    """Leave a context: one of the project's own runs its `__exit__`, and an `ExitStack` its callbacks."""
    for target in context.each():
        if type(target) is Object and target.kind is Kind.STACK:
            kept = site.state.heap.get(target, ELEMENT)
            if kept is not None:
                site.machine.call(site.frame, site.state, kept, Arguments(), site.point)
        if type(target) is Object and target.kind is Kind.INSTANCE:
            left = site.machine.attribute(site.frame, site.state, of(target), "__exit__", site.point)
            if any(not r.symbolic and not isinstance(r, Method) for r in left.refs):
                site.machine.call(site.frame, site.state, left, Arguments([PLAIN, PLAIN, PLAIN]), site.point)

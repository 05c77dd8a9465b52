"""Who requires gradients, and who uses them: frozen modules, flags that only a caller knows, what is trained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain.effects import Evidence, Freeze, Use
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import BOXES, State, contained, reachable, visible
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import Behind, Bound, Code, Leaf, Object, Parameters, Point, Ref
from torchmemlint.flow.domain.values import PLAIN, TRUE, Value, constant
from torchmemlint.flow.models.handing import hand_over

TRAINING = "training"  # the attribute of a module that says in which mode it is
SWITCHES = {Evidence.EVALUATING: TRUE, Evidence.TRAINING: constant(False), Evidence.RESTORED: PLAIN}
_OWNERS = frozenset({Kind.MODULE, Kind.INSTANCE})


def within(frame: Frame, state: State, module: Ref) -> list[Ref]:
    """Return a module and all those that it consists of, as far as they are known objects."""
    found = [module]
    boxes = {module}
    for holder in found:
        if type(holder) is Object and holder.kind in _OWNERS:
            found += [r for r in _parts(frame, state, holder, boxes) if r not in found]
    return found


def _parts(frame: Frame, state: State, holder: Object, seen: set[Ref]) -> Iterator[Ref]:
    """Yield the modules that one holds itself, or that a ModuleList or the like was given in a list."""
    for _, value in visible(state.heap.edges(holder)):
        for r in value.each():
            if type(r) is not Object or r in seen:
                continue
            if is_network(frame, r):
                yield r
            elif r.kind in BOXES and holder.kind is not Kind.INSTANCE:
                seen.add(r)
                yield from _parts(frame, state, r, seen)


def _is_no_leaf(state: State, made: Object) -> None:
    """Let all that hold a tensor hold one without gradients."""
    leaf = Leaf.of(made.site, made.context).alone
    for name, value in state.variables.items():
        if made in value.refs:
            state.variables[name] = Value(value.refs, value.graph - leaf, value.constant, value.open)
    for holder in sorted(made.holders, key=lambda holder: holder.serial):
        for key, value in list(state.heap.edges(holder).items()):
            if made in value.refs and not leaf.isdisjoint(value.graph):
                state.heap.put(holder, key, Value(value.refs, value.graph - leaf, value.constant, value.open))


def _unseen_parts(frame: Frame, state: State, module: Ref) -> Iterator[Ref]:
    """Yield what an instance of a network holds that may be a module which was not seen being made."""
    if type(module) is Object and module.kind is Kind.INSTANCE and is_network(frame, module):
        for _, value in visible(state.heap.edges(module)):
            yield from (r for r in value.each() if r.symbolic or (type(r) is Object and r.kind is Kind.OPAQUE))


def is_network(frame: Frame, reference: Ref) -> bool:
    """Is it a module, of torch or of a class of the project?"""
    if type(reference) is not Object:
        return False
    if reference.kind is Kind.INSTANCE:
        return frame.machine.index.is_network(reference.about.cls)
    return reference.kind is Kind.MODULE


def is_frozen(state: State, module: Ref) -> bool:
    """Do the parameters of a module, or of what it is a part of, not require gradients?"""
    found = _flag(state, module, Special.FROZEN)
    return found is not None and found.constant is True


def is_evaluating(state: State, value: Value) -> bool:
    """Was eval() called last on a module, or on what it is a part of?"""
    flags = [_flag(state, r, Special.EVALUATING) for r in value.refs]
    return any(found is not None and found.constant is True for found in flags)


def training(state: State, module: Ref) -> Value:
    """Return `module.training`."""
    found = state.heap.get(module, Special.EVALUATING)
    if found is None or not found.known:
        return Value(Behind.of(module, TRAINING).alone, open=True)
    return constant(not found.constant)


def switch(frame: Frame, state: State, module: Ref, mode: Evidence) -> None:
    """Put a module, and what it consists of, into evaluation or training mode, or into one that is not known."""
    for one in within(frame, state, module):
        state.heap.put(one, Special.EVALUATING, SWITCHES[mode])


def is_remembered(value: Value) -> bool:
    """Is it the mode that a module was found to be in?"""
    return any(type(r) is Behind and r.key == TRAINING for r in value.refs)


def _flag(state: State, module: Ref, flag: Special) -> Value | None:
    """Return what a module, or the nearest thing that it is a part of, was set to."""
    while True:
        found = state.heap.get(module, flag)
        if found is not None:
            return found
        if type(module) is Behind:
            module = module.base
        elif type(module) is Object and module.kind is Kind.MODULE and "." in str(module.about):
            module = Object.of(module.kind, module.site, module.context, str(module.about).rpartition(".")[0])
        else:
            return None


def freezes(method: str) -> bool:
    """Does a method of this name freeze what it is called on, and not just its normalisation?"""
    first, *rest = method.split("_")
    return first == "freeze" and not any(word.startswith(("norm", "bn", "batchnorm")) for word in rest)


def set_requires_grad(
    frame: Frame, state: State, base: Value, flag: Value, point: Point, assigned: bool = False
) -> None:
    """`x.requires_grad_(flag)` of a tensor or a module's parameters; where it is not known, the caller decides.

    `assigned`: `x.requires_grad = flag` is meant, of what is not known to be a module.
    """
    for target in base.each():
        if type(target) is Object and target.kind is Kind.TENSOR and flag.constant is False:
            if not frame.entry:
                frame.log(Freeze(point, target, flag))
            _is_no_leaf(state, target)
            continue
        owner = target.module if type(target) is Parameters else target
        if owner.symbolic or (not flag.known and flag.refs):
            frame.log(Freeze(point, owner, flag, assigned and owner is target))
        if flag.known and (owner.symbolic or (type(owner) is Object and owner.kind in _OWNERS | {Kind.OPAQUE})):
            for module in within(frame, state, owner):
                for part in (module, *_unseen_parts(frame, state, module)):
                    state.heap.put(part, Special.FROZEN, constant(flag.constant is False))


# Who uses gradients: optimizers, and programs that read them.


def read(frame: Frame, state: State, of: Ref, point: Point) -> None:
    """Note that a program reads the gradient of a parameter."""
    frame.log(Use(point, of, Evidence.GRADIENT))
    if type(of) is Parameters or not frame.entry:
        use(frame, state, of, point)


def use(frame: Frame, state: State, of: Ref, point: Point) -> None:
    """Note that the gradients of a module, of parameters or of what only a caller knows are used."""
    owner = of.module if type(of) is Parameters else of
    if owner.symbolic or frame.entry:
        frame.log(Use(point, of, Evidence.TAUGHT))
    state.heap.put(owner, Special.TAUGHT, PLAIN)


def use_of_all(frame: Frame, state: State, given: Iterable[Value], point: Point, symbols: bool = True) -> None:
    """Note that the gradients of all modules and parameters among some values are used, or may be."""
    found = contained(state, given)
    generators = [r for r in found if type(r) is Object and r.kind is Kind.GENERATOR]
    found |= reachable(state, generators)  # what they give is of what they were given
    found |= {r.receiver for r in found if type(r) is Bound and is_network(frame, r.receiver)}  # its method trains it
    for r in sorted(found, key=lambda r: r.serial):
        if type(r) is Parameters or is_network(frame, r) or (symbols and r.symbolic):
            use(frame, state, r, point)


def hand(frame: Frame, state: State, given: Iterable[Value], point: Point) -> None:
    """Note that a function of a library is given networks, their parameters, or functions that it may call.

    Whether what a caller gave is one of these is for the caller to say.
    """
    hand_over(state, given)
    for r in sorted(contained(state, given), key=lambda r: r.serial):
        if (
            is_network(frame, r)
            or (r.symbolic and not frame.entry)
            or type(r) in (Parameters, Code, Bound)
            or (type(r) is Object and r.kind is Kind.OPTIMIZER)
        ):
            frame.log(Use(point, r, Evidence.HANDED))

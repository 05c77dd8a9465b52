"""Calls of what was not seen."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Invoke, InvokeMethod
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import Mode, State
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.memory import bare, computed, sources_of, unsettle
from torchmemlint.flow.domain.refs import (
    NO_PATH,
    Behind,
    Derived,
    Graph,
    Leaf,
    Object,
    Point,
    Ref,
    Result,
    Source,
    root,
)
from torchmemlint.flow.domain.values import Value, join, symbol
from torchmemlint.flow.models import containers, gradients, library, tensors
from torchmemlint.flow.models.handing import hand_over_in
from torchmemlint.flow.models.hooks import run_hooks
from torchmemlint.knowledge import operations


def unknown(frame: Frame, state: State, callee: Value, arguments: Arguments, point: Point) -> Value:
    """Call what was not seen: it passes on the graphs that it is given, and may begin one. Its result is a symbol."""
    arguments = containers.consumed(CallSite(frame, state, point, arguments)).arguments
    given = sources_of(state, arguments.all())
    if callee.refs and all(gradients.is_frozen(state, r) for r in callee.refs):
        return Value(graph=computed(frame, state, given, point), open=True)
    hand_over_in(frame, state, callee, arguments.all(), point)
    result = _new_result(frame, state, point)
    evaluating = gradients.is_evaluating(state, callee)
    frame.log(Invoke(point, callee, arguments, state.mode, result, evaluating))
    value = _symbolic_result(frame, state, result, given, point)
    for target in callee.each():
        run_hooks(CallSite(frame, state, point, arguments), target, value)
    decorated = library.decorated(arguments, point) if frame.entry else None
    return value if decorated is None else decorated


def unknown_method(site: CallSite, receiver: Value, name: str) -> Value:
    """Call a method of what was not seen, likewise; of a tensor it may be torch's own."""
    site = containers.consumed(site)
    frame, state = site.frame, site.state
    given = sources_of(state, [receiver, *site.arguments.all()])
    if receiver.refs and all(gradients.is_frozen(state, r) for r in receiver.refs):
        return Value(graph=computed(frame, state, given, site.point), open=True)
    hand_over_in(frame, state, receiver, site.arguments.all(), site.point)
    result = _new_result(frame, state, site.point)
    evaluating = gradients.is_evaluating(state, receiver) or gradients.is_evaluating(state, _named(receiver, name))
    unsettle(state, receiver)
    if not frame.entry:
        _outdate(state, receiver, frame.machine.index.stored)
    frame.log(InvokeMethod(site.point, receiver, name, site.arguments, state.mode, result, evaluating))
    of_tensors = operations.method(name) is not None
    computes = of_tensors and not any(map(_is_of_instance, receiver.refs))
    found = _symbolic_result(frame, state, result, given, site.point, computes)
    tensors_too = Value(graph=frozenset(s for s in receiver.graph - receiver.refs if isinstance(s, Graph | Derived)))
    if not tensors_too.graph or not of_tensors:
        return found
    return join(found, tensors.method(site, tensors_too, name))


def _named(receiver: Value, name: str) -> Value:
    """Return the part of a receiver that a call of a method is one of, if a network was stored there."""
    return Value(frozenset(Behind.of(r, name) for r in receiver.refs if r.depth < NO_PATH))


def _outdate(state: State, handed: Value, stored: set[str]) -> None:
    """Let go of the attributes of a caller's objects that a call may have set anew: only the caller knows whether."""
    for holder in handed.refs:
        if holder.symbolic and type(root(holder)) is not Result:
            for key in stored.intersection(state.heap.edges(holder)):
                state.heap.remove(holder, key)


def _new_result(frame: Frame, state: State, point: Point) -> Result:
    result = Result.of(point.site, point.context)
    state.heap.drop(result)  # what an earlier call gave is another object
    frame.arise(result)
    return result


def _is_of_instance(receiver: Ref) -> bool:
    """Is it (held by) an object of the program, as the parameters of a network are?"""
    holder = root(receiver)
    return type(holder) is Object and holder.kind is Kind.INSTANCE


def _symbolic_result(
    frame: Frame, state: State, result: Result, given: frozenset[Source], point: Point, computes: bool = False
) -> Value:
    """`computes`: of what it is given alone, not of the parameters of the network whose forward this is."""
    if state.mode is Mode.OFF:
        return Value(result.alone, bare(frame, given, point))
    if frame.inside and frame.inside[-1] is None:
        return Value(result.alone)
    inside = [graph for graph in frame.inside[-1:] if graph is not None and not computes]
    frame.provenance.derive(result, [*inside, *(s for s in given if type(s) is not Leaf)])
    return symbol(result)

"""References of a callee that its caller did not give: what they are for the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import State
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import (
    Bare,
    Behind,
    Bound,
    Choice,
    ClassRef,
    Code,
    Context,
    Counted,
    Derived,
    External,
    Globals,
    Graph,
    Input,
    Key,
    Leaf,
    Loop,
    Method,
    Object,
    Parameters,
    Part,
    Phi,
    Point,
    Ref,
    Result,
    Slot,
    SuperRef,
    extended,
    root,
)
from torchmemlint.flow.domain.values import NOTHING, UNKNOWN, Value, of, symbol, tensor


def resting_on(reference: Ref) -> Ref | None:
    """Return the symbol of the callee that a reference is a part, a method or the parameters of."""
    if type(reference) is Behind:
        return root(reference)
    if isinstance(reference, Bound | Method | SuperRef):
        return root(reference.receiver)
    return root(reference.module) if type(reference) is Parameters else None


class Caller(Protocol):
    """The application of a summary, as far as references are concerned."""

    frame: Frame
    state: State
    point: Point
    calls: Context

    def of(self, reference: Ref) -> Value:
        """Return a reference of the callee as a value of the caller."""

    def key(self, key: Key) -> Key:
        """Return a key of the callee as a key of the caller."""


def _same(substitution: Caller, reference: Ref) -> Value:
    return of(reference)


def _input(substitution: Caller, reference: Ref) -> Value:
    return UNKNOWN


def _globals(substitution: Caller, reference: Ref) -> Value:
    return symbol(reference)


def _behind(s: Caller, reference: Behind) -> Value:
    base, key, machine = s.of(reference.base), reference.key, s.frame.machine
    if isinstance(key, Ref):
        return machine.item(s.frame, s.state, base, s.key(key), s.point)
    found = machine.attribute(s.frame, s.state, base, key, s.point)
    return machine.item(s.frame, s.state, base, key, s.point) if _is_item(s, base, key, found) else found


def _is_item(s: Caller, base: Value, key: Key, found: Value) -> bool:
    """Was it no attribute, but what the `__getitem__` of an object gives for a constant?"""
    for r in base.refs if len(base.refs) == 1 and isinstance(key, str) else ():
        if type(r) is Object and r.kind is Kind.INSTANCE and found.refs == Behind.of(r, key).alone:
            return s.frame.machine.index.method(r.about.cls, "__getitem__") is not None
    return False


def _result(substitution: Caller, reference: Ref) -> Value:
    return UNKNOWN


def _object(s: Caller, made: Object) -> Value:
    return of(Object.of(made.kind, made.site, extended(made.context, s.calls), made.about, made.older))


def _code(s: Caller, code: Code) -> Value:
    if type(code.frame) is Globals:
        return of(code)
    frames = s.of(code.frame).refs
    return Value(frozenset(Code.of(code.function, frame) for frame in frames) or code.alone)


def _class(s: Caller, reference: ClassRef) -> Value:
    if type(reference.frame) is Globals:
        return of(reference)
    frames = s.of(reference.frame).refs
    return Value(frozenset(ClassRef.of(reference.cls, frame) for frame in frames) or reference.alone)


def _bound(s: Caller, bound: Bound) -> Value:
    codes = s.of(bound.code).refs
    return Value(frozenset(Bound.of(code, r) for code in codes for r in s.of(bound.receiver).refs))


def _method(s: Caller, method: Method) -> Value:
    return Value(frozenset(Method.of(r, method.name) for r in s.of(method.receiver).refs))


def _super(s: Caller, reference: SuperRef) -> Value:
    return Value(frozenset(SuperRef.of(reference.cls, r) for r in s.of(reference.receiver).refs))


def _parameters(s: Caller, parameters: Parameters) -> Value:
    return Value(frozenset(Parameters.of(r) for r in s.of(parameters.module).refs))


def _graph(s: Caller, graph: Graph) -> Value:
    return tensor((Graph.of(graph.site, extended(graph.context, s.calls)),))


def _derived(s: Caller, node: Derived) -> Value:
    return NOTHING


def _part(s: Caller, part: Part) -> Value:
    wholes = s.of(part.whole).graph
    return tensor(Part.of(whole, part.number) if type(whole) is Graph else whole for whole in wholes)


def _leaf(s: Caller, leaf: Leaf) -> Value:
    return tensor((Leaf.of(leaf.site, extended(leaf.context, s.calls)),))


def _bare(s: Caller, source: Bare) -> Value:
    return tensor((Bare.of(source.site, extended(source.context, s.calls), source.copy, source.host),))


def _loop(s: Caller, loop: Loop) -> Value:
    return of(Loop.of(loop.site, extended(loop.context, s.calls)))


def _phi(s: Caller, phi: Phi) -> Value:
    loop = Loop.of(phi.loop.site, extended(phi.loop.context, s.calls))
    holder, key = phi.place
    if holder is None:
        return tensor((Phi.of(loop, None, key),))
    return tensor(Phi.of(loop, mine, s.key(key)) for mine in s.of(holder).refs)


def _slot(s: Caller, slot: Slot) -> Value:
    return tensor(Slot.of(mine, s.key(slot.key)) for mine in s.of(slot.holder).refs)


MAKERS: dict[type[Ref], Callable[[Any, Any], Value]] = {
    Input: _input,
    Globals: _globals,
    Behind: _behind,
    Result: _result,
    Object: _object,
    Code: _code,
    ClassRef: _class,
    Bound: _bound,
    Method: _method,
    SuperRef: _super,
    External: _same,
    Choice: _same,
    Counted: _same,
    Parameters: _parameters,
    Graph: _graph,
    Derived: _derived,
    Part: _part,
    Leaf: _leaf,
    Bare: _bare,
    Loop: _loop,
    Phi: _phi,
    Slot: _slot,
}

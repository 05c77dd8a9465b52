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
    Passed,
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
from torchmemlint.flow.ir.ops import Class, Function


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


def _context(s: Caller, made: Any) -> Context:
    return extended(made.context, s.calls)


def _of_code(s: Caller, reference: Code | ClassRef, what: Function | Class) -> Value:
    if type(reference.frame) is Globals:
        return of(reference)
    frames = s.of(reference.frame).refs
    return Value(frozenset(type(reference).of(what, frame) for frame in frames) or reference.alone)


def _bound(s: Caller, bound: Bound) -> Value:
    codes = s.of(bound.code).refs
    return Value(frozenset(Bound.of(code, r) for code in codes for r in s.of(bound.receiver).refs))


def _part(s: Caller, part: Part) -> Value:
    wholes = s.of(part.whole).graph
    return tensor(Part.of(whole, part.number) if type(whole) is Graph else whole for whole in wholes)


def _phi(s: Caller, phi: Phi) -> Value:
    loop = Loop.of(phi.loop.site, _context(s, phi.loop))
    if phi.holder is None:
        return tensor((Phi.of(loop, None, phi.key),))
    return tensor(Phi.of(loop, mine, s.key(phi.key)) for mine in s.of(phi.holder).refs)


MAKERS: dict[type[Ref], Callable[[Any, Any], Value]] = {
    **dict.fromkeys((Input, Result), lambda s, r: UNKNOWN),
    **dict.fromkeys((Derived, Passed), lambda s, r: NOTHING),
    Globals: lambda s, r: symbol(r),
    **dict.fromkeys((External, Choice, Counted), lambda s, r: of(r)),
    Behind: _behind,
    Object: lambda s, r: of(Object.of(r.kind, r.site, _context(s, r), r.about, r.older)),
    Code: lambda s, r: _of_code(s, r, r.function),
    ClassRef: lambda s, r: _of_code(s, r, r.cls),
    Bound: _bound,
    Method: lambda s, r: Value(frozenset(Method.of(mine, r.name) for mine in s.of(r.receiver).refs)),
    SuperRef: lambda s, r: Value(frozenset(SuperRef.of(r.cls, mine) for mine in s.of(r.receiver).refs)),
    Parameters: lambda s, r: Value(frozenset(Parameters.of(mine) for mine in s.of(r.module).refs)),
    Graph: lambda s, r: tensor((Graph.of(r.site, _context(s, r)),)),
    Part: _part,
    Leaf: lambda s, r: tensor((Leaf.of(r.site, _context(s, r)),)),
    Bare: lambda s, r: tensor((Bare.of(r.site, _context(s, r), r.copy, r.host),)),
    Loop: lambda s, r: of(Loop.of(r.site, _context(s, r))),
    Phi: _phi,
    Slot: lambda s, r: tensor(Slot.of(mine, s.key(r.key)) for mine in s.of(r.holder).refs),
}

"""Hooks of modules, which run whenever these do."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Hooked, Register
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import Mode, State
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import Behind, Bound, Code, Graph, Key, Loop, Object, Point, Ref, extended
from torchmemlint.flow.domain.values import PLAIN, Value, of, tensor
from torchmemlint.flow.ir.ops import Function
from torchmemlint.flow.models import containers

HANDLE = "torch.utils.hooks.RemovableHandle"
_OWN, _OF_PARTS = ("hook", 0), ("hook", 1)


def register(frame: Frame, state: State, owner: Value, hook: Value, kind: str, point: Point) -> None:
    """Register a hook on modules: it runs whenever they run, alone or as parts of another."""
    for target in owner.each():
        if target.symbolic and not frame.entry:
            frame.log(Register(point, target, hook, kind))
        elif kind.startswith("register_forward"):
            state.heap.add(target, _OWN, hook)
            for whole in _wholes(target):
                state.heap.add(whole, _OF_PARTS, hook)
            if frame.function.parent is None:  # in the body of a file: others may run the module
                _run_unseen(frame, state, target, hook, point)


def handle(site: CallSite, owner: Ref, kind: str) -> Value:
    """Return what removes a hook that was registered."""
    made = Object.of(Kind.OPAQUE, site.point.site, site.point.context, HANDLE)
    site.frame.log(Hooked(site.point, owner, kind, made, site.value(0, "hook")))
    return of(made)


def functions(state: State, hook: Value | None) -> Iterator[Function]:
    """Yield the functions of the project that are called where a value is, as a hook."""
    for r in hook.each() if hook is not None else ():
        code = r.code if type(r) is Bound else r
        if type(code) is Code:
            yield code.function
        elif type(r) is Object and r.kind is Kind.PARTIAL:
            yield from functions(state, state.heap.get(r, Special.FUNCTION))
        elif type(r) is Object and r.kind is Kind.INSTANCE and "__call__" in r.about.cls.methods:
            yield r.about.cls.methods["__call__"]


def _run_unseen(frame: Frame, state: State, target: Ref, hook: Value, point: Point) -> None:
    """Run a hook of a module whose passes are not seen here: it runs again and again, with a graph."""
    if any(r.symbolic for r in hook.refs):
        return
    loop = Loop.of(point.site, extended(point.context, (point.site,)))

    def body(inside: State) -> None:
        graph = Graph.of(point.site, (point.site, *point.context))
        frame.arise(graph)
        given = tensor((graph,)) if inside.mode is not Mode.OFF else PLAIN
        frame.hooks += 1
        frame.machine.call(frame, inside, hook, Arguments([of(target), PLAIN, given]), point)
        frame.hooks -= 1

    frame.machine.run_loop(frame, state, loop, body)


def _wholes(part: Ref) -> set[Ref]:
    """Return what a module is a part of: what its path begins with, and the containers that hold it."""
    found: set[Ref] = set()
    queue = [part]
    while queue:
        inner = queue.pop()
        outer: list[Ref] = []
        if type(inner) is Behind:
            outer = [inner.base]
        elif type(inner) is Object and inner.kind is Kind.MODULE:
            name = str(inner.about)
            path = name.removesuffix("[]") if name.endswith("[]") else name.rpartition(".")[0]
            outer = [Object.of(Kind.MODULE, inner.site, inner.context, path)] if path else []
        if type(inner) is Object:
            outer += [r for r in inner.holders if type(r) is Object and r.kind in _HOLDING]
        queue += [r for r in outer if r not in found]
        found.update(outer)
    return found


_HOLDING = frozenset({Kind.MODULE, Kind.LIST, Kind.TUPLE, Kind.DICT})


def is_hook(key: Key) -> bool:
    """Is it a key under which a module has its hooks?"""
    return key in (_OWN, _OF_PARTS)


def run_hooks(site: CallSite, target: Ref, result: Value) -> None:
    """Run the hooks of a module that has run, and of its parts that are not seen."""
    for key, given in ((_OWN, site.arguments.positional), (_OF_PARTS, [result])):
        hook = site.state.heap.get(target, key)
        if hook is None:
            continue
        inputs = containers.row(site, key, given)
        site.frame.hooks += 1
        site.call(hook, of(target), inputs, result)
        site.frame.hooks -= 1

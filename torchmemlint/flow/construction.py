"""A constructor walked for what it leaves on an object, with arguments of which nothing is known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torchmemlint.flow import calls
from torchmemlint.flow.heap import Heap
from torchmemlint.flow.interpreter import Frame, Interpreter
from torchmemlint.flow.program import Function
from torchmemlint.flow.state import State
from torchmemlint.flow.values import Instance, Unknown


@contextmanager
def constructed(it: Interpreter, made: Instance, constructor: Function) -> Iterator[None]:
    """Within the context, the state is that at the end of the constructor; no facts are taken down."""
    frame, state = it.frame, it.state
    it.frame = Frame(
        constructor,
        constructor.piece,
        constructor.outline,
        (),
        self_value=made,
        self_name=calls.self_name(constructor),
        recording=False,
    )
    parameters = constructor.node.params
    names = [p.name.value for p in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)]
    heap = Heap(it.lasting_heap.copy(), asked=it.asked.slots)
    it.state = State({name: Unknown(path=name) for name in names}, heap, it.module_mode)
    it.state.vars[it.frame.self_name] = made
    it.active.append(constructor)
    try:
        it.execute_body(constructor.node.body)
        yield
    finally:
        it.active.pop()
        it.frame, it.state = frame, state

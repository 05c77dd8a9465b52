"""How graphs go through operations: the tensors that operations make of other values."""

from __future__ import annotations

from collections.abc import Sequence

from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import (
    MAX_HISTORY,
    Carry,
    Device,
    Graph,
    Origin,
    Step,
    Tensor,
    Unknown,
    Value,
    Via,
    cap,
)
from torchmemlint.knowledge import torch_api
from torchmemlint.syntax.source_module import Site


def tensor_from(
    values: Sequence[Value],
    *,
    producer: str,
    made: Site,
    step: Step | None = None,
) -> Tensor:
    """The result of a differentiable operation on `values`: it carries a graph where one of them does."""
    graph = Graph.NONE
    origins: frozenset[Origin] = frozenset()
    history: tuple[Step, ...] = ()
    carried: frozenset[Carry] = frozenset()
    part = -1
    summed: frozenset[Origin] = frozenset()
    devices: set[Device] = set()
    for value in values:
        if isinstance(value, Tensor):
            origins |= value.origins
            carried |= value.carried
            part = max(part, value.part)
            devices.add(value.device)
            summed |= value.summed
            if value.graph > graph:
                graph = value.graph
            if value.graph is Graph.LIVE and not history:
                history = value.history
        elif isinstance(value, Unknown):
            origins |= value.origins
            graph = max(graph, Graph.UNKNOWN)
    if step is not None and graph is Graph.LIVE:
        history = (*history[: MAX_HISTORY - 1], step)
    return Tensor(
        graph=graph,
        origins=cap(origins),
        history=history,
        carried=carried,
        device=devices.pop() if len(devices) == 1 else Device.UNKNOWN,
        producer=producer,
        made=made,
        part=-1 if producer.rpartition(".")[2] in _FLOATING or "oss" in producer else part,
        summed=summed if summed and _is_linear(producer, values) else frozenset(),
    )


def _is_linear(producer: str, values: Sequence[Value]) -> bool:
    """Is the result a sum, mean or multiple of what it is made of?"""
    if producer in _QUOTIENTS | _PRODUCTS:
        graphs = [value for value in values if isinstance(value, Tensor) and value.graph is not Graph.NONE]
        return len(graphs) == 1 and (producer in _PRODUCTS or values[0] is graphs[0])
    return producer in _SUMS


_PRODUCTS = frozenset("Multiply mul multiply mul_".split())
_QUOTIENTS = frozenset("Divide div divide true_divide div_".split())
_SUMS = torch_api.COPIES | frozenset(
    "Add Subtract add sub subtract add_ sub_ neg unary sum mean nanmean stack cat concat hstack getitem "
    "scale scale_loss".split()
)


# Operations on floating-point tensors only: what they take is no number, index or mask.
_FLOATING = frozenset(
    "softmax log_softmax sigmoid tanh mean std var norm exp log sqrt relu gelu silu cross_entropy "
    "binary_cross_entropy binary_cross_entropy_with_logits kl_div normalize logsigmoid logsumexp dropout "
    "proved Linear Conv1d Conv2d".split()
)


def detached(value: Tensor) -> Tensor:
    """The tensor without its graph."""
    return replace(
        value,
        graph=Graph.CUT,
        origins=frozenset(),
        history=(),
        carried=frozenset(),
        exact=True,
        part=-1,
        parameter_of=0,
        summed=frozenset(),
    )


def through(value: Tensor, via: Via) -> frozenset[Carry]:
    """The value's carries after an operation of this kind."""
    return frozenset(replace(c, via=max(c.via, via)) for c in value.carried)


def proven(it: Interpreter, value: Tensor, made: object) -> Tensor:
    """With an unknown graph, what a later backward shows it to be."""
    if value.graph is not Graph.UNKNOWN or value.made is None:
        return value
    site = it.proved(value.made)
    if site is None:
        return value
    return replace(value, graph=Graph.LIVE, history=(Step(value.made, "carries a graph: a backward runs through it"),))

"""What iterating over a value yields, and what a loop iterates over."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow import layers
from torchmemlint.flow.graphs import tensor_from
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import (
    NUMBER,
    Constant,
    Container,
    Device,
    External,
    FunctionValue,
    Graph,
    Known,
    ModuleValue,
    Tensor,
    Unknown,
    Value,
    join,
)
from torchmemlint.knowledge import torch_api

# Wrappers around an iterable that yield its elements.
TRANSPARENT = frozenset(
    {
        "tqdm",
        "tqdm.tqdm",
        "tqdm.auto.tqdm",
        "tqdm.notebook.tqdm",
        "tqdm.trange",
        "tqdm.autonotebook.tqdm",
        "rich.progress.track",
        "reversed",
        "sorted",
        "iter",
        "list",
        "tuple",
        "itertools.islice",
        "itertools.cycle",
        "itertools.chain",
        "alive_progress.alive_it",
        "progressbar.progressbar",
    }
)


def element_of(it: Interpreter, value: Value, node: cst.BaseExpression) -> Value:
    """The value of a loop variable that runs over `value`."""
    match value:
        case Container():
            if value.kind in ("dict", "defaultdict"):
                return NUMBER
            return it.element(value)
        case Known(role="loader"):
            return Known("batch", value.oid, "whole", value.made)
        case Known(role="parameters"):
            return parameter(it, value, node)
        case Known(role="batch"):
            return part(value)
        case Known(element=element) if element is not None:
            return element
        case Tensor():
            result = tensor_from((value,), producer="iterate", made=it.site(node))
            return replace(result, exact=value.exact, kind=value.kind)
        case ModuleValue(qualified="torch.nn.ModuleList" | "torch.nn.Sequential") as module if children := layers.grown(
            it, module
        ).children:
            element = children[0]
            for child in children[1:]:
                element = join(element, child)
            return element
        case ModuleValue():
            return ModuleValue(it.oid("item", value.oid), parameters=value.parameters, why=value.why, made=value.made)
        case Constant():
            return NUMBER
        case Unknown():
            return Unknown(value.origins, it.origin(node, 0))
        case External() | FunctionValue():
            return Unknown()
        case _:
            return Unknown()


def part(batch: Known) -> Known:
    """An element of a batch, which lies where the batch lies."""
    return batch if batch.qualified == "computed" else replace(batch, qualified="part")


def parameter(it: Interpreter, source: Known, node: cst.BaseExpression) -> Tensor:
    """A parameter of a module (or of everything, where the module is not known)."""
    freezes = not it.frame.outline.names.isdisjoint(torch_api.ASKING_FOR_GRADIENTS)
    slot = (source.oid, "frozen")  # which a loop that freezes them does not ask for
    frozen = it.state.heap.peek(slot) if freezes else it.state.heap.get(slot)
    return Tensor(
        Graph.NONE if frozen is not None else Graph.LIVE,
        frozenset({it.origin(node)}),
        (),
        device=Device.UNKNOWN,
        producer="parameter",
        made=it.site(node),
        parameter_of=source.oid,
    )

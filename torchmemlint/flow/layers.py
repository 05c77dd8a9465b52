"""`Sequential` and `ModuleList`: the layers that they are made of, and what calling them gives."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow import containers
from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import Container, ModuleValue, Unknown, Value, join
from torchmemlint.syntax.source_module import Site

CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList"})
GROWING = frozenset({"append", "extend", "insert", "add_module", "register_module"})
_SEVERAL = frozenset({"LSTM", "GRU", "RNN", "LSTMCell", "MultiheadAttention"})  # their outputs are tuples


def gives_one_tensor(qualified: str, children: tuple[Value, ...]) -> bool:
    """Is the output of a library layer a tensor, and no tuple? Of a Sequential, that of its last layer is."""
    if qualified == "torch.nn.Sequential":
        last = children[-1] if children else None
        return isinstance(last, ModuleValue) and last.single
    return qualified.startswith("torch.nn.") and qualified.rpartition(".")[2] not in _SEVERAL


def children(it: Interpreter, arguments: Arguments) -> tuple[Value, ...]:
    """The layers given, in order; what stands for a starred list of unknown length is one layer."""
    found: list[Value] = []
    for item in arguments.items:
        if isinstance(item.value, Container):
            found += _in_order(it, item.value)
        elif isinstance(item.value, ModuleValue) and item.value.qualified == "torch.nn.ModuleList":
            found += grown(it, item.value).children or (Unknown(),)
        else:
            found.append(item.value)
    return tuple(found)


def _in_order(it: Interpreter, container: Container) -> list[Value]:
    """The modules of a list, or of a dict or list of pairs with names, as they were written."""

    def place(entry: tuple[str, Value, Site | None]) -> tuple[int, int]:
        key, _, site = entry
        return (int(key[1:-1]) if key[1:-1].isdigit() else 0, site.serial if site is not None else 0)

    found: list[Value] = []
    for _, value, _ in sorted(containers.entries(it, container), key=place):
        pair = value.items if isinstance(value, Container) and value.items is not None else ()
        found.append(pair[1] if len(pair) == 2 else value)
    return found


def grow(it: Interpreter, node: cst.Call, module: ModuleValue, name: str, arguments: Arguments) -> None:
    """`layers.append(layer)`, `layers.add_module("name", layer)`: the object holds one more, at an unknown place."""
    from torchmemlint.flow import iteration

    given = arguments.find("1", "module") if name in ("add_module", "register_module", "insert") else None
    given = given if given is not None else arguments.find("0", "module", "modules")
    if given is None:
        return
    value = iteration.element_of(it, given.value, given.node) if name == "extend" else given.value
    slot = (module.oid, "[]")
    known = it.state.heap.get(slot)
    it.state.heap[slot] = value if known is None else join(known, value)


def grown(it: Interpreter, module: ModuleValue) -> ModuleValue:
    """The module with the layers that were added after it was made."""
    slot = (module.oid, "[]")
    added = it.state.heap.get(slot) or it.lasting(slot)
    if added is None or module.qualified not in CONTAINERS:
        return module
    parts = (*module.children, added)
    free = isinstance(added, ModuleValue) and added.parameters is False
    empty = not module.children
    return replace(
        module,
        children=parts,
        parameters=False if free and (empty or module.parameters is False) else None,
        single=gives_one_tensor(module.qualified, parts),
    )

"""What torch's operations do to graphs, as `tools/torch_knowledge.py` derived it from an installed torch.

The data file, `torch.json` beside this module, names the version of torch. What is not in it is unknown: rules stay
silent about it, or go by the short hand-written lists of the other modules here, each with its source.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Operation:
    """A function, tensor method or layer of torch."""

    result: str  # "tensor", "tensors" (several, in whatever structure), "varies" (with the arguments) or "value"
    graph: bool | tuple[bool, ...]  # may the result (each of several) carry a graph?
    saves: frozenset[str]  # what backward may need: "input", "operand", "output", "mask", "other"
    discrete: bool  # integers or booleans come out, whatever goes in
    factory: bool  # it takes no tensor
    view: bool  # the result may share the input's storage
    inplace: str | None  # the in-place form's name, or "argument" where it is `inplace=True`
    inplace_saves: frozenset[str]
    moves: bool  # the result may lie on another device
    parameters: bool  # of a layer: has it any?


@lru_cache(maxsize=1024)
def function(qualified: str) -> Operation | None:
    """A function by its public name ("torch.topk", "torch.nn.functional.relu"); None where it is not known."""
    return _operation("functions", qualified)


@lru_cache(maxsize=1024)
def method(name: str) -> Operation | None:
    """A method of `torch.Tensor`; None where it is not known."""
    return _operation("methods", name)


@lru_cache(maxsize=256)
def layer(name: str) -> Operation | None:
    """A module class of `torch.nn`; None where it is not known."""
    return _operation("modules", name)


@lru_cache(maxsize=1)
def discrete() -> frozenset[str]:
    """Functions of `torch` and tensor methods that give integers or booleans whatever they are given."""
    return _names(lambda line: "discrete" in line and "factory" not in line)


@lru_cache(maxsize=1)
def values() -> frozenset[str]:
    """Functions of `torch` and tensor methods that give Python values, and no tensors."""
    return _names(lambda line: line["result"] == "value")


@lru_cache(maxsize=1)
def several() -> frozenset[str]:
    """Last names of functions and methods that always give several tensors."""
    data = _data()
    results: dict[str, set[str]] = {}
    for name, line in (*data["methods"].items(), *data["functions"].items()):
        results.setdefault(name.rpartition(".")[2], set()).add(line["result"])
    return frozenset(name for name, found in results.items() if found == {"tensors"})


@lru_cache(maxsize=1)
def factories() -> frozenset[str]:
    """Functions of `torch` that make a tensor of no other."""
    functions = _data()["functions"].items()
    return frozenset(name.removeprefix("torch.") for name, line in functions if line.get("factory"))


def _names(chosen: Callable[[dict[str, Any]], bool]) -> frozenset[str]:
    data = _data()
    found = {name for name, line in data["methods"].items() if chosen(line)}
    found |= {
        name.removeprefix("torch.") for name, line in data["functions"].items() if name.count(".") == 1 and chosen(line)
    }
    return frozenset(name for name in found if not name.endswith("_"))


def _operation(kind: str, name: str) -> Operation | None:
    line = _data()[kind].get(name)
    if line is None:
        return None
    graph = line.get("graph", False)
    return Operation(
        line["result"],
        tuple(graph) if isinstance(graph, list) else graph,
        frozenset(line.get("saves", ())),
        line.get("discrete", False),
        line.get("factory", False),
        line.get("view", False),
        line.get("inplace"),
        frozenset(line.get("inplace_saves", ())),
        line.get("moves", False),
        line.get("parameters", False),
    )


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    text = (files("torchmemlint.knowledge") / "torch.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data

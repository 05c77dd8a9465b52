"""What torch's operations do to graphs, as `tools/torch_knowledge.py` derived it from an installed torch.

The data file, `torch.json` beside this module, names the version of torch. What is not in it is unknown: rules stay
silent about it, or go by the short hand-written lists of the other modules here, each with its source.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from typing import Any

from torchmemlint.immutable import immutable


@immutable()
class Operation:
    """A function, tensor method or layer of torch."""

    result: str  # "tensor", "tensors" (several, in whatever structure), "varies" (with the arguments) or "value"
    graph: bool | tuple[bool, ...]  # may the result (each of several) carry a graph?
    saves: frozenset[str]  # what backward may need: "input", "operand", "output", "mask", "other"
    keeps: frozenset[str]  # what it always needs
    bytes: dict[str, tuple[float, float]]  # of what it saves beside inputs, per byte of the first: the least, the most
    unary: bool  # it takes one tensor
    discrete: bool  # integers or booleans come out, whatever goes in
    factory: bool  # it takes no tensor
    view: bool  # the result may share the input's storage
    inplace: str | None  # the in-place form's name, or "argument" where it is `inplace=True`
    inplace_saves: frozenset[str]
    moves: bool  # the result may lie on another device
    parameters: bool  # of a layer: has it any?
    keeps_input_for_parameters: bool  # of a layer: it needs its input as long as its parameters are trained
    kind: str  # of a layer: "activation", "loss", "conv" and so on, as torch.nn.modules files them; else ""
    inplace_effect: str  # of a layer with `inplace=True`: "saves", "transient", "nothing" or "ignored"; else ""
    inplace_position: int | None  # of `inplace` among the arguments


@lru_cache(maxsize=1024)
def function(qualified: str) -> Operation | None:
    """A function by its public name ("torch.topk", "torch.nn.functional.relu"); None where it is not known."""
    return _operation("functions", qualified)


@lru_cache(maxsize=1024)
def method(name: str) -> Operation | None:
    """A method of `torch.Tensor`; None where it is not known, or where other objects have one of this name."""
    return None if name in _OF_DICTS else _operation("methods", name)


_OF_DICTS = frozenset({"values"})  # sparse tensors have it, too


@lru_cache(maxsize=256)
def layer(name: str) -> Operation | None:
    """A module class of `torch.nn`; None where it is not known."""
    return _operation("modules", name)


@lru_cache(maxsize=1)
def layers() -> dict[str, Operation]:
    """All module classes of `torch.nn` that are known."""
    return {name: _read(line) for name, line in _data()["modules"].items()}


@lru_cache(maxsize=1)
def by_last_name() -> dict[str, tuple[Operation, ...]]:
    """Functions and tensor methods by their last names: code calls either form."""
    found: dict[str, list[Operation]] = {}
    data = _data()
    for name, line in data["methods"].items():
        found.setdefault(name, []).append(_read(line))
    for name, line in data["functions"].items():
        owner, _, last = name.rpartition(".")
        if owner in _OWNERS:
            found.setdefault(last, []).append(_read(line))
    return {name: tuple(known) for name, known in found.items() if not name.endswith("_")}


_OWNERS = frozenset({"torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special"})


def functional_names() -> list[str]:
    """The names of torch.nn.functional that are known."""
    prefix = "torch.nn.functional."
    return [name.removeprefix(prefix) for name in _data()["functions"] if name.startswith(prefix)]


@lru_cache(maxsize=1)
def gradient_modes() -> dict[str, str]:
    """Names of torch that set the gradient mode, with "off" or "on"; `set_grad_enabled(False)` with its argument."""
    found: dict[str, str] = _data()["gradient_modes"]
    return found


@lru_cache(maxsize=1)
def torch_version() -> str:
    """The release that all this was derived from."""
    return str(_data()["torch"])


@lru_cache(maxsize=1)
def discrete() -> frozenset[str]:
    """Functions of `torch` and tensor methods that give integers or booleans whatever they are given."""
    return _names(lambda line: "discrete" in line and "factory" not in line)


@lru_cache(maxsize=1)
def values() -> frozenset[str]:
    """Functions of `torch` and tensor methods that give Python values, and no tensors."""
    return _names(lambda line: line["result"] == "value")


@lru_cache(maxsize=1)
def settings() -> frozenset[str]:
    """Functions of `torch` that neither take nor give tensors: settings, random state, files."""
    return frozenset(_data()["settings"])


@lru_cache(maxsize=1)
def several() -> frozenset[str]:
    """Last names of functions and methods that always give several tensors."""
    data = _data()
    results: dict[str, set[str]] = {}
    for name, line in (*data["methods"].items(), *data["functions"].items()):
        results.setdefault(name.rpartition(".")[2], set()).add(line["result"])
    return frozenset(name for name, found in results.items() if found == {"tensors"})


@lru_cache(maxsize=1)
def in_place() -> frozenset[str]:
    """Methods of tensors that change what they are called on; other objects' may end with `_`, too."""
    methods = _data()["methods"]
    named = {name for name in methods if name[-1] == "_" and name[0] != "_"}
    return frozenset(named | {line["inplace"] for line in methods.values() if "inplace" in line})


_OF_THE_HOST = frozenset({"from_numpy", "frombuffer", "get_rng_state"})  # they take no `device`


@lru_cache(maxsize=1)
def factories() -> frozenset[str]:
    """Functions of `torch` that make a tensor of no other, and of nothing that lies in the host's memory."""
    functions = _data()["functions"].items()
    return frozenset(name.removeprefix("torch.") for name, line in functions if line.get("factory")) - _OF_THE_HOST


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
    return _read(line)


def _read(line: dict[str, Any]) -> Operation:
    graph = line.get("graph", False)
    saves = frozenset(line.get("saves", ()))
    return Operation(
        line["result"],
        tuple(graph) if isinstance(graph, list) else graph,
        saves,
        saves.difference(line.get("sometimes", ())),
        {role: _range(size) for role, size in line.get("bytes", {}).items()},
        line.get("unary", False),
        line.get("discrete", False),
        line.get("factory", False),
        line.get("view", False),
        line.get("inplace"),
        frozenset(line.get("inplace_saves", ())),
        line.get("moves", False),
        line.get("parameters", False),
        line.get("saves_input_for_parameters", False),
        line.get("kind", ""),
        line.get("inplace_effect", ""),
        line.get("inplace_position"),
    )


def _range(size: float | list[float]) -> tuple[float, float]:
    least, most = size if isinstance(size, list) else (size, size)
    return least, most


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    text = (files("torchmemlint.knowledge") / "torch.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data

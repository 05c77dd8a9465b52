"""What a run of a program shows: losses, gradients, calls of networks, prints and exceptions."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tests.truth.measure import executed

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_GRAPH = re.compile(r",?\s*(grad_fn=<\w+>|requires_grad=True)")  # how a tensor is shown that is kept for its number
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")

Numbers = tuple[float, ...] | None


@dataclass
class Observed:
    """What was seen, in the order of events."""

    losses: list[Numbers] = field(default_factory=list)  # whatever is differentiated
    gradients: list[tuple[Numbers, ...]] = field(default_factory=list)  # of all parameters at each optimizer step
    left: list[Numbers] = field(default_factory=list)  # gradients in the end, of those that an optimizer holds, if any
    weights: list[Numbers] = field(default_factory=list)  # their values in the end
    passes: list[str] = field(default_factory=list)  # the networks that are called, by class
    output: str = ""
    error: str = ""


def observe(files: Mapping[str, str], drive: str = "", seconds: int = 20) -> Observed:
    """Run the files as one program, in this process, and take down what it shows."""
    seen = Observed()
    torch.default_generator.manual_seed(0)
    output, error = executed(files, drive, _watched(seen), seconds)
    seen.output = _GRAPH.sub("", _ADDRESS.sub("0x", output))
    seen.error = _ADDRESS.sub("0x", error)
    return seen


@contextlib.contextmanager
def _watched(seen: Observed) -> Iterator[None]:
    parameters: list[torch.nn.Parameter] = []
    held: set[int] = set()  # by optimizers
    depth = 0

    def made(module: torch.nn.Module, name: str, parameter: object) -> None:
        if isinstance(parameter, torch.nn.Parameter):
            parameters.append(parameter)

    def stepping(optimizer: torch.optim.Optimizer, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        def note() -> None:
            of = [p for group in optimizer.param_groups for p in group["params"]]
            seen.gradients.append(tuple(_numbers(p.grad) for p in of))

        closure = given[1] if len(given) > 1 else named.get("closure")
        if closure is None:
            return note()

        def closing() -> Any:  # what lies there before it is called is not stepped with
            loss = closure()
            note()
            return loss

        return (optimizer, closing), {}

    def holding(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> None:
        adding(optimizer, group)
        held.update(map(id, optimizer.param_groups[-1]["params"]))

    def entered(module: torch.nn.Module, given: object) -> None:
        nonlocal depth
        depth += 1

    def left(module: torch.nn.Module, given: object, out: object) -> None:
        nonlocal depth
        depth -= 1
        if depth == 0:
            seen.passes.append(type(module).__name__)

    hooks = [
        torch.nn.modules.module.register_module_parameter_registration_hook(made),
        register_optimizer_step_pre_hook(stepping),
        torch.nn.modules.module.register_module_forward_pre_hook(entered),
        torch.nn.modules.module.register_module_forward_hook(left, always_call=True),
    ]
    optimizers: Any = torch.optim.Optimizer
    adding = optimizers.add_param_group
    optimizers.add_param_group = holding
    engine: Any = torch.autograd
    originals = {name: getattr(engine, name) for name in ("backward", "grad")}

    def telling(original: Any) -> Any:
        def told(tensors: Any, *given: Any, **more: Any) -> Any:
            of = (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)
            seen.losses.extend(_numbers(tensor) for tensor in of)
            return original(tensors, *given, **more)

        return told

    for name, original in originals.items():
        setattr(engine, name, telling(original))
    frame: Any = torch
    seeding, frame.manual_seed = (
        torch.manual_seed,
        torch.default_generator.manual_seed,
    )  # else each call is kept for CUDA
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(engine, name, original)
        optimizers.add_param_group = adding
        frame.manual_seed = seeding
        for hook in hooks:
            hook.remove()
        seen.left += [_numbers(p.grad) for p in parameters if id(p) in held or not held]
        seen.weights += [_numbers(p) for p in parameters]


def _numbers(tensor: torch.Tensor | None) -> Numbers:
    """A tensor's numbers; of a large one some that change with any of them."""
    if tensor is None:
        return None
    flat = tensor.detach().flatten().to(torch.float64)
    if flat.numel() > 64:
        steps = torch.arange(1, flat.numel() + 1, dtype=torch.float64)
        return (*flat[:32].tolist(), flat.abs().sum().item(), (flat * steps.sin()).sum().item())
    return tuple(flat.tolist())


def same(one: object, other: object) -> bool:
    """Whether two observations are alike, but for how numbers are rounded."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-6) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, str) and isinstance(other, str):
        if one == other:
            return True
        texts = _NUMBER.split(one) == _NUMBER.split(other)
        return texts and same(*([float(n) for n in _NUMBER.findall(text)] for text in (one, other)))
    return one == other

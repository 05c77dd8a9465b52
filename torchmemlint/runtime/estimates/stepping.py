"""Runs the steps of a plan without values, and tells what they took."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from torchmemlint.immutable import immutable
from torchmemlint.runtime.estimates.layers import Layers, LayerUse
from torchmemlint.runtime.estimates.optimizers import OPTIMIZERS
from torchmemlint.runtime.estimates.plan import FLOATING, Plan
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.memory import MemoryUse, track_memory
from torchmemlint.runtime.simulated.backend import Simulated
from torchmemlint.runtime.tracker import tensors_in

STEPS = 2
"""The first step makes gradients and optimizer state, the second runs beside them."""
SEQUENCES = (nn.Sequential, nn.ModuleList)
Factory = Callable[[], Any]


@immutable()
class Use:
    """What the steps of a plan took, in bytes. `by_kind` is at the peak, `phase` where that lies;
    `workspace` is what the allocator holds then beside tensors: cuBLAS's workspaces, and rounding."""

    peak: int
    reserved: int
    workspace: int
    by_kind: dict[Kind, int]
    phase: str
    saved: int  # at the end of a forward
    layers: tuple[LayerUse, ...]
    parameters: int
    trainable: int
    backend: str


def run(factory: Factory, plan: Plan) -> Use:
    """Build the model and run its steps without values, with memory to spare. Raises what the model itself raises."""
    with track_memory("simulated", fake=True, card=plan.card, memory=plan.memory) as memory:
        assert isinstance(memory.backend, Simulated)
        memory.backend.allocator.limit = None
        return _Steps(factory, plan, memory).run()


class _Steps:
    def __init__(self, factory: Factory, plan: Plan, memory: MemoryUse) -> None:
        self.plan = plan
        self.memory = memory
        self.device = torch.device("cuda")
        dtype = getattr(torch, plan.dtype)
        with _default_dtype(dtype), self.device:
            model = factory()
        if not isinstance(model, nn.Module):
            raise TypeError(f"the factory gave {type(model).__name__}, not a torch.nn.Module")
        self.model = model.to(self.device, dtype) if dtype is not torch.float32 else model.to(self.device)
        self.model.train(plan.training)
        if plan.checkpoint:
            checkpointed(self.model)
        self.phases: list[tuple[int, str]] = []
        self.after_forward = 0

    def run(self) -> Use:
        layers = Layers(self.model, self.memory.ledger)
        optimizer = None
        if self.plan.optimizer is not None:
            optimizer = OPTIMIZERS[self.plan.optimizer](self.model.parameters())
        for _ in range(STEPS):
            self._step(optimizer)
            self.memory.step()
        return self._use(layers)

    def _step(self, optimizer: torch.optim.Optimizer | None) -> None:
        if optimizer is None:
            with torch.no_grad():
                self._phase("forward")
                self._forward()
                self.after_forward = self.memory.ledger.now
            return
        for _ in range(self.plan.accumulate):
            self._phase("forward")
            loss = self._loss(self._forward())
            self.after_forward = self.memory.ledger.now
            self._phase("backward")
            loss.backward()
            del loss
        self._phase("optimizer step")
        optimizer.step()
        optimizer.zero_grad()

    def _forward(self) -> Any:
        inputs = self._inputs()
        given = [tensor for name, tensor in inputs if name is None]
        named = {name: tensor for name, tensor in inputs if name is not None}
        if self.plan.amp is None:
            return self.model(*given, **named)
        with torch.autocast("cuda", dtype=getattr(torch, self.plan.amp)):
            return self.model(*given, **named)

    def _inputs(self) -> list[tuple[str | None, torch.Tensor]]:
        made = []
        for one in self.plan.inputs:
            dtype = getattr(torch, one.dtype or self.plan.dtype)
            tensor = torch.zeros(one.shape, dtype=dtype, device=self.device)
            self.memory.backend.tracker.claim(tensor, Kind.INPUT)
            made.append((one.name, tensor))
        return made

    def _loss(self, output: Any) -> torch.Tensor:
        told = getattr(output, "loss", None)
        if isinstance(told, torch.Tensor) and told.requires_grad:
            return told
        parts = [one.float().mean() for one in tensors_in(output) if one.requires_grad and one.is_floating_point()]
        if not parts:
            raise ValueError("nothing that the model returns can be differentiated (estimate it with --inference)")
        return torch.stack(parts).sum()

    def _phase(self, name: str) -> None:
        self.phases.append((self.memory.ledger.now, name))

    def _use(self, layers: Layers) -> Use:
        memory, plan = self.memory, self.plan
        peak = memory.ledger.peak_events.get(memory.device, 0)
        phase = next((name for moment, name in reversed(self.phases) if moment < peak), "set-up")
        held = memory.records(self.after_forward) if plan.training else []
        parameters = list(self.model.parameters())
        by_kind = memory.by_kind()
        return Use(
            peak=memory.peak,
            reserved=memory.peak_reserved or 0,
            workspace=memory.peak - sum(by_kind.values()),
            by_kind=by_kind,
            phase=phase,
            saved=sum(record.nbytes for record in held if record.kind is Kind.SAVED),
            layers=tuple(layers.uses(held)),
            parameters=sum(one.numel() for one in parameters),
            trainable=sum(one.numel() for one in parameters if one.requires_grad),
            backend=memory.backend.describe(),
        )


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    if str(dtype).removeprefix("torch.") in FLOATING:
        torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def checkpointed(model: nn.Module) -> int:
    """Make every element of the longest sequence of layers (and of others as long) compute its forward again.

    Gives the number of layers that were wrapped; 0 where the model has no `Sequential` or `ModuleList` of two or more.
    """
    sequences = [module for module in model.modules() if isinstance(module, SEQUENCES) and len(module) > 1]
    if not sequences:
        return 0
    longest = max(len(sequence) for sequence in sequences)
    wrapped = 0
    for sequence in sequences:
        if len(sequence) == longest:
            for layer in sequence:
                _wrap(layer)
                wrapped += 1
    return wrapped


def _wrap(layer: nn.Module) -> None:
    forward = layer.forward

    def recomputed(*arguments: Any, **keywords: Any) -> Any:
        return checkpoint(forward, *arguments, use_reentrant=False, **keywords)

    layer.forward = recomputed

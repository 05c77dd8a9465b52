"""Changes that are made to a program while it runs: what `torchmemlint fit --what-if` tries. In the child process.

A network is what is called outermost. Most changes are for those that train and record gradients. It is changed as its
first forward pass begins: its parameters stay the objects that the optimizer has. Only what was changed at least once
counts as applied.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from torchmemlint.runtime import decoding, internals, sharded
from torchmemlint.runtime.eight_bits import EightBitAdam

if TYPE_CHECKING:
    from torchmemlint.runtime.loops import Entry
    from torchmemlint.runtime.script import Run

PARTS = 4  # of a batch, for accumulation
RANK = 8  # of LoRA's adapters
_BOXES = nn.ModuleList | nn.ModuleDict  # they only hold others, and nothing calls them
_LEAST_LAYERS = 4  # of a Sequential that is cut into segments


def alteration(run: Run) -> Alteration:
    """For `Order.analysis`: the change that the order's option `what_if` names, which begins at once."""
    return _KINDS[run.order.options["what_if"]](run.order.options["gpus"])


class Alteration:
    """A change, and how often it was applied. `gpus` is how many share the work, where that is the change."""

    training = True  # it is for networks that train

    def __init__(self, gpus: int) -> None:
        self.applied = 0
        self.gpus = gpus
        self._networks: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        call = nn.Module.__call__

        def called(module: nn.Module, *given: Any, **named: Any) -> Any:
            self._called(module)  # a hook would be too late: by then it is decided which forward runs
            return call(module, *given, **named)

        nn.Module.__call__ = called  # type: ignore[method-assign]
        self.begin()

    def begin(self) -> None:
        """Before the program starts."""

    def network(self, module: nn.Module) -> None:
        """A network is about to run for the first time."""

    def turn(self, entry: Entry) -> None:
        """Nothing happens between the turns of loops."""

    def leave(self, entry: Entry) -> None:
        """Nor after them."""

    def result(self) -> dict[str, Any]:
        """How often it was applied."""
        return {"applied": self.applied}

    def _called(self, module: nn.Module) -> None:
        if module in self._networks or (self.training and not (module.training and torch.is_grad_enabled())):
            return
        if any(one.requires_grad or not self.training for one in module.parameters()):
            self._networks.update(module.modules())
            self.network(module)


def blocks(module: nn.Module) -> list[list[nn.Module]]:
    """The modules of one class that lie beside each other, and are made of others: the outermost of each branch.

    Two `nn.Sequential` are alike only in a list: as attributes they are stages, such as features and a classifier.
    """
    kinds: dict[type[nn.Module], list[nn.Module]] = {}
    for child in module.children():
        if any(True for _ in child.children()) and any(True for _ in child.parameters()):
            kinds.setdefault(type(child), []).append(child)
    apart = _BOXES if isinstance(module, nn.Sequential | _BOXES) else nn.Sequential | _BOXES
    repeated = [group for kind, group in kinds.items() if len(group) > 1 and not issubclass(kind, apart)]
    chosen = {id(one) for group in repeated for one in group}
    return repeated + [found for child in module.children() if id(child) not in chosen for found in blocks(child)]


class _Checkpointing(Alteration):
    def network(self, module: nn.Module) -> None:
        found = [one for group in blocks(module) for one in group]
        for one in found:
            self._wrap(one, lambda forward, *given, **named: checkpoint(forward, *given, use_reentrant=False, **named))
        inside = {id(part) for one in found for part in one.modules()}
        for one in module.modules():
            long = isinstance(one, nn.Sequential) and len(one) >= _LEAST_LAYERS and id(one) not in inside
            if long and not any(id(part) in inside for part in one.modules()):
                self._wrap(one, _segments(one))
                inside |= {id(part) for part in one.modules()}

    def _wrap(self, module: nn.Module, call: Callable[..., Any]) -> None:
        forward = module.forward

        def checkpointed(*given: Any, **named: Any) -> Any:
            if not torch.is_grad_enabled():
                return forward(*given, **named)
            return call(forward, *given, **named)

        module.forward = checkpointed
        self.applied += 1


def _segments(layers: Any) -> Callable[..., Any]:
    def call(forward: Callable[..., Any], x: torch.Tensor) -> Any:
        return checkpoint_sequential(list(layers), round(math.sqrt(len(layers))), x, use_reentrant=False)

    return call


class _Autocast(Alteration):
    def network(self, module: nn.Module) -> None:
        if torch.is_autocast_enabled("cuda"):
            return
        forward = module.forward

        def cast(*given: Any, **named: Any) -> Any:
            with torch.autocast("cuda", torch.bfloat16):
                return forward(*given, **named)

        module.forward = cast
        self.applied += 1


class _Bfloat16(Alteration):
    training = False

    def network(self, module: nn.Module) -> None:
        if all(one.dtype is not torch.float32 for one in module.parameters()):
            return
        module.to(torch.bfloat16)
        forward = module.forward

        def cast(*given: Any, **named: Any) -> Any:
            return forward(*_mapped(given, _halved), **_mapped(named, _halved))

        module.forward = cast
        self.applied += 1


def _halved(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.bfloat16) if tensor.dtype is torch.float32 else tensor


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """A value with its tensors changed, in tuples, lists and dictionaries of any kind."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(one, change) for one in value))
    if isinstance(value, tuple | list):
        return type(value)(_mapped(one, change) for one in value)
    if isinstance(value, dict):
        for key, one in list(value.items()):
            value[key] = _mapped(one, change)
    return value


class _Accumulation(Alteration):
    """Loaders give a part of a batch, and gradients stay for as many passes as there are parts."""

    def begin(self) -> None:
        changes = self
        loader, made, clear, forget = (
            torch.utils.data.DataLoader,
            torch.utils.data.DataLoader.__init__,
            torch.optim.Optimizer.zero_grad,
            nn.Module.zero_grad,
        )
        asked: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

        def init(self: Any, dataset: Any, batch_size: int | None = 1, *given: Any, **named: Any) -> None:
            if batch_size is not None and batch_size >= PARTS:
                changes.applied += 1
                batch_size //= PARTS
            made(self, dataset, batch_size, *given, **named)

        def every(plain: Callable[..., None]) -> Callable[..., None]:
            def zero_grad(self: Any, *given: Any, **named: Any) -> None:
                asked[self] = asked.get(self, -1) + 1
                if asked[self] % PARTS == 0:
                    plain(self, *given, **named)

            return zero_grad

        loader.__init__ = init  # type: ignore[method-assign]
        torch.optim.Optimizer.zero_grad = every(clear)  # type: ignore[method-assign]
        nn.Module.zero_grad = every(forget)  # type: ignore[method-assign]


class _Optimizer(Alteration):
    """Optimizers of torch are another one, with the same parameters and rate, and its own defaults else."""

    def other(self) -> type[torch.optim.Optimizer]:
        """What they are instead."""
        raise NotImplementedError

    def begin(self) -> None:
        alteration, other = self, self.other()

        class Other(other):  # type: ignore[misc, valid-type]
            def __init__(self, params: Any, lr: Any = 1e-3, *given: Any, **named: Any) -> None:
                alteration.applied += 1
                super().__init__(params, lr=lr)

        for name in internals.optimizers():
            if not issubclass(getattr(torch.optim, name), other):
                setattr(torch.optim, name, Other)


class _Sgd(_Optimizer):
    def other(self) -> type[torch.optim.Optimizer]:
        return torch.optim.SGD


class _Adafactor(_Optimizer):
    def other(self) -> type[torch.optim.Optimizer]:
        return torch.optim.Adafactor  # since torch 2.5


class _EightBits(_Optimizer):
    def other(self) -> type[torch.optim.Optimizer]:
        return EightBitAdam


class _Zero(Alteration):
    def begin(self) -> None:
        for name in internals.optimizers():
            setattr(torch.optim, name, self._shared(getattr(torch.optim, name)))

    def _shared(self, kind: type[torch.optim.Optimizer]) -> type[torch.optim.Optimizer]:
        def made() -> None:
            self.applied += 1

        return sharded.share_states(kind, self.gpus, made)


class _OneByOne(Alteration):
    def begin(self) -> None:
        def decided(*given: Any, **named: Any) -> tuple[bool, bool]:
            self.applied += 1
            return False, False

        internals.decide_on_foreach(decided)


class _Freezing(Alteration):
    def network(self, module: nn.Module) -> None:
        last = [group[-1] for group in blocks(module)][-1:]
        trained = {id(one) for part in last for one in part.parameters()}
        before = True
        for one in module.parameters() if last else ():
            before = before and id(one) not in trained
            if before and one.requires_grad:
                one.requires_grad_(False)
                self.applied += 1


class _OfParameters(Alteration):
    """A change of parameters that the optimizers must take over."""

    def begin(self) -> None:
        self.optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        made = torch.optim.Optimizer.__init__

        def init(optimizer: Any, params: Any, defaults: Any) -> None:
            made(optimizer, params, defaults)
            self.optimizers.add(optimizer)

        torch.optim.Optimizer.__init__ = init  # type: ignore[method-assign, assignment]


class _Fsdp(_OfParameters):
    def network(self, module: nn.Module) -> None:
        found = [one for group in blocks(module) for one in group]
        new = sharded.shard(module, found, self.gpus)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["params"] = [new.get(one, one) for one in group["params"]]
        self.applied += len(new)


class _Lora(_OfParameters):
    def network(self, module: nn.Module) -> None:
        layers = [one for one in module.modules() if isinstance(one, nn.Linear)]
        own = {id(one) for one in module.parameters()}
        training = [
            one for one in self.optimizers if any(id(p) in own for group in one.param_groups for p in group["params"])
        ]
        if not layers or not training:
            return
        module.requires_grad_(False)
        adapters = [one for layer in layers for one in self._adapted(layer)]
        training[0].add_param_group({"params": adapters})

    def _adapted(self, layer: nn.Linear) -> Iterable[nn.Parameter]:
        forward, weight = layer.forward, layer.weight
        down = nn.Parameter(weight.new_ones(RANK, layer.in_features))
        up = nn.Parameter(weight.new_zeros(layer.out_features, RANK))

        def adapted(x: torch.Tensor) -> torch.Tensor:
            return forward(x) + nn.functional.linear(nn.functional.linear(x, down), up)

        layer.forward = adapted  # type: ignore[method-assign, assignment]
        self.applied += 1
        return down, up


class _HalfLength(Alteration):
    """What loaders give; if they give none, what a network is called with, inputs and labels alike."""

    def begin(self) -> None:
        loader = torch.utils.data.DataLoader
        iterate = loader.__iter__
        self._by_loader = False

        def halved(loading: Any) -> Iterator[Any]:
            for batch in iterate(loading):
                before = self.applied
                changed = _mapped(batch, self._cut)
                self._by_loader |= self.applied > before
                yield changed

        loader.__iter__ = halved  # type: ignore[method-assign, assignment]

    def network(self, module: nn.Module) -> None:
        if self._by_loader:
            return
        forward = module.forward

        def halved(*given: Any, **named: Any) -> Any:
            return forward(*_mapped(given, self._cut), **_mapped(named, self._cut))

        module.forward = halved

    def _cut(self, tensor: torch.Tensor) -> torch.Tensor:
        whole = not tensor.is_floating_point() and tensor.dim() == 2 and tensor.shape[1] > 1
        self.applied += whole
        return tensor[:, : tensor.shape[1] // 2].contiguous() if whole else tensor


class _HalfAnswer(Alteration):
    def begin(self) -> None:
        decoding.change(self._half)

    def _half(self, steps: int) -> int:
        self.applied += steps > 1
        return max(steps // 2, 1)


_KINDS: dict[str, type[Alteration]] = {
    "checkpointing": _Checkpointing,
    "autocast": _Autocast,
    "bf16": _Bfloat16,
    "accumulation": _Accumulation,
    "sgd": _Sgd,
    "adafactor": _Adafactor,
    "adam-8bit": _EightBits,
    "one-by-one": _OneByOne,
    "zero": _Zero,
    "fsdp": _Fsdp,
    "freezing": _Freezing,
    "lora": _Lora,
    "half-length": _HalfLength,
    "half-answer": _HalfAnswer,
}

"""The optimizers whose state can be estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

BLOCK = 256
"""Elements that share one scale in bitsandbytes' 8-bit states (its documentation: block-wise quantization, 256)."""
FEWEST = 4096
"""Parameters with fewer elements keep 32-bit states there (`min_8bit_size`)."""


class EightBit(torch.optim.Optimizer):
    """Stands in for bitsandbytes' AdamW8bit with states of its sizes. For estimates only: no parameter changes."""

    def __init__(self, parameters: Iterable[torch.Tensor]) -> None:
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Make the states that are missing: two, of a byte for each element, with a scale for each block."""
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if parameter.grad is None or state:
                    continue
                small = parameter.numel() < FEWEST
                dtype = torch.float32 if small else torch.uint8
                for name in ("first", "second"):
                    state[name] = torch.zeros_like(parameter, dtype=dtype)
                    if not small:
                        blocks = -(-parameter.numel() // BLOCK)
                        state[f"{name}_scale"] = torch.zeros(blocks, device=parameter.device)


def _torch(name: str, **keywords: Any) -> Callable[[Any], torch.optim.Optimizer]:
    def make(parameters: Any) -> torch.optim.Optimizer:
        kind = getattr(torch.optim, name, None)
        if kind is None:
            raise ValueError(f"torch {torch.__version__} has no torch.optim.{name}")
        made: torch.optim.Optimizer = kind(parameters, **keywords)
        return made

    return make


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": _torch("SGD", lr=1e-3),
    "momentum": _torch("SGD", lr=1e-3, momentum=0.9),
    "adam": _torch("Adam"),
    "adamw": _torch("AdamW"),
    "adafactor": _torch("Adafactor"),
    "rmsprop": _torch("RMSprop"),
    "adagrad": _torch("Adagrad"),
    "adamw8bit": EightBit,
}
"""By the name that `--optimizer` takes; `sgd` is without momentum."""

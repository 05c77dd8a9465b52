"""An optimizer that takes the memory of bitsandbytes' 8-bit AdamW, and needs neither that library nor its kernels.

What it keeps is what `Optimizer2State.init_state` of bitsandbytes 0.50.2 keeps (`bitsandbytes/optim/optimizer.py`), and
as there, one kernel updates each parameter in place, without temporaries. What it computes is not Adam.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

BLOCK = 256
"""Numbers that share a scale in float32."""
LEAST = 4096
"""Parameters of fewer numbers have states in float32 (`min_8bit_size`)."""
_STEPS = 256  # of a table that says what each byte stands for


class EightBitAdam(torch.optim.Optimizer):
    """Two states of a byte for each number of a parameter, and their scales."""

    def __init__(self, params: Any, lr: Any = 1e-3, *given: Any, **named: Any) -> None:
        super().__init__(params, {"lr": lr})
        self._tables: dict[torch.device, tuple[torch.Tensor, torch.Tensor]] = {}

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make the states where there are none, and change each parameter in place."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if not self.state[parameter]:
                    self.state[parameter] = self._states(parameter)
                parameter.add_(parameter.grad, alpha=-float(group["lr"]))
        return loss

    def _states(self, parameter: torch.Tensor) -> dict[str, torch.Tensor]:
        if parameter.numel() < LEAST:
            return {name: torch.zeros_like(parameter, dtype=torch.float32) for name in ("state1", "state2")}
        device = parameter.device
        if device not in self._tables:
            self._tables[device] = (torch.zeros(_STEPS, device=device), torch.zeros(_STEPS, device=device))
        states = {name: torch.zeros_like(parameter, dtype=torch.uint8) for name in ("state1", "state2")}
        blocks = -(-parameter.numel() // BLOCK)
        return states | {name: torch.zeros(blocks, device=device) for name in ("absmax1", "absmax2")}

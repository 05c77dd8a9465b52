"""What optimizers keep for each parameter, in numbers of the parameter's own size.

Sources: torch/optim/*.py (2.13), each class's `_init_group`; apex/optimizers/fused_adam.py; transformers 4.57
optimization.py. `tests/knowledge/test_optimizers.py` counts what those of torch make.
"""

from __future__ import annotations

from typing import Any

from torchmemlint.immutable import immutable


@immutable()
class Keeps:
    """So many numbers for each number of a parameter, and more where a setting asks for it."""

    always: int
    settings: tuple[tuple[str, int], ...] = ()  # what a setting adds where it is true


_TWO = Keeps(2)  # first and second moment
_ADAM = Keeps(2, (("amsgrad", 1),))  # and the largest second moment so far

KEEPS: dict[str, Keeps] = {
    "torch.optim.Adam": _ADAM,
    "torch.optim.AdamW": _ADAM,
    "torch.optim.Adamax": _TWO,
    "torch.optim.NAdam": _TWO,
    "torch.optim.RAdam": _TWO,
    "torch.optim.SparseAdam": _TWO,
    "torch.optim.Adadelta": _TWO,  # averages of squared gradients and squared steps
    "torch.optim.Rprop": _TWO,  # the last gradient, and a step for each number
    "torch.optim.RMSprop": Keeps(1, (("momentum", 1), ("centered", 1))),
    "torch.optim.Adagrad": Keeps(1),
    "torch.optim.ASGD": Keeps(1),
    "torch.optim.SGD": Keeps(0, (("momentum", 1),)),
    "apex.optimizers.FusedAdam": _TWO,
    "transformers.AdamW": _TWO,
    "transformers.optimization.AdamW": _TWO,
}


def keeps(qualified: str, settings: dict[str, Any]) -> int | None:
    """Numbers kept for each number of a parameter with these settings; None for other classes."""
    owner, _, name = qualified.rpartition(".")
    if owner.startswith("torch.optim."):  # torch.optim.adam.Adam
        owner = "torch.optim"
    known = KEEPS.get(f"{owner}.{name}")
    if known is None:
        return None
    return known.always + sum(more for setting, more in known.settings if settings.get(setting))

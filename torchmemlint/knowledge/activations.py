"""Activations, and what their in-place forms save.

Measured on torch 2.13 in training mode, after a convolution and after convolution and batch norm, one layer, before a
convolution and before an addition (`tests/knowledge/test_activations.py` derives it again). For backward, the in-place
forms of `SAVES_ONE` keep one full activation less per layer where what follows keeps its input (a convolution does, an
addition does not); those of `TRANSIENT` keep exactly as much and remove one transient copy while the layer runs; those
of `SAVES_NOTHING` keep as much too: autograd copies their input first. Under `no_grad` each of them removes a transient
copy.
"""

from __future__ import annotations

SAVES_ONE = frozenset({"LeakyReLU", "ELU", "SELU", "CELU", "RReLU"})
TRANSIENT = frozenset({"ReLU", "Dropout1d", "Dropout2d", "Dropout3d"})
SAVES_NOTHING = frozenset({"SiLU", "Mish", "Hardswish", "Hardsigmoid", "ReLU6", "Hardtanh", "Threshold", "Dropout"})
IGNORES_INPLACE = frozenset({"AlphaDropout", "FeatureAlphaDropout"})  # the modules take `inplace` and do not use it
WITH_INPLACE = SAVES_ONE | TRANSIENT | SAVES_NOTHING

# Position of `inplace` among the arguments of the module class; of the function it is one more (after the input) but
# for dropouts, which take `training` before it.
INPLACE_POSITION = {
    "ReLU": 0,
    "ReLU6": 0,
    "SELU": 0,
    "SiLU": 0,
    "Mish": 0,
    "Hardswish": 0,
    "Hardsigmoid": 0,
    "LeakyReLU": 1,
    "ELU": 1,
    "CELU": 1,
    "Dropout": 1,
    "Dropout1d": 1,
    "Dropout2d": 1,
    "Dropout3d": 1,
    "RReLU": 2,
    "Hardtanh": 2,
    "Threshold": 2,
}
_FUNCTION_POSITION = {"RReLU": 4, "Hardtanh": 3, "Threshold": 3}  # rrelu(input, lower, upper, training, inplace)

_FUNCTIONAL = {
    "relu": "ReLU",
    "relu6": "ReLU6",
    "leaky_relu": "LeakyReLU",
    "elu": "ELU",
    "selu": "SELU",
    "celu": "CELU",
    "rrelu": "RReLU",
    "silu": "SiLU",
    "mish": "Mish",
    "hardswish": "Hardswish",
    "hardsigmoid": "Hardsigmoid",
    "hardtanh": "Hardtanh",
    "threshold": "Threshold",
    "dropout": "Dropout",
    "dropout1d": "Dropout1d",
    "dropout2d": "Dropout2d",
    "dropout3d": "Dropout3d",
}

FUNCTIONS = frozenset(_FUNCTIONAL)  # the functions that apply one of them, in torch.nn.functional or torch


def functional(qualified: str) -> str | None:
    """The activation that a function of torch applies ("torch.nn.LeakyReLU"), or None."""
    owner, _, name = qualified.rpartition(".")
    if owner not in ("torch.nn.functional", "torch"):
        return None
    kind = _FUNCTIONAL.get(name.rstrip("_"))
    return f"torch.nn.{kind}" if kind else None


def module_kind(qualified: str) -> str | None:
    """The short name of an activation module class that has an in-place form, or None."""
    owner, _, name = qualified.rpartition(".")
    return name if owner.startswith("torch.nn") and name in WITH_INPLACE else None


def function_inplace_position(kind: str) -> int:
    """Position of `inplace` among the arguments of the function that applies activation `kind`."""
    return _FUNCTION_POSITION.get(kind, INPLACE_POSITION[kind] + (2 if "Dropout" in kind else 1))

"""Activations, and what their in-place forms save.

Measured on torch 2.13 in training mode, after a convolution and after convolution and batch norm (one layer,
`saved_tensors_hooks` and allocation counts): the in-place forms of `SAVES_ONE` keep one full activation less per layer
for backward; those of `TRANSIENT` save nothing for backward and remove one transient copy at that layer's peak; those
of `SAVES_NOTHING` change nothing in training. Under `no_grad` every one of them removes a transient copy.
"""

from __future__ import annotations

SAVES_ONE = frozenset({"LeakyReLU", "ELU", "SELU", "CELU", "RReLU"})
TRANSIENT = frozenset({"ReLU", "Dropout2d"})
SAVES_NOTHING = frozenset({"SiLU", "Mish", "Hardswish", "Hardsigmoid", "ReLU6", "Hardtanh", "Threshold", "Dropout"})
WITH_INPLACE = SAVES_ONE | TRANSIENT | SAVES_NOTHING | {"Dropout1d", "Dropout3d", "AlphaDropout"}

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
    "dropout2d": "Dropout2d",
    "dropout3d": "Dropout3d",
    "dropout1d": "Dropout1d",
}

# Operations whose backward does not need their own output, so that overwriting it in place is allowed. Measured as
# above: they save their input or weights (convolution, linear, batch norm), or nothing (addition).
OUTPUT_NOT_SAVED = frozenset(
    "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Linear Bilinear BatchNorm1d BatchNorm2d "
    "BatchNorm3d SyncBatchNorm GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm conv1d conv2d conv3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d linear batch_norm group_norm instance_norm layer_norm Add "
    "Subtract add sub".split()
)
# Operations that save their own output for backward: overwriting it raises (or corrupts) in backward.
OUTPUT_SAVED = frozenset(
    "Sigmoid Softmax Tanh LogSoftmax sigmoid softmax tanh log_softmax exp sqrt rsqrt reciprocal tan expm1 LogSigmoid "
    "Softmin Softmax2d".split()
)


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

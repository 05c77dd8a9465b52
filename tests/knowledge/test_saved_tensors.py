"""What operations keep for backward, derived again from torch by overwriting it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torchmemlint.knowledge import activations, saved_tensors

torch = pytest.importorskip("torch")
F = torch.nn.functional
nn = torch.nn

Operation = Callable[[Any], Any]


def tensor(*shape: int) -> Any:
    """A positive, non-leaf tensor with a graph."""
    return torch.rand(*shape, requires_grad=True) * 0.5 + 0.3


def other(*shape: int) -> Any:
    return torch.rand(*shape, requires_grad=True) + 0.1


LAYERS: dict[str, tuple[Operation, tuple[int, ...]]] = {
    **{f"Conv{n}d": (getattr(nn, f"Conv{n}d")(4, 4, 3), (2, 4, *[6] * n)) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": (getattr(nn, f"ConvTranspose{n}d")(4, 4, 3), (2, 4, *[6] * n)) for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": (getattr(nn, f"BatchNorm{n}d")(4), (2, 4, *[6] * n)) for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": (getattr(nn, f"InstanceNorm{n}d")(4), (2, 4, *[6] * n)) for n in (1, 2, 3)},
    **{f"MaxPool{n}d": (getattr(nn, f"MaxPool{n}d")(2), (2, 4, *[6] * n)) for n in (1, 2, 3)},
    **{f"AvgPool{n}d": (getattr(nn, f"AvgPool{n}d")(2), (2, 4, *[6] * n)) for n in (1, 2, 3)},
    **{f"AdaptiveAvgPool{n}d": (getattr(nn, f"AdaptiveAvgPool{n}d")(2), (2, 4, *[6] * n)) for n in (1, 2, 3)},
    "GroupNorm": (nn.GroupNorm(2, 4), (2, 4, 6)),
    "LayerNorm": (nn.LayerNorm(6), (2, 4, 6)),
    "RMSNorm": (nn.RMSNorm(6) if hasattr(nn, "RMSNorm") else nn.LayerNorm(6), (2, 4, 6)),
    "Linear": (nn.Linear(6, 6), (2, 4, 6)),
    "Bilinear": ((lambda layer: lambda x: layer(x, x))(nn.Bilinear(6, 6, 4)), (2, 6)),
    "PReLU": (nn.PReLU(), (2, 4, 6)),
    "ZeroPad2d": (nn.ZeroPad2d(1), (2, 4, 6, 6)),
    "ReflectionPad2d": (nn.ReflectionPad2d(1), (2, 4, 6, 6)),
    "ReplicationPad2d": (nn.ReplicationPad2d(1), (2, 4, 6, 6)),
    "Upsample": (nn.Upsample(scale_factor=2), (2, 4, 6, 6)),
    "LocalResponseNorm": (nn.LocalResponseNorm(2), (2, 4, 6, 6)),
    "Softmax2d": (nn.Softmax2d(), (2, 4, 6, 6)),
    "GLU": (nn.GLU(), (2, 6)),
    "PixelShuffle": (nn.PixelShuffle(2), (2, 4, 6, 6)),
    "AdaptiveMaxPool2d": (nn.AdaptiveMaxPool2d(2), (2, 4, 6, 6)),
    "Dropout": (nn.Dropout(), (2, 4, 6)),
    "Threshold": (nn.Threshold(0.5, 0.0), (2, 4, 6)),
    "RReLU": (nn.RReLU(), (2, 4, 6)),
    "LSTM": ((lambda layer: lambda x: layer(x)[0])(nn.LSTM(6, 6)), (2, 4, 6)),
    **{
        name: (getattr(nn, name)(), (2, 4, 6))
        for name in (
            "Sigmoid Softmax Softmin LogSoftmax Tanh ReLU GELU LeakyReLU ELU SELU CELU SiLU Mish Hardswish Hardsigmoid "
            "Hardtanh ReLU6 Softplus Softsign Softshrink Hardshrink LogSigmoid"
        ).split()
    },
}
_WEIGHT = torch.rand(4, 4, 3, 3)
FUNCTIONS: dict[str, Operation] = {
    "scaled": lambda x: x * 2 / torch.rand(6),
    "+": lambda x: x + other(2, 4, 6, 6),
    "-": lambda x: x - other(2, 4, 6, 6),
    "*": lambda x: x * other(2, 4, 6, 6),
    "/": lambda x: x / other(2, 4, 6, 6),
    "@": lambda x: x @ other(2, 4, 6, 6),
    "matmul": lambda x: torch.matmul(x, other(2, 4, 6, 6)),
    "mul": lambda x: torch.mul(x, other(2, 4, 6, 6)),
    "multiply": lambda x: torch.multiply(x, other(2, 4, 6, 6)),
    "add": lambda x: torch.add(x, other(2, 4, 6, 6)),
    "sub": lambda x: torch.sub(x, other(2, 4, 6, 6)),
    "div": lambda x: torch.div(x, other(2, 4, 6, 6)),
    "bmm": lambda x: torch.bmm(x.flatten(0, 1), other(8, 6, 6)),
    "mm": lambda x: torch.mm(x[0, 0], other(6, 6)),
    "cat": lambda x: torch.cat([x, x]),
    "stack": lambda x: torch.stack([x, x]),
    "clone": lambda x: x.clone(),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2),
    "conv2d": lambda x: F.conv2d(x, _WEIGHT),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, _WEIGHT),
    "linear": lambda x: F.linear(x, other(6, 6)),
    "layer_norm": lambda x: F.layer_norm(x, (6,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "instance_norm": lambda x: F.instance_norm(x),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "softmax": lambda x: x.softmax(-1),
    "softmin": lambda x: F.softmin(x, -1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x, dim=-1),
    "cumprod": lambda x: x.cumprod(-1),
    "scaled_dot_product_attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "glu": lambda x: F.glu(x),
    "pad": lambda x: F.pad(x, (1, 1)),
    "std": lambda x: x.std(-1),
    "index_select": lambda x: x.index_select(0, torch.tensor([1, 0])),
    "gather": lambda x: x.gather(-1, torch.zeros(2, 4, 6, 2, dtype=torch.long)),
    "masked_fill": lambda x: x.masked_fill(x > 0.5, 0.0),
    "clamp": lambda x: x.clamp(0.4, 0.6),
    "where": lambda x: torch.where(x > 0.5, x, 0.0),
    "cumsum": lambda x: x.cumsum(-1),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "repeat": lambda x: x.repeat(2, 1, 1, 1),
    "roll": lambda x: x.roll(1, 0),
    "tril": lambda x: x.tril(),
    "neg": lambda x: -x,
    "atan2": lambda x: torch.atan2(x, other(2, 4, 6, 6)),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "mean": lambda x: x.mean(-1),
    "sum": lambda x: x.sum(-1),
    "dropout": lambda x: F.dropout(x),
    "dropout2d": lambda x: F.dropout2d(x),
    **{
        name: getattr(torch, name)
        for name in (
            "sigmoid tanh relu exp expm1 exp2 sqrt rsqrt reciprocal tan log log1p log2 log10 sin cos abs square erf "
            "sinh cosh atan asin lgamma digamma"
        ).split()
    },
    **{
        name: getattr(F, name)
        for name in (
            "gelu leaky_relu elu selu celu silu mish hardswish hardsigmoid hardtanh relu6 softplus softsign softshrink "
            "hardshrink logsigmoid"
        ).split()
    },
}


FREE = saved_tensors.FREE_OUTPUT_LAYERS | saved_tensors.FREE_OUTPUT_FUNCTIONS
TRIED = LAYERS.keys() | FUNCTIONS.keys()  # of the sets, which are derived for all of torch, a sample


def operation(name: str) -> tuple[Operation, tuple[int, ...]]:
    return LAYERS[name] if name in LAYERS else (FUNCTIONS[name], (2, 4, 6, 6))


def test_the_sample_is_large() -> None:
    assert len(TRIED & FREE) > 70
    assert len(TRIED & saved_tensors.OUTPUT_KEPT) > 20
    assert len(TRIED & (saved_tensors.INPUT_KEPT | saved_tensors.INPUT_KEPT_FOR_WEIGHTS)) > 60
    assert len(TRIED & saved_tensors.KEEPS_NOTHING) > 30


def raises(name: str, *, overwrite: str) -> bool:
    """Does backward raise when the operation's input or output is overwritten before it?"""
    function, shape = operation(name)
    x = tensor(*shape)
    y = function(x)
    (x if overwrite == "input" else y).add_(0.01)
    try:
        y.sum().backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)  # noqa: PT017
        return True
    return False


@pytest.mark.parametrize("name", sorted(TRIED & FREE))
def test_a_free_output_may_be_overwritten(name: str) -> None:
    assert not raises(name, overwrite="output")


@pytest.mark.parametrize("name", sorted(TRIED & saved_tensors.OUTPUT_KEPT))
def test_a_kept_output_may_not(name: str) -> None:
    assert raises(name, overwrite="output")


@pytest.mark.parametrize(
    "name",
    sorted(TRIED & (saved_tensors.INPUT_KEPT_FOR_WEIGHTS | saved_tensors.INPUT_KEPT) | saved_tensors.OPERANDS_KEPT),
)
def test_a_kept_input_may_not(name: str) -> None:
    assert raises(name, overwrite="input")


@pytest.mark.parametrize("name", sorted(TRIED & saved_tensors.INPUT_KEPT_FOR_WEIGHTS))
def test_layers_with_weights_keep_inputs_that_have_no_graph(name: str) -> None:
    if "InstanceNorm" in name:
        pytest.skip("built without weights here")
    function, shape = operation(name)
    x = torch.rand(*shape)
    y = function(x)
    x.add_(0.01)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("name", sorted(TRIED & saved_tensors.KEEPS_NOTHING))
def test_what_keeps_nothing_of_its_input(name: str) -> None:
    assert not raises(name, overwrite="input")


def test_frozen_weights_need_no_input() -> None:
    layer = nn.Linear(4, 4).requires_grad_(False)
    x = tensor(2, 4)
    x += layer(x)
    x.sum().backward()


@pytest.mark.parametrize("name", sorted(set(activations.WITH_INPLACE) - {"Threshold", "Dropout1d"}))
def test_what_works_in_place_is_not_called_free(name: str) -> None:
    assert name not in saved_tensors.FREE_OUTPUT_LAYERS
    x = tensor(2, 4, 6, 6)
    y = getattr(nn, name)(inplace=True)(x)
    assert y.data_ptr() == x.data_ptr()


def test_an_inplace_sum_needs_nothing_of_what_it_overwrites() -> None:
    for change in (lambda x, y: x.add_(y), lambda x, y: x.mul_(y), lambda x, y: x.div_(y), lambda x, y: x.sub_(y)):
        change(tensor(2, 4), other(2, 4)).sum().backward()

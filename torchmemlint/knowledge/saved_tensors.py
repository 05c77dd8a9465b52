"""Which of their own inputs and outputs operations keep for backward.

Overwriting a kept tensor makes backward raise. Measured on torch 2.13 by doing so, operation by operation
(`tests/knowledge/test_saved_tensors.py` does it again). Recurrent networks and attention keep their outputs on the GPU
though not all of them do so on the CPU, and count as keeping them.
"""

from __future__ import annotations

_CONVOLUTIONS = "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d"
_NORMS = (
    "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm"
)

# Layers that make a fresh output and do not keep it: it may be overwritten.
FREE_OUTPUT_LAYERS = frozenset(
    f"{_CONVOLUTIONS} {_NORMS} RMSNorm Linear Bilinear Embedding MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d "
    "AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d ZeroPad2d ReflectionPad2d ReplicationPad2d "
    "Upsample LocalResponseNorm".split()
)
# The same of functions, tensor methods and operators (operators by their syntax node's name).
FREE_OUTPUT_FUNCTIONS = frozenset(
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear bilinear batch_norm group_norm "
    "instance_norm layer_norm rms_norm max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d interpolate "
    "Add Subtract Multiply Divide MatrixMultiply add sub mul div matmul bmm mm cat concat stack clone".split()
)

# Layers and functions that keep their own output.
OUTPUT_KEPT = frozenset(
    "Sigmoid Softmax Softmax2d Softmin LogSoftmax Tanh ReLU GRU LSTM RNN MultiheadAttention sigmoid softmax softmin "
    "log_softmax tanh relu exp expm1 exp2 sqrt rsqrt reciprocal tan logsumexp gumbel_softmax cumprod "
    "scaled_dot_product_attention".split()
)

_WITH_INPUT = frozenset("GRU LSTM RNN MultiheadAttention scaled_dot_product_attention logsumexp cumprod".split())

# Layers with weights: they keep their input as long as the weights are trained, whether or not it has a graph.
INPUT_KEPT_FOR_WEIGHTS = frozenset(f"{_CONVOLUTIONS} {_NORMS} Linear Bilinear PReLU".split())
# These keep their input where it has a graph.
INPUT_KEPT = frozenset(
    "RMSNorm GELU LeakyReLU ELU SELU CELU SiLU Mish Hardswish Hardsigmoid Hardtanh ReLU6 Softplus Softsign Softshrink "
    "Hardshrink GLU LogSigmoid MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d ReflectionPad2d "
    "ReplicationPad2d "
    "gelu leaky_relu elu selu celu silu mish hardswish hardsigmoid hardtanh relu6 softplus softsign softshrink "
    "hardshrink glu logsigmoid max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d log log1p log2 log10 "
    "sin cos abs square erf sinh cosh atan asin lgamma digamma".split()
)
# These keep an operand where the other one has a graph.
OPERANDS_KEPT = frozenset("Multiply MatrixMultiply mul matmul bmm mm multiply".split())

SCALED = "scaled"  # multiplied or divided by what has no graph

# What follows an activation and keeps nothing of it.
KEEPS_NOTHING = OUTPUT_KEPT - _WITH_INPUT | frozenset(
    "scaled Add Subtract add sub cat concat stack interpolate Upsample UpsamplingNearest2d UpsamplingBilinear2d "
    "ZeroPad2d pad PixelShuffle pixel_shuffle mean sum Dropout dropout Dropout2d dropout2d".split()
)


def short(producer: str) -> str:
    """The last part of a qualified name, without the mark of an in-place form."""
    return producer.rpartition(".")[2].rstrip("_")


def output_is_free(producer: str) -> bool:
    """Does the operation make a fresh output that its backward does not need?"""
    name = short(producer)
    return name in FREE_OUTPUT_FUNCTIONS or (producer.startswith("torch.nn.") and name in FREE_OUTPUT_LAYERS)


def keeps_nothing(name: str) -> bool:
    """Does the operation keep nothing of its input?"""
    return short(name) in KEEPS_NOTHING


def output_is_kept(producer: str) -> bool:
    """Does the operation's backward need the operation's own output?"""
    return short(producer) in OUTPUT_KEPT

"""What is known of the module classes of `torch.nn` by their qualified names.

Source of the parameter-free and loss classes: the class list of `torch.nn` in torch 2.13 (a module is parameter-free
when an instance built with its usual arguments has an empty `parameters()`).
"""

from __future__ import annotations

from functools import lru_cache

ACTIVATIONS = frozenset(
    "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish RReLU ReLU ReLU6 "
    "SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold".split()
)
LOSSES = frozenset(
    "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss "
    "HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss "
    "MultiMarginLoss NLLLoss NLLLoss2d PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss "
    "TripletMarginWithDistanceLoss".split()
)
STRUCTURAL = frozenset(
    "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d "
    "AlphaDropout AvgPool1d AvgPool2d AvgPool3d ChannelShuffle CircularPad1d CircularPad2d CircularPad3d "
    "ConstantPad1d ConstantPad2d ConstantPad3d CosineSimilarity Dropout Dropout1d Dropout2d Dropout3d "
    "FeatureAlphaDropout Flatten Fold FractionalMaxPool2d FractionalMaxPool3d Identity LPPool1d LPPool2d LPPool3d "
    "LocalResponseNorm MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d PairwiseDistance PixelShuffle "
    "PixelUnshuffle ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d "
    "ReplicationPad3d Unflatten Unfold Upsample UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1d ZeroPad2d "
    "ZeroPad3d".split()
)
NOT_MODULES = frozenset(
    {
        "Parameter",
        "ParameterList",
        "ParameterDict",
        "Buffer",
        "UninitializedParameter",
        "UninitializedBuffer",
        "DataParallel.device_ids",
    }
)
CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict"})


@lru_cache(maxsize=4096)
def is_layer(qualified: str) -> bool:
    """Is this the qualified name of a module class of `torch.nn`?"""
    if not qualified.startswith("torch.nn."):
        return False
    last = qualified.rpartition(".")[2]
    functional = ".functional." in qualified or ".utils." in qualified or ".init." in qualified
    return last[:1].isupper() and last not in NOT_MODULES and not functional


def has_parameters(qualified: str) -> bool | None:
    """Has a module of this library class trainable parameters? None where that is not known."""
    if not qualified.startswith("torch.nn."):
        return None
    last = qualified.rpartition(".")[2]
    if last in ACTIVATIONS or last in LOSSES or last in STRUCTURAL:
        return False
    return None if last in CONTAINERS or last == "Module" else True

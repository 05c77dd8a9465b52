"""What is known of `nn.Module` classes by their qualified names.

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
WRAPPERS = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "torch.compile",
        "torch.jit.script",
        "torch.nn.utils.weight_norm",
        "torch.nn.utils.spectral_norm",
        "torch.nn.utils.parametrizations.weight_norm",
        "torch.nn.utils.parametrizations.spectral_norm",
        "apex.parallel.DistributedDataParallel",
        "apex.parallel.convert_syncbn_model",
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "copy.deepcopy",
        "copy.copy",
    }
)

# Base classes whose subclasses are modules, besides everything in torch.nn.
_MODULE_BASES = frozenset(
    {
        "lightning.LightningModule",
        "lightning.pytorch.LightningModule",
        "pytorch_lightning.LightningModule",
        "pytorch_lightning.core.LightningModule",
        "pytorch_lightning.core.lightning.LightningModule",
        "lightning.pytorch.core.LightningModule",
        "transformers.PreTrainedModel",
        "transformers.modeling_utils.PreTrainedModel",
        "diffusers.ModelMixin",
        "diffusers.models.modeling_utils.ModelMixin",
        "torch_geometric.nn.MessagePassing",
        "torch_geometric.nn.conv.MessagePassing",
        "torch.jit.ScriptModule",
        "torch.distributions.transforms.TransformModule",
        "pyro.nn.PyroModule",
        "gpytorch.Module",
        "gpytorch.models.ExactGP",
        "gpytorch.models.ApproximateGP",
        "stable_baselines3.common.torch_layers.BaseFeaturesExtractor",
        "fairseq.models.BaseFairseqModel",
        "fairseq.models.FairseqEncoder",
        "fairseq.models.FairseqIncrementalDecoder",
        "composer.models.ComposerModel",
    }
)

# Factories that return a module with parameters.
_FACTORY_PREFIXES = (
    "torchvision.models.",
    "timm.models.",
    "segmentation_models_pytorch.",
    "torch_geometric.nn.models.",
)
_FACTORIES = frozenset(
    {
        "timm.create_model",
        "timm.models.create_model",
        "torch.hub.load",
        "torch.jit.load",
        "torch.jit.trace",
        "clip.load",
        "open_clip.create_model",
        "whisper.load_model",
        "torch_geometric.nn.Sequential",
        "diffusers.training_utils.EMAModel.from_pretrained",
    }
)
_NOT_FACTORIES = ("weights", "Weights", "get_weight", "list_models", "get_model_weights", "create_transform")


@lru_cache(maxsize=4096)
def is_module_class(qualified: str) -> bool:
    """Is this the qualified name of an `nn.Module` class?"""
    if qualified.startswith("torch.nn."):
        last = qualified.rpartition(".")[2]
        functional = ".functional." in qualified or ".utils." in qualified or ".init." in qualified
        return last[:1].isupper() and last not in NOT_MODULES and not functional
    if qualified in _MODULE_BASES:
        return True
    return _is_pretrained_class(qualified) or (qualified.startswith("torchvision.models.") and _is_class(qualified))


def _is_class(qualified: str) -> bool:
    last = qualified.rpartition(".")[2]
    return last[:1].isupper() and "Weights" not in last


@lru_cache(maxsize=4096)
def _is_pretrained_class(qualified: str) -> bool:
    """A model class of transformers, diffusers or torch_geometric by its library's naming scheme."""
    first, _, _ = qualified.partition(".")
    last = qualified.rpartition(".")[2]
    if first == "transformers":
        return (last.startswith("AutoModel") or last.endswith("Model") or ("For" in last and last[:1].isupper())) and (
            "Tokenizer" not in last and "Processor" not in last and "Config" not in last
        )
    if first == "diffusers":
        return last.startswith("Autoencoder") or last.endswith(("Model", "Transformer2DModel", "ControlNetModel"))
    if first == "torch_geometric" and ".nn." in qualified:
        return last[:1].isupper() and last not in ("MLPAggregation",)
    return False


@lru_cache(maxsize=4096)
def is_module_factory(qualified: str) -> bool:
    """Does calling this library function or class method return a module with parameters?"""
    if qualified in _FACTORIES:
        return True
    if qualified.endswith((".from_pretrained", ".from_config", ".from_single_file")):
        return _is_pretrained_class(qualified.rpartition(".")[0])
    if qualified.startswith(_FACTORY_PREFIXES):
        return not any(part in qualified for part in _NOT_FACTORIES) and ".transforms" not in qualified
    return False


def has_parameters(qualified: str) -> bool | None:
    """Has a module of this library class trainable parameters? None where that is not known."""
    if not qualified.startswith("torch.nn."):
        return None
    last = qualified.rpartition(".")[2]
    if last in ACTIVATIONS or last in LOSSES or last in STRUCTURAL:
        return False
    return None if last in CONTAINERS or last == "Module" else True

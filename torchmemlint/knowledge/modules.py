"""What is known of the module classes of `torch.nn` by their qualified names.

Which layers have parameters, and which are losses, is derived from torch (`torch.json`: a layer is parameter-free when
an instance built with its usual arguments has an empty `parameters()`).
"""

from __future__ import annotations

from functools import lru_cache

from torchmemlint.immutable import immutable
from torchmemlint.knowledge import operations

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
# Modules of other libraries that have buffers alone, and those of them that have parameters. Source: torchaudio 2.11.1.
_FORMULAS = ("torchaudio.transforms.",)
_TRAINED = frozenset({"torchaudio.transforms.PitchShift"})


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
    if qualified.startswith(_FORMULAS):
        return qualified in _TRAINED
    if not qualified.startswith("torch.nn."):
        return None
    last = qualified.rpartition(".")[2]
    layer = operations.layer(last)
    if layer is not None:
        return layer.parameters
    return None if last in CONTAINERS or last == "Module" else True


@immutable()
class Scaling:
    """The argument of a normalisation layer that says whether it has parameters, which scale and shift."""

    position: int
    name: str
    default: bool


def scaling(qualified: str) -> Scaling | None:
    """That of a normalisation layer of torch; None for others. Source: their signatures in torch 2.13."""
    last = qualified.rpartition(".")[2]
    layer = operations.layer(last) if qualified.startswith("torch.nn.") else None
    if layer is None or not layer.parameters or layer.kind not in ("batchnorm", "instancenorm", "normalization"):
        return None
    if last in ("LayerNorm", "RMSNorm"):
        return Scaling(2, "elementwise_affine", True)
    return Scaling(2, "affine", True) if last.startswith("Lazy") else Scaling(3, "affine", layer.kind != "instancenorm")


def gives_tensors(qualified: str) -> bool:
    """Is it a layer of torch, all of whose results are tensors?"""
    return qualified.startswith("torch.nn.") and operations.layer(qualified.rpartition(".")[2]) is not None


# The methods that every nn.Module has. Source: torch 2.13 (`dir(torch.nn.Module)`).
METHODS = frozenset(
    """
    add_module apply bfloat16 buffers children compile cpu cuda double eval extra_repr float forward get_buffer
    get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia named_buffers named_children
    named_modules named_parameters parameters register_backward_hook register_buffer register_forward_hook
    register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook
    register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter
    register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule
    share_memory state_dict to to_empty train type xpu zero_grad
    _apply _get_backward_hooks _get_backward_pre_hooks _get_name _load_from_state_dict _named_members
    _register_load_state_dict_pre_hook _register_state_dict_hook _replicate_for_data_parallel _save_to_state_dict
    """.split()
)

REGISTERING = frozenset(name for name in METHODS if name.startswith("register_"))  # no tensor has one of them

# What modules that wrap another for several devices have beside its methods: none of them runs it. Source: torch 2.13
# (torch.nn.parallel.DistributedDataParallel, torch.distributed.fsdp.FullyShardedDataParallel, fully_shard).
WRAPPER_METHODS = frozenset(
    """
    clip_grad_norm_ join no_sync register_comm_hook reshard set_is_last_backward set_requires_gradient_sync
    set_reshard_after_backward set_state_dict_type summon_full_params unshard
    """.split()
)


def gives_one_tensor(qualified: str) -> bool:
    """Is the result of a layer of `torch.nn` one tensor, whatever it is given?"""
    layer = operations.layer(qualified.removeprefix("torch.nn.")) if qualified.startswith("torch.nn.") else None
    return layer is not None and layer.result == "tensor"

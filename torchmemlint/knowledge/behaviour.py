"""What an object must be, judged by the methods that code calls on it (its behaviour, never its name)."""

from __future__ import annotations

from collections.abc import Set

# Methods that only an `nn.Module` has (among what training code handles).
_MODULE = ("eval", "parameters", "named_parameters", "named_modules", "named_children", "register_forward_hook")
_MODULE_PAIRS = (("train", "state_dict"), ("train", "load_state_dict"), ("train", "to"), ("train", "cuda"))
# torch.nn.Module: these give the module itself.
RETURNS_ITSELF = frozenset("to cuda cpu half float double bfloat16 type compile share_memory to_empty apply".split())
_OPTIMIZER = ("zero_grad", "step")
_SCALER = ("scale", "update")

_TELLING = frozenset(  # without one of these there is no role
    {*_MODULE, "zero_grad", "scale", "train", "load_state_dict", "state_dict"}
)


def role(methods: Set[str], of_pipelines: Set[str]) -> str | None:
    """ "module", "pipeline" (which has one of the methods `of_pipelines`), "optimizer", "scaler" or None."""
    if not of_pipelines.isdisjoint(methods):
        return "pipeline"
    if _TELLING.isdisjoint(methods):
        return None
    if any(name in methods for name in _MODULE):
        return "module"
    if all(name in methods for name in _OPTIMIZER):
        return "optimizer"
    if all(name in methods for name in _SCALER) and ("unscale_" in methods or "step" in methods):
        return "scaler"
    if any(all(name in methods for name in pair) for pair in _MODULE_PAIRS):
        return "module"
    if "__call__" in methods and ("load_state_dict" in methods or "state_dict" in methods):
        return "module"  # optimizers and schedulers have a state as well, but are not called
    return None

"""Activations, and what their in-place forms save.

Derived from torch (`inplace_effect` in `torch.json`: measured in training mode, between two convolutions;
`tests/knowledge/test_activations.py` derives it again, after batch norm and before an addition too). For backward, the
in-place forms of `SAVES_ONE` keep one full activation less per layer where what follows keeps its input (a convolution
does, an addition does not); those of `TRANSIENT` keep exactly as much and remove one transient copy while the layer
runs; those of `SAVES_NOTHING` keep as much too: autograd copies their input first. Under `no_grad` each of them removes
a transient copy.
"""

from __future__ import annotations

from torchmemlint.knowledge import operations


def _with_effect(effect: str) -> frozenset[str]:
    return frozenset(name for name, layer in operations.layers().items() if layer.inplace_effect == effect)


SAVES_ONE = _with_effect("saves")
TRANSIENT = _with_effect("transient")
SAVES_NOTHING = _with_effect("nothing")
IGNORES_INPLACE = _with_effect("ignored")  # the modules take `inplace` and do not use it
WITH_INPLACE = SAVES_ONE | TRANSIENT | SAVES_NOTHING

# Position of `inplace` among the arguments of the module class.
INPLACE_POSITION = {kind: operations.layers()[kind].inplace_position or 0 for kind in WITH_INPLACE}


def _functions() -> dict[str, str]:
    """The functions of torch.nn.functional that apply one of them: `leaky_relu` is `LeakyReLU`."""
    kinds = {kind.lower(): kind for kind in WITH_INPLACE}
    names = {name: name.replace("_", "") for name in operations.functional_names()}
    return {name: kinds[bare] for name, bare in names.items() if bare in kinds}


_FUNCTIONAL = _functions()
_FUNCTION_OF = {kind: name for name, kind in _FUNCTIONAL.items()}
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
    function = operations.function(f"torch.nn.functional.{_FUNCTION_OF[kind]}")
    assert function is not None
    assert function.inplace_position is not None
    return function.inplace_position

"""What is known of nn.Module, told again by torch."""

from __future__ import annotations

import inspect

import pytest

from torchmemlint.knowledge import modules

torch = pytest.importorskip("torch")


def test_methods_are_those_of_torch() -> None:
    module = torch.nn.Module
    public = {n for n in modules.METHODS if not n.startswith("_")}
    assert {n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n))} == public
    assert modules.METHODS - public <= {n for n in dir(module) if callable(getattr(module, n))}


def test_normalisation_has_parameters_where_torch_says_so() -> None:
    layers = {name: modules.scaling(f"torch.nn.{name}") for name in dir(torch.nn)}
    found = {name: scaling for name, scaling in layers.items() if scaling is not None}
    assert len(found) > 12
    for name, scaling in found.items():
        names = list(inspect.signature(getattr(torch.nn, name)).parameters.values())
        argument = names[scaling.position]
        assert (argument.name, argument.default) == (scaling.name, scaling.default), name

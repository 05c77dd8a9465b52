"""What is known of nn.Module, told again by torch."""

from __future__ import annotations

import pytest

from torchmemlint.knowledge import modules

torch = pytest.importorskip("torch")


def test_methods_are_those_of_torch() -> None:
    module = torch.nn.Module
    assert {n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n))} == modules.METHODS

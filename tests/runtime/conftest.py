"""The runtime's tests need torch, which the linter's do not."""

from __future__ import annotations

import gc
import importlib

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


@pytest.fixture(scope="module", autouse=True)
def _little_more_to_look_through() -> None:
    importlib.import_module("torch._dynamo")  # as optimizers do: hundreds of thousands of objects
    gc.freeze()

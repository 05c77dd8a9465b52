"""The runtime's tests need torch, which the linter's do not."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

"""Running programs freezes what was alive before: afterwards it is the collector's again."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()

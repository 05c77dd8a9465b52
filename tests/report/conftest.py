from __future__ import annotations

import pytest

from torchmemlint.engine.run import RunReport

from .samples import accumulation, evaluation, loader, report


@pytest.fixture
def everything() -> RunReport:
    """One finding of each severity."""
    return report(evaluation(), loader(), accumulation())

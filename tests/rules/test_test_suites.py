"""Rules whose findings are worth nothing in tests: however deep in a suite their file lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize(
    "fixture",
    [
        "TML301-out-of-place-activation/bad_forward.py",
        "TML304-materialised-attention/bad_heads.py",
        "TML310-implicit-reentrant-checkpoint/bad_blocks.py",
    ],
)
def test_files_of_a_suite_are_not_reported(fixture: str) -> None:
    text, code = (FIXTURES / fixture).read_text(encoding="utf-8"), frozenset({fixture[:6]})
    assert check_text(text, Path("/project/src/models/some/layers.py"), code)
    for path in ("tests/policies/rtc/test_modeling.py", "tests/models/some/layers.py", "src/test_layers.py"):
        assert check_text(text, Path("/project", path), code) == []

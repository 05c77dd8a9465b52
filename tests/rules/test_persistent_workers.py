"""TML404 speaks of an argument that torch has had since 1.7."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text

FIXTURE = Path(__file__).parents[2] / "fixtures" / "TML404-loader-respawns-workers" / "bad_plain.py"


@pytest.mark.parametrize(("target", "found"), [("1.6", False), ("1.7", True), (None, True)])
def test_a_torch_without_the_argument_is_left_alone(target: str | None, found: bool) -> None:
    text = FIXTURE.read_text(encoding="utf-8")
    assert bool(check_text(text, FIXTURE, frozenset({"TML404"}), target=target)) is found

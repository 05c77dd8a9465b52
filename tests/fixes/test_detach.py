"""A detach is offered only where nothing can have been differentiated through it."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.rules.registry import by_code

ROOT = Path(__file__).parent.parent.parent / "fixtures"


@pytest.mark.parametrize(
    "name",
    [
        "TML102-graph-collection/bad_dict_differentiated_before.py",  # summed, and backward run, before it is kept
        "TML701-lightning-step-outputs/bad_kept_and_returned.py",  # Lightning differentiates the same dict's loss
    ],
)
def test_a_dict_made_before_it_is_kept_gets_no_fix(name: str) -> None:
    path = ROOT / name
    findings = check_text(path.read_text(encoding="utf-8"), path, frozenset(by_code()))
    kept = [finding for finding in findings if finding.code == name[:6]]
    assert kept
    assert all(finding.fix is None for finding in kept)


def test_a_dict_that_a_method_gives_is_not_detached() -> None:
    """It has no such method."""
    path = ROOT / "TML102-graph-collection/bad_stats_of_step.py"
    findings = check_text(path.read_text(encoding="utf-8"), path, frozenset({"TML102"}))
    assert [finding.fix for finding in findings] == [None]

"""What is known to be missed: programs of `fixtures/missed`, which announce what should be found in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_fixtures import ROOT, expectations, read
from torchmemlint.engine.checking import check_text

MISSED = sorted((ROOT / "missed").glob("*.py"))


@pytest.mark.xfail(reason="known to be missed", strict=True)
@pytest.mark.parametrize("path", MISSED, ids=lambda path: path.stem)
def test_it_is_found(path: Path) -> None:
    wanted = {(expected.line, expected.code) for expected in expectations(path)}
    found = check_text(read(path), path, frozenset(code for _, code in wanted))
    assert wanted == {(finding.span.start.row, finding.code) for finding in found}

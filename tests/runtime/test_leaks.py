"""Scripts with one leak each, as people write them, and others that only look like it.

The line with the comment `# leak: N bytes per step` is where the bytes are kept; N is worked out by hand (float32).
A step is a turn of the series that is named: an optimizer's step, a loader's batch, a turn of a loop.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
from tests.runtime.tracing import expected, trace

FOLDER = Path(__file__).parent / "leaks"
LEAKING = sorted((FOLDER / "leaking").glob("*.py"))
CLEAN = sorted((FOLDER / "clean").glob("*.py"))


@pytest.mark.parametrize("path", LEAKING, ids=lambda path: path.stem)
def test_the_leaking_line_comes_first(path: Path) -> None:
    wanted = expected(path)
    assert wanted is not None
    leaks = [leak for leak in trace(path) if leak.is_growth]
    assert leaks
    assert (leaks[0].line.path, leaks[0].line.line) == (str(path), wanted.line)
    assert leaks[0].bytes_per_turn == pytest.approx(wanted.nbytes, rel=0.01)
    # What the same script makes besides is no leak of its own.
    assert [leak.line for leak in leaks[1:] if leak.bytes_per_turn > wanted.nbytes] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", CLEAN, ids=lambda path: path.stem)
def test_no_growth_is_claimed(path: Path) -> None:
    assert expected(path) is None
    assert [(str(leak.line), leak.bytes_per_turn) for leak in trace(path) if leak.is_growth] == []

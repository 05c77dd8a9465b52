"""What is found in a program does not depend on its shape: on who calls it, or on where its lines stand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .findings import found
from .programs.tables import larger
from .reshaping import SHAPES, shapeable

SINGLE = [p for p in larger() if len(p.files) == 1 and shapeable(p.files["main.py"])]


@pytest.mark.slow
@pytest.mark.parametrize("third", [0, *(pytest.param(third, marks=pytest.mark.slow) for third in (1, 2))])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_codes(shape: Callable[[str], str | None], third: int) -> None:
    """A third of the programs, which is another one for each shape."""
    wrong, checked = {}, 0
    for program in SINGLE[(SHAPES.index(shape) + third) % 3 :: 3]:
        text = shape(program.files["main.py"])
        if text is not None:
            checked += 1
            codes = sorted(code for _, _, code in found({"main.py": text}))
            if codes != sorted(code for _, _, code in program.expected):
                wrong[program.name] = codes
    assert not wrong
    assert checked > 60

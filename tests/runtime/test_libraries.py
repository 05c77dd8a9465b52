"""Files of libraries, told by where they lie: also in another environment that a path file leads to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchmemlint.runtime.libraries import is_of_a_library


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/opt/other/lib/python3.11/site-packages/transformers/trainer.py", True),
        ("/usr/lib/python3/dist-packages/numpy/core.py", True),
        (json.__file__, True),
        (str(Path(__file__).absolute()), False),
        ("/home/me/packages/site.py", False),
        ("/home/me/my-site-packages/train.py", False),
    ],
)
def test_which_files_are_a_librarys(path: str, expected: bool) -> None:
    assert is_of_a_library(path) is expected

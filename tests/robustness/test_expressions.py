"""Regular expressions: none takes more than linear time on text that it cannot match, whoever wrote it."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator

import pytest

import torchmemlint

_LENGTH = 8_000
_PIECES = (" ", "\t", "a", "0", "_", "-", ".", ",", "#", "(", "[", "{", "'", '"', "\\", "/", "*", "=", ":", "\n")
_PIECES += ("a ", "a.", "a,", "a\n", " \n", "# ", "TML101,", "noqa:", "# torchmemlint: ", "with ", "0.", "a-", "\\'")
_ENDS = ("", "\x00", "!", "\n!")


def _expressions() -> Iterator[tuple[str, re.Pattern[str]]]:
    for found in pkgutil.walk_packages(torchmemlint.__path__, "torchmemlint."):
        if ".runtime" in found.name or found.name.endswith("__main__"):
            continue  # reads no files of others, and may import torch
        try:
            module = importlib.import_module(found.name)
        except ImportError:  # an extra that is not installed
            continue
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                yield f"{found.name}.{name}", value


EXPRESSIONS = dict(_expressions())


def test_there_are_some() -> None:
    assert len(EXPRESSIONS) > 30


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_none_explodes(name: str) -> None:
    """A long row of anything is read in no time: a quadratic search would take half a second or more."""
    expression = EXPRESSIONS[name]
    for piece in _PIECES:
        for end in _ENDS:
            text = piece * (_LENGTH // len(piece)) + end
            began = time.process_time()
            for looks in (expression.match, expression.fullmatch):
                looks(text)
            assert time.process_time() - began < 0.3, f"{piece!r} and {end!r}"

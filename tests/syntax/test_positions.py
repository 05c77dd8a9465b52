"""Nodes stand where libcst's own provider says that they do."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from tests.syntax.test_walking import SYNTAX
from torchmemlint.syntax.positions import code_ranges

TEXTS = [SYNTAX, "x = 1", "\r\n# c\r\nif a:\r\n\tb = '''\r\n'''\r\n", "a\f = 1  # é\nb = \\\n  2\n"]
TEXTS += [path.read_text() for path in sorted(Path(__file__).parents[2].glob("tools/*.py"))]


@pytest.mark.parametrize("text", TEXTS)
def test_places(text: str) -> None:
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    known = wrapper.resolve(PositionProvider)
    ranges = code_ranges(wrapper.module)
    assert len(ranges) == len(known)
    for start, end, node in ranges.values():
        place = known[node]
        assert (start, end) == ((place.start.line, place.start.column), (place.end.line, place.end.column))

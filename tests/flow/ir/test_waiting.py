"""What a generator holds while it waits."""

from __future__ import annotations

import textwrap

import pytest

from torchmemlint.flow.ir.lower import lower
from torchmemlint.flow.ir.reaching import held


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("h = f()\nyield h", set()),
        ("h = f()\nyield h\nyield h", {"h"}),
        ("h = f()\nyield 1\nyield h", {"h"}),
        ("h = f()\nwhile True:\n    yield h", {"h"}),
        ("for x in data:\n    h = f(x)\n    yield h", set()),
        ("for x in data:\n    h = f(x)\n    yield h\n    g(h)", {"h"}),
        ("h = None\nfor x in data:\n    yield h\n    h = f(x)", {"h", "x"}),
        ("for x in data:\n    h = f(x)\n    for y in x:\n        yield y + h", {"h"}),
        ("h = f()\ng(h)\nyield 1", set()),
        ("h = f()\nyield 1\nh = f()\ng(h)", set()),
        ("for x in data:\n    yield x\n    if x:\n        h = x", {"x"}),
    ],
)
def test_names(body: str, names: set[str]) -> None:
    text = f"def features(data):\n{textwrap.indent(body, '    ')}\n"
    assert held(lower(text, "main").functions[1]) == names

"""Python of any kind, by hypothesmith, which knows the language's grammar and nothing of PyTorch."""

from __future__ import annotations

import textwrap

import hypothesmith
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import compiles
from test_properties import comes_to_rest, here, try_to_check

SOURCES = st.deferred(lambda: st.one_of(hypothesmith.from_grammar(), hypothesmith.from_node()))  # takes a while
TRAINING = """\
import torch


def train(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        total += loss
{inside}
    return total


{outside}
"""
few = settings(here, max_examples=here.max_examples // 2)  # a source takes hypothesmith longer than it takes us


@few
@given(SOURCES)
def test_no_source_raises(text: str) -> None:
    try_to_check(text)


@few
@given(SOURCES)
def test_fixes_come_to_rest_around_any_source(source: str) -> None:
    texts = [TRAINING.format(inside=textwrap.indent(part, " " * 8), outside=source) for part in (source, "")]
    text = next((one for one in texts if compiles(one)), None)
    if text is not None:
        comes_to_rest(text, unsafe=True)

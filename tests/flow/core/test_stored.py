"""What is it that is kept: something that has a graph, or something that only holds what has one?"""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.flow.core.findings import cases
from tests.flow.core.programs import PRELUDE
from torchmemlint.flow.domain.manners import Stored

CALLBACK = """
    def gather(step, loader):
        kept = []
        for x, y in loader:
            out = step(x, y)
            kept.append(out)
        print(len(kept))

    def step(x, y):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return GIVEN

    gather(step, read())
    """
DECORATED = """
    from contextlib import contextmanager

    @contextmanager
    def noted():
        yield
        print("a step")

    @noted()
    def step(x, y):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return GIVEN

    def gather(loader):
        kept = []
        for x, y in loader:
            out = step(x, y)
            kept.append(out)
        print(len(kept))
    """


@pytest.mark.parametrize("program", [CALLBACK, DECORATED], ids=["callback", "decorated"])
@pytest.mark.parametrize("holder", ["dict(loss=loss, number=loss.item())", "[loss]", "(loss, 1)"])
def test_a_caller_knows_that_it_only_holds_a_tensor(program: str, holder: str) -> None:
    assert _stored(program, holder) == [Stored.HOLDER]
    assert _stored(program, "loss") != [Stored.HOLDER]


def _stored(program: str, given: str) -> list[Stored]:
    found = cases({"main.py": PRELUDE + dedent(program).replace("GIVEN", given)})
    return [case.stored for case in found if case.code == "TML102"]

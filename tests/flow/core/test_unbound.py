"""Names of a module that only some paths bind: who reads one reads what was bound."""

from __future__ import annotations

import pytest

from torchmemlint.doubts import Doubt

from .findings import cases

SCRIPT = """
import sys
{imports}

import torch
from zoo import make


class Log:
    def show(self, values):
        print(float(values["second"]))


def main():
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = {{"second": 0}}
    for step in range(100):
        first, second = model(torch.rand(3, 3))
        optimizer.zero_grad()
        first.mean().backward()
        optimizer.step()
        total["second"] += second.mean()
    if len(sys.argv) > 1:
        log.show(total)


{before}
if len(sys.argv) > 1:
    log = Log()
main()
"""


GIVEN = {Doubt.GIVEN, Doubt.READER}


def kept(imports: str, before: str) -> list[frozenset[Doubt]]:
    found = cases({"script.py": SCRIPT.format(imports=imports, before=before)})
    return [case.doubts for case in found if case.code == "TML101"]


@pytest.mark.parametrize("before", ["", "log = None"])
def test_what_was_bound_is_what_is_read(before: str) -> None:
    (doubts,) = kept("", before)
    assert GIVEN.isdisjoint(doubts)


def test_what_a_module_gives_that_is_not_seen() -> None:
    (doubts,) = kept("from settings import *", "")
    assert not GIVEN.isdisjoint(doubts)

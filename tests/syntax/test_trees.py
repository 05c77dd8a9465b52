"""Trees that are kept from one look at a text to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.syntax.trees import KeptTrees

PATH = Path("train.py")
TEXT = "loss = model(x)\n"


@pytest.fixture
def trees() -> KeptTrees:
    found = KeptTrees()
    found.begin()
    return found


@pytest.mark.parametrize("kind", ["standard", "concrete"])
def test_a_tree_is_handed_out_again_in_the_next_round(trees, kind) -> None:
    first = getattr(trees, kind)(TEXT, PATH)
    trees.begin()
    assert getattr(trees, kind)(TEXT, PATH) is first


def test_what_cannot_be_parsed_is_refused_each_time(trees) -> None:
    for _ in range(2):
        with pytest.raises(SyntaxError):
            trees.standard("total += (", PATH)


@pytest.mark.parametrize("kind", ["standard", "concrete"])
def test_trees_of_texts_that_are_gone_are_let_go(trees, kind) -> None:
    old = getattr(trees, kind)(TEXT, PATH)
    trees.end()
    trees.begin()
    trees.standard("loss = 0\n", PATH)
    trees.end()
    trees.begin()
    assert getattr(trees, kind)(TEXT, PATH) is not old

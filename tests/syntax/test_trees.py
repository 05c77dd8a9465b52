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


@pytest.mark.parametrize("kind", ["standard", "concrete"])
def test_a_text_that_stands_twice_has_two_trees(trees, kind) -> None:
    one, other = (getattr(trees, kind)(TEXT, PATH) for _ in range(2))
    assert one is not other
    trees.begin()
    assert [getattr(trees, kind)(TEXT, PATH) for _ in range(2)] == [one, other]


def test_a_disowned_tree_is_not_handed_out_again(trees) -> None:
    changed = trees.concrete(TEXT, PATH)
    trees.disown(changed)
    assert trees.concrete(TEXT, PATH) is not changed, "in the same round"
    trees.begin()
    assert trees.concrete(TEXT, PATH) is not changed


def test_a_disowned_file_is_parsed_again(trees) -> None:
    changed = trees.standard(TEXT, PATH)
    trees.disown_file(PATH)
    assert trees.standard(TEXT, PATH) is not changed


def test_what_cannot_be_parsed_is_refused_each_time(trees) -> None:
    for _ in range(2):
        with pytest.raises(SyntaxError):
            trees.standard("total += (", PATH)


def test_trees_of_texts_that_are_gone_are_let_go(trees) -> None:
    old = trees.standard(TEXT, PATH)
    trees.end()
    trees.begin()
    trees.standard("loss = 0\n", PATH)
    trees.end()
    trees.begin()
    assert trees.standard(TEXT, PATH) is not old

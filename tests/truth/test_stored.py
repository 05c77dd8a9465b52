"""The stored sample: its programs are those that were run, and torch says the same again."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.truth.examples import Example
from tests.truth.score import in_process, scored
from tests.truth.stored import SAMPLE, StaleError, load, seed_of


@cache
def stored() -> list[tuple[Example, Example]]:
    return list(load())


def test_the_texts_are_those_that_were_run() -> None:
    assert len(stored()) == 400


def test_one_of_two_twins_is_harmful() -> None:
    for first, second in stored():
        assert first.label.harmful != second.label.harmful


def test_every_truth_occurs_with_graphs_that_are_live_and_spent() -> None:
    labels = [example.label for pair in stored() for example in pair]
    truths = Counter(label.truth for label in labels)
    assert set(truths) == {"leak", "deferred", "waste", "clean"}
    assert min(truths.values()) > 20
    leaks = [label for label in labels if label.truth == "leak"]
    assert min(Counter(label.live for label in leaks).values()) > 50
    assert any(label.unseen_caller for label in labels)


def test_a_changed_text_is_noticed(tmp_path: Path) -> None:
    text = SAMPLE.read_text(encoding="utf-8")
    first = next(load(count=1))[0]
    stale = tmp_path / "sample.json"
    lines = text.splitlines(keepends=True)
    lines[1] = lines[1].replace('"' + lines[1].split('"')[1] + '"', '"0"')
    stale.write_text("".join(lines), encoding="utf-8")
    with pytest.raises(StaleError, match=first.name):
        next(load(stale))


def test_the_linter_can_be_scored_without_torch() -> None:
    examples: list[Example] = [example for pair in stored()[:25] for example in pair]
    score = scored(examples, in_process(examples))
    assert score.pairs <= 25
    assert 0 < score.told_apart <= score.pairs
    assert score.groups["leak"].reported > score.groups["clean"].reported


def test_torch_says_the_same_again() -> None:
    pytest.importorskip("torch")
    from tests.truth.pairs import Tally, pairs
    from tests.truth.sample import Plan

    chosen = stored()[::20]
    again = {pair.plan.pair: pair for pair in pairs(seed_of(), (Plan(first.pair, {}) for first, _ in chosen), Tally())}
    for first, second in chosen:
        pair = again[first.pair]
        assert pair.second is not None
        for old, new in ((first, pair.first), (second, pair.second)):
            assert new.program.files == old.program.files
            assert (new.label.truth, new.label.grows, new.label.live) == (
                old.label.truth,
                old.label.grows,
                old.label.live,
            )

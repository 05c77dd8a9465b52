"""How sure a finding is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchmemlint.doubts import Claim, Confidence, Doubt, is_guess, ordered, rank
from torchmemlint.findings import Finding, Position, Severity, Span
from torchmemlint.fingerprints import with_fingerprints

SPAN = Span(Position(1, 1), Position(1, 2))
FINDING = Finding("TML101", "graph-accumulation", Severity.ERROR, "a leak", Path("a.py"), SPAN, SPAN)


@pytest.mark.parametrize(
    ("doubts", "confidence"),
    [
        ((), Confidence.CERTAIN),
        ((Doubt.GIVEN,), Confidence.LIKELY),
        ((Doubt.EVALUATED,), Confidence.LIKELY),
        ((Doubt.GIVEN, Doubt.HANDED), Confidence.LIKELY),
        ((Doubt.GIVEN, Doubt.PASSED_ON), Confidence.POSSIBLE),
        ((Doubt.MODE,), Confidence.POSSIBLE),
    ],
)
def test_doubts_decide_the_confidence(doubts: tuple[Doubt, ...], confidence: Confidence) -> None:
    assert replace(FINDING, doubts=doubts).confidence is confidence


@pytest.mark.parametrize(
    ("doubts", "guess"),
    [
        ((), False),
        ((Doubt.NETWORK_BY_USE, Doubt.EVALUATED), False),
        ((Doubt.RESET,), False),
        ((Doubt.RESET, Doubt.HANDED), False),
        ((Doubt.RESET, Doubt.NETWORK_BY_USE), True),
        ((Doubt.LAYERS,), True),
        ((Doubt.READER,), True),
        ((Doubt.CUT,), True),
    ],
)
def test_a_graph_that_may_be_kept_is_a_guess_with_some_doubts(doubts: tuple[Doubt, ...], guess: bool) -> None:
    assert is_guess(frozenset(doubts), Claim.KEPT) is guess


@pytest.mark.parametrize(
    ("doubts", "guess"), [((), False), ((Doubt.CUT,), False), ((Doubt.CUT, Doubt.RESET), True), ((Doubt.READER,), True)]
)
def test_backward_has_run_through_what_cannot_be_differentiated_later(doubts: tuple[Doubt, ...], guess: bool) -> None:
    assert is_guess(frozenset(doubts), Claim.SPENT) is guess


@pytest.mark.parametrize(
    ("doubts", "guess"),
    [
        ((), False),
        ((Doubt.ROLE, Doubt.UNMADE), False),
        ((Doubt.BASE, Doubt.UNMADE), False),
        ((Doubt.ROLE, Doubt.BASE), True),
        ((Doubt.MODE,), True),
        ((Doubt.METHOD, Doubt.EVALUATED), True),
        ((Doubt.UNCALLED,), True),
        ((Doubt.MENTIONED, Doubt.ROLE), True),
        ((Doubt.UNDIFFERENTIATED,), True),
        ((Doubt.CUT, Doubt.GIVEN), False),
        ((Doubt.CUT, Doubt.UNMADE, Doubt.GIVEN), True),
    ],
)
def test_a_pass_is_a_guess_with_some_doubts(doubts: tuple[Doubt, ...], guess: bool) -> None:
    assert is_guess(frozenset(doubts), Claim.WASTED) is guess


@pytest.mark.parametrize(
    ("doubts", "guess"),
    [
        ((), False),
        ((Doubt.GIVEN,), False),
        ((Doubt.READER,), False),
        ((Doubt.BESIDE, Doubt.UNSEEN_INPUT), False),
        ((Doubt.UNSEEN_CALL,), True),
        ((Doubt.GRADIENTS,), True),
        ((Doubt.BATCHES,), True),
        ((Doubt.READER, Doubt.CUT), True),
    ],
)
def test_what_a_backward_needs_is_a_guess_with_some_doubts(doubts: tuple[Doubt, ...], guess: bool) -> None:
    assert is_guess(frozenset(doubts), Claim.BACKWARD) is guess


def test_the_surer_ranks_higher() -> None:
    assert sorted(Confidence, key=lambda one: one.rank) == [
        Confidence.POSSIBLE,
        Confidence.LIKELY,
        Confidence.CERTAIN,
    ]
    assert rank(frozenset()) < rank(frozenset({Doubt.GIVEN})) < rank(frozenset({Doubt.MODE}))


def test_doubts_stand_in_one_order() -> None:
    assert ordered([Doubt.CUT, Doubt.MODE, Doubt.CUT]) == ordered([Doubt.MODE, Doubt.CUT]) == (Doubt.MODE, Doubt.CUT)


def test_a_doubt_does_not_change_the_fingerprint() -> None:
    (sure,) = with_fingerprints([FINDING], "x\n")
    (doubted,) = with_fingerprints([replace(FINDING, doubts=(Doubt.GIVEN,))], "x\n")
    assert (sure.fingerprint, sure.former_fingerprint) == (doubted.fingerprint, doubted.former_fingerprint)

"""How many bytes a finding is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.amounts import LITTLE, MUCH, Amount, largest, total
from torchmemlint.api import check_source
from torchmemlint.doubts import Confidence, Doubt
from torchmemlint.findings import Severity
from torchmemlint.report.message import Basis, message_of


@pytest.mark.parametrize(
    ("nbytes", "each", "words"),
    [
        (512, "", "less than 1 KiB"),
        (6400, "", "about 6.2 KiB"),
        (1000 * 2**10, "", "about 1 MiB"),
        (48 * 2**20, "batch of 32", "about 48 MiB for each batch of 32"),
        (3 * 2**30, "", "about 3 GiB"),
    ],
)
def test_amounts_are_said_in_a_few_digits(nbytes: int, each: str, words: str) -> None:
    assert Amount(nbytes, each).words == words


def test_the_largest_of_several_counts_and_none_where_one_is_not_known() -> None:
    small, large = Amount(10), Amount(20)
    assert largest([small, large]) is large
    assert largest([small, None]) is None
    assert largest([]) is None


def test_several_are_summed_up_and_none_where_one_is_not_known() -> None:
    assert total([Amount(1, "batch of 2"), Amount(2, "batch of 2")]) == Amount(3, "batch of 2")
    assert total([Amount(1, "batch of 2"), Amount(2, "batch of 4")]) == Amount(3)
    assert total([Amount(1), None]) is None


def program(rows: int) -> str:
    return f"""
import torch

def train(batches, device):
    for batch in batches:
        yield batch + torch.zeros({rows}, 1024).to(device)
"""


@pytest.mark.parametrize(
    ("rows", "severity", "confidence"),
    [
        (LITTLE // 4096 - 1, Severity.ADVICE, Confidence.POSSIBLE),
        (LITTLE // 4096, Severity.ADVICE, Confidence.CERTAIN),
        (MUCH // 4096 - 1, Severity.ADVICE, Confidence.CERTAIN),
        (MUCH // 4096, Severity.WARNING, Confidence.CERTAIN),
    ],
)
def test_severity_follows_bytes(rows: int, severity: Severity, confidence: Confidence) -> None:
    (found,) = check_source(program(rows), select=["TML501"], settings={"confidence": "possible"})
    assert (found.severity, found.confidence) == (severity, confidence)
    assert found.amount == Amount(rows * 4096)
    cost = message_of(found).cost
    assert cost is not None
    assert (cost.text, cost.basis) == (found.amount.words, Basis.ESTIMATED)
    assert (found.doubts == (Doubt.LITTLE,)) is (confidence is Confidence.POSSIBLE)


SIZED = sorted((Path(__file__).parent / "sized").glob("*.py"))


@pytest.mark.parametrize("path", SIZED, ids=lambda path: path.stem)
def test_programs_say_what_their_sizes_make_of_a_pass(path: Path) -> None:
    """They are no fixtures: the severity of what is known changes where other spellings hide a size."""
    text = path.read_text(encoding="utf-8")
    found = check_source(text, select=["TML2"], settings={"confidence": "possible"}, isolated=True)
    told = {
        (one.span.start.row, one.code, "possible" if one.confidence is Confidence.POSSIBLE else one.severity.value)
        for one in found
    }
    lines = enumerate(text.splitlines(), 1)
    marks = ((row, line.partition("# expect: ")[2].split()) for row, line in lines if "# expect: " in line)
    assert told == {(row, code, severity) for row, (code, severity) in marks}

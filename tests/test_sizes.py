"""Bytes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmemlint.sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("1GiB", 2**30), ("1 GB", 10**9), ("1.5KiB", 1536), (".5 mib", 2**19), ("2048", 2048), ("7 B", 7), (12, 12)],
)
def test_parse(text: str | int, nbytes: int) -> None:
    assert parse_size(text) == nbytes


@pytest.mark.parametrize("text", ["", "GiB", "1 GiBs", "one", "-1", "1e9", "1,5 MB", -1])
def test_what_is_no_size(text: str | int) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (2**20 - 1, "1.0 MiB"),
        (48 * 2**20, "48.0 MiB"),
        (3 * 2**40, "3.0 TiB"),
        (-2048, "-2.0 KiB"),
        (661.4, "661 B"),
    ],
)
def test_format(nbytes: float, text: str) -> None:
    assert format_size(nbytes) == text


@given(st.integers(0, 2**50))
def test_what_is_formatted_can_be_parsed(nbytes: int) -> None:
    assert parse_size(format_size(nbytes)) == pytest.approx(nbytes, rel=0.06)

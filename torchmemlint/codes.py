"""Codes of rules: letters, which say whose rule it is, and three digits."""

from __future__ import annotations

import re
from collections.abc import Iterable

OWN = "TML"  # the letters of our own rules
OF_GRAPHS = frozenset({"TML101", "TML102", "TML103", "TML104", "TML106", "TML701"})
"""The rules about graphs that are kept."""
OF_PASSES = frozenset({"TML201", "TML203", "TML206"})
"""The rules about passes that record a graph for nothing."""

_PREFIX = re.compile(r"(?P<letters>[A-Z]+)(?P<digits>[0-9]*)")


def letters_of(code: str) -> str:
    """TML of TML101."""
    return code.rstrip("0123456789")


def is_own(code: str) -> bool:
    """Is it a code of ours, or the beginning of one?"""
    return code.startswith(OWN)


def digits_of(prefix: str) -> int | None:
    """How many digits a code or the beginning of one has; None where it is neither."""
    match = _PREFIX.fullmatch(prefix)
    return None if match is None else len(match["digits"])


def begun_by(prefix: str, codes: Iterable[str]) -> frozenset[str]:
    """The codes with the same letters as a prefix, whose digits begin with its digits."""
    if digits_of(prefix) is None:
        return frozenset()
    letters = letters_of(prefix)
    return frozenset(code for code in codes if code.startswith(prefix) and letters_of(code) == letters)

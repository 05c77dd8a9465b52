"""What is wrong with a configuration, and what was perhaps meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class ConfigError(Exception):
    """A configuration or selection that cannot be used; the message says where and why."""

    file: Path | None = None  # the configuration file that is wrong, where it is one


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The most similar of the known words, if any is similar; of equals, the one that begins alike."""
    folded = word.casefold()
    by_folded = {option.casefold(): option for option in known}

    def likeness(option: str) -> tuple[float, int]:
        return difflib.SequenceMatcher(None, option, folded).ratio(), _shared_beginning(option, folded)

    close = difflib.get_close_matches(folded, by_folded, 10, 0.5)
    return by_folded[max(close, key=likeness)] if close else None


def _shared_beginning(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence that names the nearest right word, or nothing if none is near."""
    found = nearest(word, known)
    return f" Did you mean `{found}`?" if found else ""

"""What is wrong with a configuration, and what was perhaps meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ConfigError(Exception):
    """A configuration or selection that cannot be used; the message says where and why."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence that names the nearest right word, or nothing if none is near."""
    by_folded = {option.casefold(): option for option in known}
    close = difflib.get_close_matches(word.casefold(), by_folded, 1, 0.5)
    return f" Did you mean `{by_folded[close[0]]}`?" if close else ""

"""What autograd promises, beside what single operations do: `autograd.json`, each with the page that says so.

Some of it is about names: functions, methods, keywords. The analysis reads these here and keeps no lists of its own.
`tests/knowledge/test_autograd.py` shows each with torch.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any


def names(contract: str) -> frozenset[str]:
    """The functions, methods or keywords that a contract is about."""
    return frozenset(contracts()[contract]["names"])


def places(contract: str) -> dict[str, int | None]:
    """Where an argument that a contract is about stands, by the functions that take it."""
    found: dict[str, int | None] = contracts()[contract]["names"]
    return found


@lru_cache(maxsize=1)
def contracts() -> dict[str, dict[str, Any]]:
    """All of them: what is promised (`says`), where (`source`), and of which `names`."""
    found: dict[str, dict[str, Any]] = json.loads(
        (files("torchmemlint.knowledge") / "autograd.json").read_text(encoding="utf-8")
    )
    return found

"""libcst, imported when something of it is first asked for: it takes as long as all else, and most files need none."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from libcst import *  # noqa: F403 (to whoever imports this, it is libcst)
else:

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):  # what the import system asks a module for
            raise AttributeError(name)
        globals()[name] = found = getattr(importlib.import_module("libcst"), name)
        return found


def load() -> None:
    """Import it now, for processes that are forked."""
    importlib.import_module("libcst")

"""Attributes that are replaced for a while and then put back."""

from __future__ import annotations

import contextlib
from typing import Any

_ABSENT = object()


class Replacements(contextlib.ExitStack):
    """An exit stack that can also set attributes; leaving it puts back what was there, or takes away what was not."""

    def replace(self, owner: Any, name: str, value: Any) -> Any:
        """Set an attribute, and give what was there (None where nothing was)."""
        before = vars(owner).get(name, _ABSENT) if hasattr(owner, "__dict__") else getattr(owner, name, _ABSENT)
        setattr(owner, name, value)
        if before is _ABSENT:
            self.callback(delattr, owner, name)
            return None
        self.callback(setattr, owner, name, before)
        return before

    def replace_present(self, owner: Any, names: dict[str, Any]) -> None:
        """Set those attributes that this torch has."""
        for name, value in names.items():
            if owner is not None and hasattr(owner, name):
                self.replace(owner, name, value)

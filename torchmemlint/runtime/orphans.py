"""What owns an object that no name reaches: a member of a reference cycle that waits for the garbage collector.

A tensor in a cycle is freed when the collector comes by, and what a GPU lacks does not make it come.
"""

from __future__ import annotations

import gc
import types
from typing import Any

from torchmemlint.runtime.threads import undisturbed
from torchmemlint.runtime.ways import attribute_of

_LEVELS = 3
"""How far above a tensor its owner is looked for: a list in a dictionary of an object."""
_WIDTH = 8


@undisturbed()
def owner_of(orphan: Any) -> tuple[Any, str] | None:
    """The object of a class that has an orphan, and by which attribute; None where it is not found.

    Each level costs one pass of the collector over all objects.
    """
    level: list[tuple[Any, Any]] = [(orphan, None)]  # an object, and what it has of the one below
    for _ in range(_LEVELS):
        above: list[tuple[Any, Any]] = []
        for value, below in level:
            for one in gc.get_referrers(value):
                if type(one) is types.FrameType or one is level or any(one is pair for pair in level):
                    continue
                name = attribute_of(one, value, below)
                if name is not None:
                    return one, name
                above.append((one, value))
        level = above[:_WIDTH]
    return None

"""The dimensions of a program: one table each, one entry for each way of writing it."""

from __future__ import annotations

from collections.abc import Mapping

from . import calls, holders, loops, models, projects
from .carriers import CARRIER
from .decoys import DECOY
from .fates import FATE
from .limits import BOUND, CUT, GUARD, PLACE
from .models import NETWORK
from .modes import MODE
from .sources import SOURCE
from .ways import CARRIED, CLEAR, COLLECTED, FOLD, WAY, ZERO

__all__ = [
    "BOUND",
    "CALL",
    "CARRIED",
    "CARRIER",
    "CLEAR",
    "COLLECTED",
    "CUT",
    "DECOY",
    "FATE",
    "FOLD",
    "GUARD",
    "HOLDER",
    "LOOP",
    "MODE",
    "MODEL",
    "NETWORK",
    "PLACE",
    "PLAIN",
    "PLAIN_WAY",
    "SOURCE",
    "WAY",
    "ZERO",
    "dimensions",
]

CALL = {**calls.CALL, **projects.CALL}
HOLDER = {**holders.HOLDER, **projects.HOLDER}
LOOP = {**loops.LOOP, **projects.LOOP}
MODEL = {**models.MODEL, **projects.MODEL}

# What most programs have where a dimension is not the strange one.
PLAIN: dict[str, str] = {
    "source": "loss_after_backward",
    "carrier": "name",
    "loop": "for",
    "call": "inline",
    "fate": "number",
    "mode": "on",
    "model": "class",
    "guard": "plain",
    "place": "one_file",
    "decoy": "none",
}
PLAIN_WAY: dict[str, str] = {
    "sum": "+=",
    "list": "append",
    "dict": "[k] =",
    "deque": "append",
    "set": "add",
    "tuple": "+=",
    "tensor": "torch.cat",
}

_TABLES: dict[str, Mapping[str, object]] = {
    "source": SOURCE,
    "carrier": CARRIER,
    "holder": HOLDER,
    "loop": LOOP,
    "call": CALL,
    "fate": FATE,
    "mode": MODE,
    "model": MODEL,
    "guard": GUARD,
    "place": PLACE,
    "decoy": DECOY,
    "cut": CUT,
    "bound": BOUND,
}


def dimensions() -> dict[str, list[str]]:
    """The values of every dimension."""
    values = {name: list(table) for name, table in _TABLES.items()}
    return {**values, "way": list(dict.fromkeys(way for ways in WAY.values() for way in ways))}

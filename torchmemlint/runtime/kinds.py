"""What a storage is for: the kinds that a report tells apart."""

from __future__ import annotations

import enum


class Kind(enum.IntEnum):
    """The use of a storage. Where there is evidence for two, the smaller number wins."""

    PARAMETER = 0
    GRADIENT = 1
    OPTIMIZER_STATE = 2
    INPUT = 3
    SAVED = 4
    TEMPORARY = 5
    OTHER = 6

    @property
    def label(self) -> str:
        """The kind as reports write it."""
        return _LABELS[self]


_LABELS = {
    Kind.PARAMETER: "parameter",
    Kind.GRADIENT: "gradient",
    Kind.OPTIMIZER_STATE: "optimizer state",
    Kind.INPUT: "input batch",
    Kind.SAVED: "saved activation",
    Kind.TEMPORARY: "temporary",
    Kind.OTHER: "other",
}

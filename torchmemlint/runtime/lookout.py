"""When to look who holds what, while a program runs. Knows nothing of torch."""

from __future__ import annotations

from collections.abc import Hashable

from torchmemlint.runtime.growth import FEWEST, WARM_UP

FIRST_LOOK = WARM_UP + FEWEST + 2
"""Turns after which a look can tell something."""
_LATER = 2
"""The factor between the turns at which looks are taken: few looks, and one not long before the end."""


class Lookout:
    """Says when to look: at turns that lie further and further apart, for each place of the program by itself.

    A place is the function in which a turn ends: its locals are what a look there can name.
    """

    def __init__(self) -> None:
        self._next: dict[Hashable, int] = {}
        self._heaviest = 0

    def is_heavy(self, nbytes: int) -> bool:
        """Whether a turn leaves so much behind that a look may tell what none has seen; asked again, it takes more."""
        if 5 * nbytes <= 6 * self._heaviest:
            return False
        self._heaviest = nbytes
        return True

    def is_time(self, place: Hashable, turns: int) -> bool:
        """Whether to look now that a series has made so many turns, and the last ended at a place."""
        if turns < self._next.get(place, FIRST_LOOK):
            return False
        self._next[place] = turns * _LATER
        return True

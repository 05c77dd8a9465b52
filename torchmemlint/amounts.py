"""Amounts: how many bytes a finding concerns, as far as the sizes in the source tell.

Severity follows bytes. Sizes that are not known change nothing.
"""

from __future__ import annotations

from torchmemlint.immutable import immutable

FLOAT = 4
"""Bytes: one number of float32, the type that torch computes in unless it is told otherwise."""
LITTLE = 64 * 2**10
"""Bytes: what cannot reach this is hardly worth a change, so that it is doubted whether anybody wants to read of it."""
MUCH = 2**20
"""Bytes: what cannot reach this is advice."""
ONCE = 32 * 2**20
"""Bytes: what is needed once, and soon dropped, is worth a change from here on."""

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


@immutable(frozen=True)
class Amount:
    """The bytes that a finding concerns, at once: of one tensor, one pass, one file."""

    nbytes: int
    each: str = ""  # for what it is needed each time: "batch of 32"; empty: not known, or once

    @property
    def is_little(self) -> bool:
        """Is it so little that it is hardly worth a change?"""
        return self.nbytes < LITTLE

    @property
    def is_much(self) -> bool:
        """Is it enough for more than advice?"""
        return self.nbytes >= MUCH

    @property
    def words(self) -> str:
        """For people: `about 48 MiB for each batch of 32`."""
        size, unit = float(self.nbytes), 0
        while size >= 1000 and unit < len(_UNITS) - 1:
            size, unit = size / 1024, unit + 1
        number = f"{size:.1f}" if size < 10 and unit else f"{size:.0f}"
        whole = f"about {number.removesuffix('.0')} {_UNITS[unit]}" if unit else "less than 1 KiB"
        return f"{whole} for each {self.each}" if self.each else whole

    def to_json(self) -> dict[str, int | str]:
        """As JSON's types."""
        return {"bytes": self.nbytes, "each": self.each}


def largest(amounts: list[Amount | None]) -> Amount | None:
    """Return the greatest of the amounts that several runs show of one thing; None where one is not known."""
    return max(_all(amounts), key=lambda one: one.nbytes, default=None)


def total(amounts: list[Amount | None]) -> Amount | None:
    """Return what several things come to together; None where one is not known."""
    known = _all(amounts)
    each = {amount.each for amount in known}
    return Amount(sum(amount.nbytes for amount in known), each.pop() if len(each) == 1 else "") if known else None


def _all(amounts: list[Amount | None]) -> list[Amount]:
    """Return all amounts; none where one is not known."""
    known = [amount for amount in amounts if amount is not None]
    return known if len(known) == len(amounts) else []

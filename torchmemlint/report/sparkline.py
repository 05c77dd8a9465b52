"""A series of figures as a line of little bars."""

from __future__ import annotations

from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
WIDEST = 60
"""Characters of a line; of a longer series each bar is the largest of some figures."""


def sparkline(values: Sequence[int], low: int | None = None, high: int | None = None) -> str:
    """The bars; from the least figure to the largest, unless other ends are given for several lines to share."""
    step = -(-len(values) // WIDEST) or 1
    shown = [max(values[at : at + step]) for at in range(0, len(values), step)]
    if not shown:
        return ""
    low, high = min(shown) if low is None else low, max(shown) if high is None else high
    if low == high:
        return _BARS[0] * len(shown)
    return "".join(_BARS[int((value - low) / (high - low) * (len(_BARS) - 1))] for value in shown)

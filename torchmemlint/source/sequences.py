"""What two texts, or lists of rows, have in common."""

from __future__ import annotations

from collections.abc import Sequence


def common_ends(before: Sequence[object], after: Sequence[object]) -> tuple[int, int]:
    """How many items two sequences have in common at their beginning, and then at their end; none counts twice."""
    least = min(len(before), len(after))
    head = next((n for n in range(least) if before[n] != after[n]), least)
    tail = next((n for n in range(least - head) if before[-1 - n] != after[-1 - n]), least - head)
    return head, tail

"""What a GPU's allocator told of itself, in words."""

from __future__ import annotations

from pathlib import Path

from torchmemlint.report.places import shown_place
from torchmemlint.runtime.allocator_history import AllocatorUse, Outside
from torchmemlint.runtime.ledger import NOWHERE
from torchmemlint.sizes import format_size

_LINES = 4


def outside_tensors(use: AllocatorUse, root: Path) -> str:
    """What no tensor owned, and for which lines; paths as seen from `root`."""
    if not use.outside:
        return "nothing"
    lines = [f"{_place(one, root)} ({format_size(one.nbytes)})" for one in use.outside[:_LINES]]
    rest = len(use.outside) - len(lines)
    more = f", and {rest} more lines" if rest else ""
    last = "" if use.whole else "; of the last part of the run"
    return f"{format_size(use.outside_peak)} at most, for {', '.join(lines)}{more}{last}"


def _place(one: Outside, root: Path) -> str:
    # The threads of a backward have no line.
    return "no line of the program" if one.path == NOWHERE.path else shown_place(one.path, one.line, root)

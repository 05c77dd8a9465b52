"""Notes: what is remarkable by itself, wherever it happens and whatever is known of what it happens to."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.manners import Remark
from torchmemlint.flow.fact.logs import Run


def notes(run: Run) -> Iterator[fx.Note]:
    """Yield what is remarkable in one run for certain: what only a caller knows that was not seen is not."""
    for note in run.effects(fx.Note):
        if note.what is not Remark.DATA and note.flag.known and note.point.chain():
            yield note

"""Threads: gradients that are turned off around threads, which turn them on again for themselves.

Source: torch's documentation of `no_grad` ("This context manager is thread local").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.domain.manners import Remark
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.places import Places


def threaded(places: Places, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
    """Yield what starts threads with gradients off in which networks run that nobody differentiates."""
    for run, evidence in done:
        starts = [
            n for n in run.effects(fx.Note) if n.what is Remark.THREADED and n.mode is Mode.OFF and n.point.chain()
        ]
        for note in starts:
            started = note.point.chain()
            for forward in run.effects(fx.Forward):
                chain = forward.point.chain()
                doubts = evidence.graph(forward.graph)
                within = bool(started) and chain[-len(started) :] == started and len(chain) > len(started)
                if within and doubts is not None and not evidence.is_differentiated(forward.graph):
                    inner = (places.of(chain[0]),)
                    yield places.at(note.point, "TML207", doubts | evidence.cut, graphs=inner)
                    break

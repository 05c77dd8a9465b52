"""Several processes of one program, told as one run. Knows nothing of torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from torchmemlint.runtime.demands import Demands
from torchmemlint.runtime.results import End, RunResult


def with_processes(launcher: RunResult, found: Sequence[RunResult]) -> RunResult:
    """A program and the processes that it began itself. What neither steps nor uses a GPU is none of its ranks."""
    ranks = [one for one in found if _counts(one)]
    if not ranks:
        return launcher
    whole = together([*([launcher] if _counts(launcher) else []), *ranks], launcher)
    writes = dict.fromkeys((*launcher.demands.writes, *whole.demands.writes))
    # What the launcher's children took of the machine is in its own demands.
    return replace(whole, demands=replace(launcher.demands, writes=tuple(writes)))


def _counts(one: RunResult) -> bool:
    return one.steps > 0 or bool(one.peak and one.device not in ("", "cpu"))


def together(ranks: Sequence[RunResult], launcher: RunResult | None = None) -> RunResult:
    """Several processes as one run: the figures of the one with the highest peak, and the end of the first bad one.

    What the others say that went down with that one is only its consequence. `ranks` are sorted by rank; `launcher`
    is what began them, if that was a part of the program.
    """
    everything = [*ranks, *([launcher] if launcher is not None and launcher not in ranks else [])]
    most = max(ranks, key=lambda one: (one.device not in ("", "cpu"), one.peak))
    bad = [one for one in everything if one.end is not End.FINISHED]
    first = min(bad, key=lambda one: one.ended or float("inf")) if bad else most
    whose = "" if first.rank is None else f"rank {first.rank}: "
    error = first.error if first.error is None else f"{whose}{first.error}"
    return replace(
        most,
        end=first.end,
        error=error,
        traceback=first.traceback,
        exit_code=first.exit_code,
        seconds=max(one.seconds for one in ranks),
        steps=min(one.steps for one in ranks),
        cut_passes=max(one.cut_passes for one in ranks),
        failed_looks=sum(one.failed_looks for one in ranks),
        failed_look=next((one.failed_look for one in ranks if one.failed_look), ""),
        reached=_sum(one.reached for one in everything),
        left_out=_sum(one.left_out for one in everything),
        files=tuple(dict.fromkeys(file for one in everything for file in one.files)),
        demands=_demands([one.demands for one in ranks]),
        ranks=tuple(ranks),
    )


def _sum(counts: Iterable[object]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)  # type: ignore[call-overload]
    return dict(total)


def _demands(each: Sequence[Demands]) -> Demands:
    writes = dict.fromkeys(path for one in each for path in one.writes)
    return Demands(sum(one.cores for one in each), sum(one.memory for one in each), tuple(writes))

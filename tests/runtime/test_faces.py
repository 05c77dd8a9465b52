"""Runs of several processes or GPUs: their figures, and a fix judged where it tells most."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from torchmemlint.report.faces import faces, whose
from torchmemlint.report.rich_text import rows, write_texts
from torchmemlint.runtime.compare import compare
from torchmemlint.runtime.growth import NO_GROWTH, Growth
from torchmemlint.runtime.results import DeviceUse, End, RunResult, SeriesGrowth
from torchmemlint.runtime.verification import Difference, Sameness

MIB = 1 << 20
SAME = Difference(Sameness.EQUAL)


def growing(nbytes: float) -> tuple[SeriesGrowth, ...]:
    return (SeriesGrowth("optimizer 1", Growth(nbytes, 1.0, 10) if nbytes else NO_GROWTH),)


def run(rank: int | None, peak: int, grows: float = 0.0, device: str = "cuda:0") -> RunResult:
    return RunResult(
        End.FINISHED, backend="simulated", device=device, peak=peak, growth=growing(grows), steps=12, rank=rank
    )


def of_ranks(*ranks: RunResult) -> RunResult:
    return replace(max(ranks, key=lambda one: one.peak), ranks=ranks)


def text(one: RunResult) -> str:
    stream = io.StringIO()
    write_texts(rows(faces(one)), stream, color=False)
    return stream.getvalue()


def test_one_process_on_one_gpu_is_itself() -> None:
    one = run(None, 5 * MIB)
    assert one.faces == (one,)
    assert (one.place, whose(one), text(one)) == ("", "", "")
    assert compare(one, run(None, 4 * MIB), SAME).place == ""


def test_ranks_and_gpus_are_told_one_by_one(tmp_path: Path) -> None:
    uses = (DeviceUse("cuda:0", MIB, 2 * MIB, 0), DeviceUse("cuda:1", 3 * MIB, 4 * MIB, 0, growing(512)))
    second = replace(run(1, 3 * MIB, device="cuda:1"), devices=uses)
    both = of_ranks(run(0, 2 * MIB), second)
    assert [face.place for face in both.faces] == ["rank 0", "rank 1, cuda:0", "rank 1, cuda:1"]
    assert [face.peak for face in both.faces] == [2 * MIB, MIB, 3 * MIB]
    assert text(both).splitlines() == [
        "    rank 0          peak 2.0 MiB on cuda:0, 12 steps",
        "    rank 1, cuda:0  peak 1.0 MiB allocated, 2.0 MiB reserved, 12 steps",
        "    rank 1, cuda:1  peak 3.0 MiB allocated, 4.0 MiB reserved, +512 B per step, 12 steps",
    ]
    assert whose(both) == " (rank 1, cuda:1, the most)"
    both.write(tmp_path / "run.json")
    assert RunResult.read(tmp_path / "run.json") == both


def test_a_rank_that_failed_says_so() -> None:
    failed = replace(run(1, MIB), end=End.FAILED, error="ValueError: no")
    assert "failed: ValueError: no" in text(of_ranks(run(0, 2 * MIB), failed))


def test_a_fix_is_judged_where_it_saves_most() -> None:
    before = of_ranks(run(0, 9 * MIB), run(1, 5 * MIB, 1024))
    after = of_ranks(run(0, 9 * MIB), run(1, 4 * MIB))
    compared = compare(before, after, SAME)
    assert (compared.place, compared.peak_saved, compared.growth_saved) == ("rank 1", MIB, 1024)
    unchanged = compare(before, before, SAME)
    assert (unchanged.place, unchanged.peak_saved) == ("rank 0", 0)

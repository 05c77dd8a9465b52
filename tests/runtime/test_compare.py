"""Two runs against each other, from made-up results and from values that were really saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torchmemlint.runtime.compare import compare, difference, host_falls, saved_where, saves  # noqa: E402
from torchmemlint.runtime.growth import NO_GROWTH, Growth  # noqa: E402
from torchmemlint.runtime.results import End, LoopResult, RunResult, SeriesGrowth  # noqa: E402
from torchmemlint.runtime.verification import Difference, Sameness  # noqa: E402

SAME = Difference(Sameness.EQUAL, 0.0, 0.0)


def straight(bytes_per_step: float, fit: float = 1.0) -> Growth:
    return Growth(bytes_per_step, fit, 10)


def result(peak: int = 10_000, loops: tuple[LoopResult, ...] = (), **growth: Growth) -> RunResult:
    series = tuple(SeriesGrowth(name.replace("_", " "), one) for name, one in growth.items())
    return RunResult(End.FINISHED, peak=peak, growth=series, loops=loops)


def loop(line: int, peak: int = 0) -> LoopResult:
    return LoopResult("a.py", line, line + 3, 1, 12, 1, True, peak)


def test_a_peak_that_falls_by_a_block_is_saved() -> None:
    assert saves(compare(result(10_000), result(9_488), SAME))
    assert not saves(compare(result(10_000), result(9_489), SAME))
    assert not saves(compare(result(10_000), result(12_000), SAME))


def test_reserved_memory_must_fall_by_a_segment_and_a_share() -> None:
    def reserving(nbytes: int) -> RunResult:
        return replace(result(), peak_reserved=nbytes)

    mebibyte = 2**20
    assert saved_where(compare(reserving(40 * mebibyte), reserving(38 * mebibyte), SAME)) == ("reserved",)
    assert not saves(compare(reserving(40 * mebibyte), reserving(39 * mebibyte), SAME))
    assert not saves(compare(reserving(400 * mebibyte), reserving(398 * mebibyte), SAME))


def test_the_series_that_falls_most_is_told() -> None:
    before = result(optimizer_1=straight(8_000), loader_2=straight(640))
    after = result(optimizer_1=straight(8_000), loader_2=straight(0))
    compared = compare(before, after, SAME)
    assert (compared.growth_series, compared.growth_saved) == ("loader 2", 640.0)
    assert saves(compared)


def test_where_nothing_falls_the_steepest_is_told() -> None:
    before = result(optimizer_1=straight(8_000), loader_2=straight(640))
    compared = compare(before, before, SAME)
    assert (compared.growth_series, compared.growth_saved) == ("optimizer 1", 0.0)
    assert not saves(compared)


def test_crooked_lines_must_fall_by_much() -> None:
    before = result(optimizer_1=straight(1_000, 0.95))
    assert not saves(compare(before, result(optimizer_1=straight(950, 0.95)), SAME))
    assert saves(compare(before, result(optimizer_1=straight(800, 0.95)), SAME))


def test_loops_within_a_step_do_not_count() -> None:
    inside = RunResult(End.FINISHED, growth=(SeriesGrowth("loop a.py:1", straight(100), inside=True),))
    assert not saves(compare(inside, result(), SAME))
    assert inside.growth_per_step == 0.0


def test_loops_are_followed_though_their_lines_move() -> None:
    grows = (SeriesGrowth("loop a.py:3", straight(100)), SeriesGrowth("loop a.py:9", straight(50)))
    moved = (SeriesGrowth("loop a.py:4", straight(100)), SeriesGrowth("loop a.py:10", NO_GROWTH))
    before = replace(result(loops=(loop(3), loop(9))), growth=grows)
    after = replace(result(loops=(loop(10), loop(4))), growth=moved)
    compared = compare(before, after, SAME)
    assert (compared.growth_series, compared.growth_saved) == ("loop a.py:9", 50.0)


def test_a_loops_own_peak_is_told_beside_a_larger_one() -> None:
    before, after = result(loops=(loop(3, 10_000), loop(9, 5_000))), result(loops=(loop(3, 10_000), loop(9, 2_000)))
    compared = compare(before, after, SAME)
    assert compared.peak_within == ("loop a.py:9", 5_000, 2_000)
    assert not saves(compared)


def test_the_hosts_heap_counts_only_without_the_tracker() -> None:
    def plain(bytes_per_step: float, *, measured: bool = True) -> RunResult:
        return replace(result(), tracked=False, host_growth=straight(bytes_per_step, 0.99), host_measured=measured)

    falls = compare(result(), result(), SAME, plain_before=plain(20_000), plain_after=plain(500))
    assert host_falls(falls)
    assert saves(falls)
    noise = compare(result(), result(), SAME, plain_before=plain(1_500), plain_after=plain(600))
    assert not host_falls(noise)
    half = compare(result(), result(), SAME, plain_before=plain(20_000))
    assert half.before.host_growth is None
    assert not saves(half)
    unmeasured = compare(
        result(), result(), SAME, plain_before=plain(20_000, measured=False), plain_after=plain(0, measured=False)
    )
    assert not saves(unmeasured)


# --- values


def save(path: Path, losses: list[float], too_large: bool = False, **parameters: Any) -> Path:
    torch.save({"losses": losses, "parameters": parameters, "too_large": too_large}, path)
    return path


@pytest.mark.parametrize(
    ("losses", "parameter", "expected"),
    [
        ([1.0, 0.5], [1.0, 2.0], Sameness.EQUAL),
        ([1.0, 0.5 + 2.0**-24], [1.0, 2.0], Sameness.ROUNDING),
        ([1.0, 0.5], [1.0, 2.0 + 2.0**-22], Sameness.ROUNDING),
        ([1.0, 0.4], [1.0, 2.0], Sameness.CHANGED),
        ([1.0, 0.5], [1.0, 2.001], Sameness.CHANGED),
        ([1.0], [1.0, 2.0], Sameness.CHANGED),
        ([1.0, 0.5], [1.0], Sameness.CHANGED),
        ([1.0, 0.5], [1.0, float("nan")], Sameness.CHANGED),
    ],
)
def test_differences_of_values(tmp_path: Path, losses: list[float], parameter: list[float], expected: Sameness) -> None:
    before = save(tmp_path / "a", [1.0, 0.5], p=torch.tensor([1.0, 2.0]))
    after = save(tmp_path / "b", losses, p=torch.tensor(parameter))
    assert difference(before, after).sameness is expected


def test_what_is_not_a_number_stays_the_same(tmp_path: Path) -> None:
    nan = float("nan")
    files = [save(tmp_path / name, [nan], p=torch.tensor([nan, 1.0])) for name in "ab"]
    assert difference(*files).sameness is Sameness.EQUAL


def test_unsteady_programs_are_judged_by_themselves(tmp_path: Path) -> None:
    before = save(tmp_path / "a", [1.0], p=torch.tensor([1.0]))
    again = save(tmp_path / "b", [1.1], p=torch.tensor([1.1]))
    steady = difference(before, again)
    assert steady.sameness is Sameness.CHANGED
    near, far = save(tmp_path / "c", [0.9], p=torch.tensor([1.15])), save(tmp_path / "d", [1.0], p=torch.tensor([3.0]))
    assert difference(before, near, steady).sameness is Sameness.AS_UNSTEADY
    assert difference(before, far, steady).sameness is Sameness.CHANGED


def test_runs_that_a_clock_ended(tmp_path: Path) -> None:
    before = save(tmp_path / "a", [1.0, 0.5, 0.2], p=torch.tensor([1.0]))
    after = save(tmp_path / "b", [1.0, 0.5], p=torch.tensor([7.0]))
    found = difference(before, after, whole=False)
    assert (found.sameness, found.parameters) == (Sameness.EQUAL, None)
    assert "first 2 losses" in found.note


def test_nothing_to_compare(tmp_path: Path) -> None:
    empty = save(tmp_path / "a", [])
    assert difference(empty, empty).sameness is Sameness.UNKNOWN
    assert difference(empty, tmp_path / "none").sameness is Sameness.UNKNOWN


def test_halves_may_differ_by_their_last_places(tmp_path: Path) -> None:
    before = save(tmp_path / "a", [1.0], p=torch.tensor([1.0], dtype=torch.bfloat16))
    near = save(tmp_path / "b", [1.0], p=torch.tensor([1.0 + 2.0**-7], dtype=torch.bfloat16))
    far = save(tmp_path / "c", [1.0], p=torch.tensor([1.5], dtype=torch.bfloat16))
    assert difference(before, near).sameness is Sameness.ROUNDING
    assert difference(before, far).sameness is Sameness.CHANGED

"""Two runs against each other: bytes, growth, time, losses and parameters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchmemlint.runtime.growth import NO_GROWTH, Growth
from torchmemlint.runtime.results import RunResult
from torchmemlint.runtime.verification import Comparison, Difference, Figures, Sameness

SMALLEST_BLOCK = 512
"""Bytes of the CUDA allocator's smallest block: a peak that falls by less is the same peak."""
RESERVED = 2 << 20
"""Bytes by which what the allocator reserves must fall to count: its smallest segment..."""
RESERVED_SHARE = 0.02
"""... and the share of it, because a model of the allocator is no better than that."""
HOST_NOISE = 1024.0
"""Bytes per step by which the heap of two equal programs may grow differently."""
HOST_FIT = 0.98
"""How straight the growth of a heap must be: it also grows in leaps, as tables in it do."""
_ROUNDING = {"torch.float64": 64.0, "torch.float32": 64.0}
"""How many units in the last place two results may differ and still be one; for shorter types, `_SHORT`."""
_SHORT = 4.0
_SEVERITY = (Sameness.UNKNOWN, Sameness.EQUAL, Sameness.ROUNDING, Sameness.AS_UNSTEADY, Sameness.CHANGED)
_UNSTEADY = 2.0
"""How many times as different as two runs of the same program a run of another may be."""


# --- bytes and time


def compare(
    before: RunResult,
    after: RunResult,
    difference: Difference,
    *,
    plain_before: RunResult | None = None,
    plain_after: RunResult | None = None,
) -> Comparison:
    """The program as it is and with a fix. The plain runs, if both are there, give time and the host's growth.

    Where a program cannot run plainly, on a simulated device, the host's growth is that of the tracked runs. Of
    several processes or devices, the one that the fix saves most is told.
    """
    later = {face.place: face for face in after.faces}
    found = []
    for face in before.faces:
        if face.place in later:
            rank_before, rank_after = _of_rank(plain_before, face.rank), _of_rank(plain_after, face.rank)
            compared = _compare(face, later[face.place], difference, rank_before, rank_after)
            found.append(replace(compared, place=face.place))
    if not found:
        return _compare(before, after, difference, plain_before, plain_after)
    return max(found, key=_worth)


def _of_rank(run: RunResult | None, rank: int | None) -> RunResult | None:
    ranks = () if run is None else run.ranks
    return next((one for one in ranks if one.rank == rank), run)


def _worth(compared: Comparison) -> tuple[bool, float, float, int, int]:
    """Orders comparisons: by what is saved, else by the peak."""
    before, after = compared.before.peak_reserved or 0, compared.after.peak_reserved or 0
    return saves(compared), compared.peak_saved, compared.growth_saved, before - after, compared.before.peak


def _compare(
    before: RunResult,
    after: RunResult,
    difference: Difference,
    plain_before: RunResult | None,
    plain_after: RunResult | None,
) -> Comparison:
    series, growth_before, growth_after = _growths(before, after)
    plain = plain_before is not None and plain_after is not None
    return Comparison(
        _figures(before, growth_before, plain_before if plain else None),
        _figures(after, growth_after, plain_after if plain else None),
        series,
        difference,
        _peak_within(before, after),
    )


def _figures(run: RunResult, growth: Growth, plain: RunResult | None) -> Figures:
    timed = plain if plain is not None else run
    heap = plain if plain is not None else run if run.simulated else None
    host = heap.host_growth if heap is not None and heap.host_measured else None
    return Figures(run.peak, run.peak_reserved, growth, timed.seconds_per_step, timed.tracked, host)


def saves(comparison: Comparison) -> bool:
    """Whether bytes are saved: at the peak, or with each step, on the device or the host."""
    return bool(saved_where(comparison))


def saved_where(comparison: Comparison) -> tuple[str, ...]:
    """What falls, most telling first: `peak`, `growth`, `reserved`, `host`."""
    falls = {
        "peak": comparison.peak_saved >= SMALLEST_BLOCK,
        "growth": _falls(comparison),
        "reserved": _reserved_falls(comparison),
        "host": host_falls(comparison),
    }
    return tuple(name for name, true in falls.items() if true)


def steadily(growth: Growth) -> bool:
    """Whether a heap grows steadily."""
    return growth.certain and growth.fit >= HOST_FIT


def _reserved_falls(comparison: Comparison) -> bool:
    before, after = comparison.before.peak_reserved, comparison.after.peak_reserved
    if before is None or after is None:
        return False
    return before - after >= max(RESERVED, RESERVED_SHARE * before)


def _falls(comparison: Comparison) -> bool:
    before, after = comparison.before.growth, comparison.after.growth
    if not before.certain or comparison.growth_saved <= 0:
        return False
    # Two straight lines differ by what they differ by; of others a small difference says nothing.
    straight = before.fit > 0.999 and (not after.certain or after.fit > 0.999)
    return straight or comparison.growth_saved > 0.1 * before.bytes_per_step


def host_falls(comparison: Comparison) -> bool:
    """Whether the host's heap grows less, and not by chance."""
    before = comparison.before.host_growth
    if before is None or not steadily(before):
        return False
    return comparison.host_growth_saved > max(HOST_NOISE, 0.25 * before.bytes_per_step)


def _growths(before: RunResult, after: RunResult) -> tuple[str, Growth, Growth]:
    """The series whose growth falls most; where none does, the steepest."""
    names = _pairs(before, after)
    later = {one.series: one.growth for one in after.growth}
    best: tuple[float, str, Growth, Growth] | None = None
    for one in before.growth:
        if one.inside or not one.growth.certain:
            continue
        held = later.get(names.get(one.series, one.series), NO_GROWTH)
        fall = one.growth.bytes_per_step - held.certain_bytes
        if best is None or fall > best[0]:
            best = fall, one.series, one.growth, held
    if best is not None and best[0] > 0:
        return best[1:]
    steepest = before.steepest
    if steepest is not None:
        return steepest.series, steepest.growth, later.get(names.get(steepest.series, steepest.series), NO_GROWTH)
    risen = after.steepest
    return ("", NO_GROWTH, risen.growth) if risen is not None else ("", NO_GROWTH, NO_GROWTH)


def _pairs(before: RunResult, after: RunResult) -> dict[str, str]:
    """The loops of a run by those of the run before, though a fix has moved their lines."""
    pairs: dict[str, str] = {}
    for path in {loop.path for loop in before.loops}:
        old = sorted(loop.line for loop in before.loops if loop.path == path)
        new = sorted(loop.line for loop in after.loops if loop.path == path)
        if len(old) == len(new):
            pairs |= {f"loop {path}:{one}": f"loop {path}:{other}" for one, other in zip(old, new, strict=True)}
    return pairs


def _peak_within(before: RunResult, after: RunResult) -> tuple[str, int, int] | None:
    """The loop whose own peak falls most, where that of the run does not: an evaluation beside a larger training."""
    if before.peak - after.peak >= SMALLEST_BLOCK:
        return None
    names = _pairs(before, after)
    later = {f"loop {loop.path}:{loop.line}": loop.peak for loop in after.loops}
    best: tuple[str, int, int] | None = None
    for loop in before.loops:
        name = f"loop {loop.path}:{loop.line}"
        new = later.get(names.get(name, name))
        if loop.peak is None or new is None or loop.peak - new < SMALLEST_BLOCK:
            continue
        if best is None or loop.peak - new > best[1] - best[2]:
            best = name, loop.peak, new
    return best


# --- values


def _torch() -> Any:
    """Torch, without what it says about a missing NumPy as it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
    return torch


def differences(
    before: Mapping[str, Path], after: Mapping[str, Path], steady: Difference | None = None, *, whole: bool = True
) -> Difference:
    """The same of several processes: the worst of theirs, with the largest differences of any."""
    if before.keys() != after.keys():
        return Difference(Sameness.UNKNOWN, note="not the same processes wrote down their results")
    each = [difference(before[name], after[name], steady, whole=whole) for name in before]
    known = [one for one in each if one.sameness is not Sameness.UNKNOWN] or each
    worst = max(known, key=lambda one: _SEVERITY.index(one.sameness))
    largest = {
        name: max(filter(None, (getattr(one, name) for one in known)), default=getattr(worst, name))
        for name in ("losses", "parameters", "largest_loss")
    }
    return replace(worst, **largest)


def difference(before: Path, after: Path, steady: Difference | None = None, *, whole: bool = True) -> Difference:
    """The losses and parameters of two runs, from the files that `values.py` writes.

    `steady` is the difference of two runs of the same program: another may be as different as these. Where one was
    ended by a clock (not `whole`), only the losses that both have are compared.
    """
    torch = _torch()
    if not before.exists() or not after.exists():
        return Difference(Sameness.UNKNOWN, note="nothing was recorded")
    first: Mapping[str, Any] = torch.load(before, weights_only=True)
    second: Mapping[str, Any] = torch.load(after, weights_only=True)
    if not whole:
        return _common_losses(first["losses"], second["losses"], steady)
    losses, losses_agree = _losses(first["losses"], second["losses"])
    parameters, parameters_agree = _parameters(first["parameters"], second["parameters"])
    if losses is None and parameters is None:
        return Difference(Sameness.UNKNOWN, note="the program has neither losses nor optimizers")
    note = "parameters too large to keep: only losses were compared" if first["too_large"] else ""
    found = (losses, parameters)
    scale = _scale([*first["losses"], *second["losses"]])
    if losses_agree is Sameness.EQUAL and parameters_agree is Sameness.EQUAL:
        return Difference(Sameness.EQUAL, losses, parameters, scale, note)
    if len(first["losses"]) != len(second["losses"]):
        note = f"{len(first['losses'])} backward passes before, {len(second['losses'])} after"
        return Difference(Sameness.CHANGED, losses, parameters, scale, note)
    if Sameness.CHANGED not in (losses_agree, parameters_agree):
        return Difference(Sameness.ROUNDING, losses, parameters, scale, note)
    if steady is not None and _as_unsteady(found, (steady.losses, steady.parameters)):
        return Difference(Sameness.AS_UNSTEADY, losses, parameters, scale, note)
    return Difference(Sameness.CHANGED, losses, parameters, scale, note)


def _common_losses(first: Sequence[float], second: Sequence[float], steady: Difference | None) -> Difference:
    count = min(len(first), len(second))
    note = f"a time limit ended a run: only the first {count} losses were compared"
    losses, agree = _losses(first[:count], second[:count])
    if losses is None:
        return Difference(Sameness.UNKNOWN, note=note)
    if agree is Sameness.CHANGED and steady is not None and _as_unsteady((losses,), (steady.losses,)):
        agree = Sameness.AS_UNSTEADY
    return Difference(agree, losses, None, _scale([*first, *second]), note)


def _as_unsteady(found: tuple[float | None, ...], steady: tuple[float | None, ...]) -> bool:
    return any(one for one in steady) and all(
        (one or 0.0) <= _UNSTEADY * (other or 0.0) for one, other in zip(found, steady, strict=True)
    )


def _scale(losses: Sequence[float]) -> float | None:
    """The largest loss that is a number."""
    return max((abs(one) for one in losses if math.isfinite(one)), default=None)


def _losses(first: Sequence[float], second: Sequence[float]) -> tuple[float | None, Sameness]:
    if not first and not second:
        return None, Sameness.EQUAL
    if list(map(repr, first)) == list(map(repr, second)):  # not a number equals itself here
        return 0.0, Sameness.EQUAL
    pairs = [(one, other) for one, other in zip(first, second, strict=False) if one != other]
    largest = max((abs(one - other) for one, other in pairs), default=0.0)
    tolerance = _ROUNDING["torch.float32"] * 2.0**-23 * (_scale([*first, *second]) or 0.0)
    near = len(first) == len(second) and largest <= tolerance
    return largest, Sameness.ROUNDING if near else Sameness.CHANGED


def _parameters(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[float | None, Sameness]:
    torch = _torch()
    if not first and not second:
        return None, Sameness.EQUAL
    agree = Sameness.EQUAL if first.keys() == second.keys() else Sameness.CHANGED
    largest = 0.0
    for name in first.keys() & second.keys():
        one, other = first[name], second[name]
        if one.shape != other.shape or one.dtype != other.dtype:
            agree = Sameness.CHANGED
            continue
        if torch.equal(one, other) or not one.numel():
            continue
        first_values, second_values = one.double(), other.double()
        if torch.allclose(first_values, second_values, rtol=0.0, atol=0.0, equal_nan=True):
            continue
        apart = (first_values - second_values).abs().max().item()
        largest = max(largest, apart if not math.isnan(apart) else math.inf)
        units = _ROUNDING.get(str(one.dtype), _SHORT)
        if one.is_floating_point() and apart <= units * torch.finfo(one.dtype).eps * first_values.abs().max().item():
            agree = Sameness.ROUNDING if agree is Sameness.EQUAL else agree
        else:
            agree = Sameness.CHANGED
    return largest, agree

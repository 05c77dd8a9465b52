"""The tables of docs/accuracy.md. They are made of `docs/accuracy.json` (`tools/accuracy.py`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.json"
FIGURES = ("peak", "allocated", "reserved")
MIB = 2**20
CARD_MIB = 40_335
"""What an A100 with 40 GB has for torch (docs/simulated.md). A training that needs more ran out of memory on it."""


@cache
def kept() -> dict[str, Any]:
    """What was measured and simulated last."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


def off(simulated: float, measured: float) -> float:
    """By how much of the measured bytes the simulated ones are too many."""
    return (simulated - measured) / measured


def snapshots() -> str:
    """Each snapshot's totals, and how far the simulated card is from them."""
    data = kept()
    lines = [
        f"torch {data['torch']}, simulated on {data['date']}. MiB of the snapshot, and how far the simulated are off.",
        "",
        "| pass, tokens | bfloat16 | peak | error | at the end | error | reserved | error |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, one in data["snapshots"].items():
        cells = [name, "autocast" if one["autocast"] else "no"]
        for figure in FIGURES:
            simulated, measured = one["simulated"][figure], one["measured"][figure]
            same = simulated == measured
            cells += [f"{measured / MIB:,.1f}", "none" if same else f"{off(simulated, measured):+.2%}"]
        lines.append(f"| {' | '.join(cells)} |")
    worst = {
        figure: max(abs(off(one["simulated"][figure], one["measured"][figure])) for one in data["snapshots"].values())
        for figure in FIGURES
    }
    told = ", ".join(f"{figure} {worst[figure]:.2%}" for figure in FIGURES)
    return "\n" + "\n".join(lines) + f"\n\nThe largest errors: {told}.\n\n"


def that_ran() -> list[dict[str, Any]]:
    """The models of the sample that the simulated card ran, and that fit the card they were measured on."""
    return [one for one in kept()["gpumemnet"]["sample"] if "error" not in one and one["reserved"] <= CARD_MIB * MIB]


def errors() -> tuple[float, list[tuple[float, dict[str, Any]]]]:
    """The MiB that are added for context and cuDNN, and the error of each model they were not taken from.

    The first half of the sample gives the constant, the second half is judged by it.
    """
    ran = that_ran()
    half = len(ran) // 2
    constant = median(one["used_mib"] - one["reserved"] / MIB for one in ran[:half])
    return constant, [(off(one["reserved"] / MIB + constant, one["used_mib"]), one) for one in ran[half:]]


def models() -> str:
    """How far the simulated card is from GPUMemNet's table."""
    data = kept()["gpumemnet"]
    sample = data["sample"]
    unknown = [one for one in sample if one.get("error", "").startswith("RuntimeError: Unknown model")]
    failed = [one for one in sample if "error" in one and one not in unknown]
    constant, judged = errors()
    sizes = sorted(abs(error) for error, _ in judged)
    tenth = quantiles(sizes, n=10)[-1]
    givers = len(that_ran()) - len(judged)
    large = [one for one in sample if "error" not in one and one not in that_ran()]
    full = sum(one["used_mib"] > 0.9 * CARD_MIB for one in large)
    low = sum(error < 0 for error, _ in judged)
    lines = [
        f"timm {data['timm']}, torch {data['torch']}, simulated on {data['date']}.",
        "",
        "| | is | aim |",
        "|---|--:|--:|",
        f"| models drawn, of {data['models']:,} | {len(sample)} | 200 |",
        f"| that timm no longer has | {len(unknown)} | |",
        f"| that do not run on the simulated card | {len(failed)} | 0 |",
        f"| simulated to need more than the card has, so left out | {len(large)} | |",
        f"| of these, the card was at least nine tenths full | {full} | |",
        f"| constant for context and cuDNN, from the first {givers} that fit | {constant:,.0f} MiB | |",
        f"| models judged with it | {len(judged)} | |",
        f"| median error | {median(sizes):.1%} | 5% |",
        f"| error of nine in ten at most | {tenth:.1%} | 12% |",
        f"| largest error | {sizes[-1]:.1%} | |",
        f"| simulated too low (as a limit, these would run out of memory) | {low / len(judged):.0%} | 5% |",
        f"| too low by more than 5% | {sum(error < -0.05 for error, _ in judged) / len(judged):.0%} | |",
    ]
    wrong = sorted(judged, key=lambda pair: -abs(pair[0]))[:5]
    rows = []
    for error, one in wrong:
        simulated = one["reserved"] / MIB + constant
        rows.append(f"| `{one['model']}` | {one['batch']} | {one['used_mib']:,} | {simulated:,.0f} | {error:+.1%} |")
    head = ["| the furthest off | batch | MiB in use | simulated | error |", "|---|--:|--:|--:|--:|"]
    return "\n" + "\n".join([*lines, "", *head, *rows]) + "\n\n"


MAKERS: dict[str, Callable[[], str]] = {"accuracy-snapshots": snapshots, "accuracy-models": models}

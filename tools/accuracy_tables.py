"""The tables of docs/accuracy.md. They are made of `docs/accuracy.json` (`tools/accuracy.py`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from math import ceil
from pathlib import Path
from statistics import median, quantiles
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.json"
FIGURES = ("peak", "allocated", "reserved")
MIB = 2**20
CLASSES = 1000
"""ImageNet's. With its labels, a model that gives fewer scores ends at its first loss, which is no training."""
RISK = 0.05
"""The share of models for which a limit may be too low."""
CONTEXT_MIB = 420e6 / MIB
"""What `fit` counts for a CUDA context (`simulated/cards.py`)."""
MARGIN = 0.18, 1536.0
"""What docs/fit.md says to count besides: a share of what is reserved, and MiB."""
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


def halves() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The models that give the figures, and those that are judged by them, told apart by a hash of their names."""
    ran = [one for one in that_ran() if one["scores"] >= CLASSES]
    judged = [one for one in ran if sha256(one["model"].encode()).digest()[-1] % 2]
    return [one for one in ran if one not in judged], judged


def constant_of(givers: list[dict[str, Any]]) -> float:
    """The MiB that are added for context and cuDNN: half of the models need no more."""
    return median(one["used_mib"] - one["reserved"] / MIB for one in givers)


def share_of(givers: list[dict[str, Any]], constant: float) -> float:
    """The share of what is reserved that is added besides: all but `RISK` need no more.

    The quantile is that of conformal prediction: of n models, the one at place (n + 1) (1 - `RISK`), rounded up.
    """
    needed = sorted((one["used_mib"] - constant) / (one["reserved"] / MIB) - 1 for one in givers)
    return needed[min(ceil((1 - RISK) * (len(needed) + 1)), len(needed)) - 1]


def errors(judged: list[dict[str, Any]], constant: float, margin: float = 0.0) -> list[tuple[float, dict[str, Any]]]:
    """The error of each model, with a constant in MiB and a share of what is reserved added."""
    return [(off(one["reserved"] / MIB * (1 + margin) + constant, one["used_mib"]), one) for one in judged]


def share(errors: list[float]) -> float:
    """The share of them that are too low."""
    return sum(error < 0 for error in errors) / len(errors)


def models() -> str:
    """How far the simulated card is from GPUMemNet's table."""
    data = kept()["gpumemnet"]
    sample = data["sample"]
    unknown = [one for one in sample if one.get("error", "").startswith("RuntimeError: Unknown model")]
    failed = [one for one in sample if "error" in one and one not in unknown]
    givers, rest = halves()
    constant = constant_of(givers)
    margin = share_of(givers, constant)
    judged = errors(rest, constant)
    limited = [error for error, _ in errors(rest, constant, margin)]
    offered = [error for error, _ in errors(rest, CONTEXT_MIB + MARGIN[1], MARGIN[0])]
    other = constant_of(rest)
    swapped = [error for error, _ in errors(givers, other, share_of(rest, other))]
    narrow = sum(one["scores"] < CLASSES for one in that_ran())
    sizes = sorted(abs(error) for error, _ in judged)
    tenth = quantiles(sizes, n=10)[-1]
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
        f"| with fewer scores than the labels need, so left out | {narrow} | |",
        f"| constant for context and cuDNN: the median of {len(givers)} | {constant:,.0f} MiB | |",
        f"| models judged with it, none of them among these | {len(judged)} | |",
        f"| median error | {median(sizes):.1%} | 5% |",
        f"| error of nine in ten at most | {tenth:.1%} | 12% |",
        f"| largest error | {sizes[-1]:.1%} | |",
        f"| simulated too low | {low / len(judged):.0%} | |",
        f"| too low by more than 5% | {sum(error < -0.05 for error, _ in judged) / len(judged):.0%} | |",
        f"| limit: that constant, and a share of what is reserved | {margin:.1%} | |",
        f"| too low as a limit (these would run out of memory) | {share(limited):.1%} | {RISK:.0%} |",
        f"| median error of the limit | {median(map(abs, limited)):.1%} | |",
        f"| the halves exchanged: too low as a limit | {share(swapped):.1%} | {RISK:.0%} |",
        f"| `fit --margin {MARGIN[0]:.0%}+{MARGIN[1] / 1024:g}GiB`: too low | {share(offered):.1%} | {RISK:.0%} |",
        f"| its median error | {median(map(abs, offered)):.1%} | |",
    ]
    wrong = sorted(judged, key=lambda pair: -abs(pair[0]))[:5]
    rows = []
    for error, one in wrong:
        simulated = one["reserved"] / MIB + constant
        rows.append(f"| `{one['model']}` | {one['batch']} | {one['used_mib']:,} | {simulated:,.0f} | {error:+.1%} |")
    head = ["| the furthest off | batch | MiB in use | simulated | error |", "|---|--:|--:|--:|--:|"]
    return "\n" + "\n".join([*lines, "", *head, *rows]) + "\n\n"


def missing(runs: dict[str, dict[str, Any]], but: str) -> float:
    """The MiB in use that the simulation lacks: the median of the trainings, without one of them."""
    return median(
        one["measured_mib"] - one["simulated_mib"] for name, one in runs.items() if name not in ("weights", but)
    )


def notebooks() -> str:
    """How far the simulated card is from the notebooks that fine-tune BERT-large."""
    data = kept()["notebooks"]
    runs = data["runs"]
    lines = [
        f"torch {data['torch']}, simulated on {data['date']}. MiB.",
        "",
        "| run | notebook | in use | without a context | simulated | error | lacks | error with what the others lack |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, one in runs.items():
        measured, simulated = one["measured_mib"], one["simulated_mib"]
        with_it = "" if name == "weights" else f"{off(simulated + missing(runs, name), measured):+.1%}"
        figures = [f"{figure:,}" for figure in (one["used_mib"], measured, simulated)]
        lacks = f"{measured - simulated:,}"
        cells = [name, str(one["notebook"]), *figures, f"{off(simulated, measured):+.1%}", lacks, with_it]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n" + "\n".join(lines) + "\n\n"


MAKERS: dict[str, Callable[[], str]] = {
    "accuracy-snapshots": snapshots,
    "accuracy-notebooks": notebooks,
    "accuracy-models": models,
}

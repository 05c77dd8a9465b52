"""The places about what a GPU gave. They are made of `docs/gpu.json` (`tools/gpu.py`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "docs" / "gpu.json"
FIGURES = ("tensors", "allocated", "reserved")
NEAR = 0.01
"""By how much the bytes that `trace` gives may miss what was worked out, as in the tests."""


@cache
def kept() -> dict[str, Any]:
    """The last run."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


def where() -> str:
    """The machine, torch and the date."""
    run = kept()
    return f"{run['card']}, torch {run['torch']}, {run['machine']}, {run['date']}"


def peaks() -> str:
    """The programs' peaks on a GPU and simulated."""
    programs = kept()["peaks"]
    same = [name for name, one in programs.items() if one["simulated"] == one["cuda"]]
    head = " | ".join(f"{figure}: simulated | GPU" for figure in FIGURES)
    lines = [
        f"{where()}; simulated with the same torch on {kept()['simulated']}, as that card. In bytes, at the peak.",
        "",
        f"| program | {head} |",
        "|---|" + "--:|--:|" * len(FIGURES),
    ]
    for name, one in programs.items():
        if name not in same:
            cells = (f"{one[backend][figure]:,}" for figure in FIGURES for backend in ("simulated", "cuda"))
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n" + "\n".join(lines) + f"\n\nThe other {len(same)} of {len(programs)} have the same on both.\n\n"


def traced() -> str:
    """What `trace` said of the scripts on a GPU."""
    told = {name: one for name, one in kept()["traced"].items() if "error" not in one}
    leaking = [one for one in told.values() if one["wanted"]]
    clean = [one for one in told.values() if not one["wanted"]]
    right = [
        one
        for one in leaking
        if one["found"]
        and one["found"]["line"] == one["wanted"]["line"]
        and abs(one["found"]["bytes"] - one["wanted"]["bytes"]) <= NEAR * one["wanted"]["bytes"]
    ]
    silent = [one for one in clean if not one["found"]]
    failed = [f"`{name}`" for name in kept()["traced"] if name not in told]
    not_run = f" Not measured there: {', '.join(failed)}." if failed else ""
    return (
        f"\nOn a GPU ({where()}), of {len(leaking)} leaking ones {len(right)} had the line and its bytes named "
        f"first, and of {len(clean)} others {len(silent)} had nothing reported.{not_run}\n\n"
    )


MAKERS: dict[str, Callable[[], str]] = {"gpu-peaks": peaks, "gpu-traced": traced}

"""The tables of a run of `benchmarks/speed.py`, kept in `docs/benchmark.json`.

The file holds what the tables need of `speed.py --json`: of each tool's runs the number, the least, median and greatest
time, and the medians of memory.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KEPT = Path(__file__).resolve().parent.parent / "docs" / "benchmark.json"
MB = 1_000_000
HEAD = (
    "| tool | runs | seconds | least to most | to torchmemlint | to ast.parse | MB, one process | MB, all |",
    "|---|--:|--:|--:|--:|--:|--:|--:|",
)


def keep(measured: dict[str, Any]) -> None:
    """Put what `speed.py --json` printed in place of what is kept."""
    for tree in measured["trees"]:
        tree["tools"] = [_summary(tool) for tool in tree["tools"]]
    KEPT.write_text(json.dumps(measured, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _summary(tool: dict[str, Any]) -> dict[str, Any]:
    runs = tool["runs"]
    seconds = [run["seconds"] for run in runs]
    return {
        "name": tool["name"],
        "version": tool["version"],
        "runs": len(runs),
        "seconds": [min(seconds), statistics.median(seconds), max(seconds)],
        "process_peak": statistics.median(run["process_peak"] for run in runs),
        "total_peak": statistics.median(run["total_peak"] for run in runs),
    }


def tables() -> str:
    """Where and when it was run, and a table for each source tree."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    machine = kept["machine"]
    parts = [
        f"{machine['date']} · {machine['cpu']}, {machine['cpus']} CPUs, {machine['memory_bytes'] / MB / 1000:.0f} GB · "
        f"{machine['system']} · Python {machine['python']} · load {machine['load']} at the start"
    ]
    for tree in kept["trees"]:
        parts.append(f"### {tree['name']}: {tree['files']:,} files, {tree['bytes'] / MB:.1f} MB")
        parts.append("\n".join((*HEAD, *_lines(tree["tools"]))))
    return "\n" + "\n\n".join(parts) + "\n\n"


def _lines(tools: list[dict[str, Any]]) -> Iterator[str]:
    medians = {tool["name"]: tool["seconds"][1] for tool in tools}
    for tool in tools:
        least, median, most = tool["seconds"]
        ratios = (f"{median / medians[base]:.2f}" if base in medians else "-" for base in ("torchmemlint", "ast.parse"))
        cells = (
            f"{tool['name']} {tool['version']}",
            str(tool["runs"]),
            f"{median:.2f}",
            f"{least:.2f} to {most:.2f}",
            *ratios,
            f"{tool['process_peak'] / MB:.0f}",
            f"{tool['total_peak'] / MB:.0f}",
        )
        yield f"| {' | '.join(cells)} |"

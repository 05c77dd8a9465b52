"""How fast the linter is on real trees, against its rivals and against parsing alone, all in one run.

Downloads the packages' source distributions, makes environments for the rivals, runs the tools in turn (a busy
minute then hurts all of them), and prints a Markdown table of medians with ratios. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from measure import Measurement, machine, measure
from trees import Tree, fetch

from tools import DEFAULT_RULES, Tool, ours, parsing, preflight, torchfix

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "torchmemlint-benchmarks"
TOOLS = ("torchmemlint", DEFAULT_RULES, "ast.parse", "torch-preflight", "torchfix")
MB = 1_000_000


def chosen(names: Sequence[str], venvs: Path, repetitions: int, rival_repetitions: int) -> list[Tool]:
    """The tools asked for, ready to run."""
    makers = {
        "torchmemlint": lambda: ours(repetitions),
        DEFAULT_RULES: lambda: ours(repetitions, all_rules=False),
        "ast.parse": lambda: parsing(repetitions),
        "torch-preflight": lambda: preflight(venvs, rival_repetitions),
        "torchfix": lambda: torchfix(venvs, rival_repetitions),
    }
    return [makers[name]() for name in TOOLS if name in names]


def race(tree: Tree, tools: Sequence[Tool], scratch: Path) -> dict[str, list[Measurement]]:
    """Every tool on one tree, in turn, until each has had its repetitions."""
    found: dict[str, list[Measurement]] = {tool.name: [] for tool in tools}
    for repetition in range(max(tool.repetitions for tool in tools)):
        for tool in tools:
            if repetition < tool.repetitions:
                result = measure(tool.command(tree, scratch), tool.statuses)
                print(f"{tree.name}: {tool.name}: {result.seconds:.2f} s", file=sys.stderr, flush=True)
                found[tool.name].append(result)
    return found


def table(tree: Tree, tools: Sequence[Tool], found: dict[str, list[Measurement]]) -> str:
    """The medians, and each tool's time as a multiple of ours and of parsing's."""
    seconds = {name: statistics.median(one.seconds for one in runs) for name, runs in found.items()}

    def ratio(name: str, base: str) -> str:
        return f"{seconds[name] / seconds[base]:.2f}" if base in seconds else "-"

    lines = [
        f"### {tree.name}: {len(tree.files):,} files, {tree.size / MB:.1f} MB",
        "",
        "| tool | runs | seconds | least to most | to torchmemlint | to ast.parse | MB, one process | MB, all |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for tool in tools:
        runs = found[tool.name]
        times = [one.seconds for one in runs]
        cells = (
            f"{tool.name} {tool.version}",
            str(len(runs)),
            f"{seconds[tool.name]:.2f}",
            f"{min(times):.2f} to {max(times):.2f}",
            ratio(tool.name, "torchmemlint"),
            ratio(tool.name, "ast.parse"),
            f"{statistics.median(one.process_peak for one in runs) / MB:.0f}",
            f"{statistics.median(one.total_peak for one in runs) / MB:.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def same_files(tree: Tree) -> str | None:
    """What the linter would leave out of a tree or add to it: then the times are not for the same work."""
    program = str(Path(sys.executable).parent / "torchmemlint")
    command = [program, "check", "--show-files", "--isolated", str(tree.root)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    theirs, ours_ = {file.resolve() for file in tree.files}, {Path(line).resolve() for line in shown}
    if theirs == ours_:
        return None
    return f"{tree.name}: torchmemlint leaves out {len(theirs - ours_)} files and adds {len(ours_ - theirs)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "packages", nargs="*", default=["timm", "transformers"], help="packages, pinned ones, or folders"
    )
    parser.add_argument("--tools", default=",".join(TOOLS), help=f"of {', '.join(TOOLS)}; comma-separated")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of torchmemlint and of ast.parse (default 3)")
    parser.add_argument("--rival-repetitions", type=int, default=1, help="runs of each rival (default 1)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where downloads are kept (default %(default)s)")
    parser.add_argument("--venvs", type=Path, help="where the rivals' environments are kept (default in the cache)")
    parser.add_argument("--json", action="store_true", help="print every measurement as JSON instead of the table")
    options = parser.parse_args()
    names = [name.strip() for name in options.tools.split(",")]
    unknown = [name for name in names if name not in TOOLS]
    if unknown:
        parser.error(f"no such tool: {', '.join(unknown)}; there are {', '.join(TOOLS)}")
    if options.repetitions < 1 or options.rival_repetitions < 1:
        parser.error("repetitions begin at 1")
    options.cache.mkdir(parents=True, exist_ok=True)
    tools = chosen(names, options.venvs or options.cache / "venvs", options.repetitions, options.rival_repetitions)
    where = machine()
    results: list[tuple[Tree, dict[str, list[Measurement]]]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for package in options.packages:
            tree = fetch(package, options.cache)
            problem = same_files(tree) if "torchmemlint" in names else None
            if problem is not None:
                print(f"note: {problem}", file=sys.stderr)
            results.append((tree, race(tree, tools, Path(scratch))))
    if options.json:
        print(json.dumps({"machine": where, "trees": [_as_object(*result, tools) for result in results]}, indent=2))
        return 0
    print(
        f"{where['date']} · {where['cpu']}, {where['cpus']} CPUs, {where['memory_bytes'] / MB / 1000:.0f} GB · "
        f"{where['system']} · Python {where['python']} · load {where['load']} at the start"
    )
    for tree, found in results:
        print()
        print(table(tree, tools, found))
    return 0


def _as_object(tree: Tree, found: dict[str, list[Measurement]], tools: Sequence[Tool]) -> dict[str, Any]:
    versions = {tool.name: tool.version for tool in tools}
    return {
        "name": tree.name,
        "files": len(tree.files),
        "bytes": tree.size,
        "tools": [
            {"name": name, "version": versions[name], "runs": [asdict(run) for run in runs]}
            for name, runs in found.items()
        ],
    }


if __name__ == "__main__":
    sys.exit(main())

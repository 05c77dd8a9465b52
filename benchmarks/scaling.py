"""How the linter's time grows: with the files, with the processes, with what is known from the run before.

One run measures, in turn and on one tree: a check from nothing in one process and in two; the same of one, two, four
and eight copies of the tree; a check of which a single file has changed since; one that finds all its answers in the
cache; and `--version`. The rules are those that are on by default. What a fresh process takes to read and `ast.parse`
the tree is the yardstick. Linux only.

    python benchmarks/scaling.py path/to/timm-1.0.31
    python benchmarks/scaling.py timm --copies 1,2 --repetitions 5 --json

Copies are folders side by side under one root, so that the project grows as well, and names are looked for in all of
it. On a machine with other work, read the column of processor time: waiting is not in it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measure import Measurement, machine, measure
from speed import CACHE, MB
from trees import Tree, fetch, tree

_HERE = Path(__file__).parent
PROGRAM = (sys.executable, "-P", "-m", "torchmemlint")
CHECK = (*PROGRAM, "check", "--isolated", "--exit-zero", "--quiet")
YARDSTICK = "ast.parse"


@dataclass(frozen=True, slots=True)
class Case:
    """Something to measure."""

    name: str
    files: int
    command: tuple[str, ...]
    before: Callable[[], None] = lambda: None  # what is to happen before each run, and not measured


@dataclass(frozen=True, slots=True)
class Result:
    """Medians of a case."""

    name: str
    files: int
    seconds: float  # wall
    cpu: float  # seconds of processor time
    process_peak: int  # bytes resident in the largest process


def copies(source: Tree, number: int, root: Path) -> Tree:
    """A folder with so many copies of a tree's Python files, and nothing else."""
    for copy in range(number):
        for file in source.files:
            target = root / f"copy{copy}" / file.relative_to(source.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    return tree(root)


def cases(source: Tree, numbers: Sequence[int], scratch: Path) -> list[Case]:
    """All that is measured, the yardstick first."""
    names = scratch / "files.txt"
    names.write_text("".join(f"{file}\n" for file in source.files), encoding="utf-8")
    found = [
        Case(YARDSTICK, len(source.files), (sys.executable, str(_HERE / "parse_all.py"), str(names))),
        _cold("one process", source, 1),
        _cold("two processes", source, 2),
    ]
    found += [_cold(f"{number} x", copies(source, number, scratch / f"x{number}"), None) for number in numbers]
    lone = copies(source, 1, scratch / "changing")
    warm = _check(lone, "--cache-dir", str(scratch / "cache"))
    found.append(Case("one file changed", len(lone.files), warm, _changing(lone)))
    found.append(Case("warm", len(lone.files), warm))  # after it: nothing has changed since
    found.append(Case("--version", 0, (*PROGRAM, "--version")))
    return found


def _cold(name: str, of: Tree, jobs: int | None) -> Case:
    """A check from nothing, in so many processes, or in as many as the linter chooses."""
    limit = () if jobs is None else ("--jobs", str(jobs))
    return Case(name, len(of.files), _check(of, "--no-cache", *limit))


def _check(of: Tree, *options: str) -> tuple[str, ...]:
    """The command, with the tree as the project whose files are each other's context."""
    return (*CHECK, *options, "--project-root", str(of.root), str(of.root))


def _changing(of: Tree) -> Callable[[], None]:
    """What changes one file in the middle of a tree, so that its answer has to be found anew."""
    mentioning = [file for file in of.files if b"torch" in file.read_bytes()] or list(of.files)
    file = mentioning[len(mentioning) // 2]
    changes = 0

    def change() -> None:
        nonlocal changes
        changes += 1
        with file.open("a", encoding="utf-8") as text:
            text.write(f"\nCHANGED = {changes}\n")

    return change


def run(all_cases: Sequence[Case], repetitions: int) -> list[Result]:
    """The medians of all cases, which take turns; the first round is not counted: it fills caches."""
    taken: dict[str, list[Measurement]] = {case.name: [] for case in all_cases}
    for repetition in range(repetitions + 1):
        for case in all_cases:
            case.before()
            measured = measure(case.command, frozenset({0}))
            print(f"{case.name}: {measured.seconds:.2f} s, {measured.cpu:.2f} s of processor time", file=sys.stderr)
            if repetition:
                taken[case.name].append(measured)
    return [_median(case, taken[case.name]) for case in all_cases]


def _median(case: Case, runs: Sequence[Measurement]) -> Result:
    return Result(
        case.name,
        case.files,
        statistics.median(one.seconds for one in runs),
        statistics.median(one.cpu for one in runs),
        int(statistics.median(one.process_peak for one in runs)),
    )


def told(results: Sequence[Result]) -> dict[str, float]:
    """What the figures come to: multiples of the yardstick, gain of a second process, growth of the cost of a file.

    Growth is that of processor time: the more work, the more processes share it.
    """
    by_name = {one.name: one for one in results}
    one, two = by_name["one process"], by_name["two processes"]
    figures = {
        "two processes, times ast.parse": two.seconds / by_name[YARDSTICK].seconds,
        "one process / two": one.seconds / two.seconds,
    }
    grown = [result for result in results if result.name.endswith(" x")]
    for result in grown[1:]:
        each = (result.cpu / result.files) / (grown[0].cpu / grown[0].files)
        figures[f"a file, {result.name} / {grown[0].name}"] = each
    return figures


def table(results: Sequence[Result]) -> str:
    """The medians as a Markdown table, and what they come to."""
    base = next(one.seconds for one in results if one.name == YARDSTICK)
    lines = [
        "| | files | seconds | to ast.parse | processor time | ms a file | MB, largest process |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for one in results:
        each = f"{1000 * one.cpu / one.files:.1f}" if one.files else "-"
        cells = (
            one.name,
            str(one.files or "-"),
            f"{one.seconds:.2f}",
            f"{one.seconds / base:.2f}",
            f"{one.cpu:.2f}",
            each,
            f"{one.process_peak / MB:.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join((*lines, "", *(f"- {name}: {figure:.2f}" for name, figure in told(results).items())))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", nargs="?", default="timm", help="a package, a pinned one, or a folder (%(default)s)")
    parser.add_argument("--copies", default="1,2,4,8", help="how many copies of the tree (default %(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="counted runs of each (default %(default)s)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where downloads are kept (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the medians as JSON instead of the table")
    options = parser.parse_args()
    numbers = [int(number) for number in options.copies.split(",") if number.strip().isdigit()]
    if options.repetitions < 1 or not numbers or min(numbers) < 1:
        parser.error("repetitions and copies begin at 1")
    options.cache.mkdir(parents=True, exist_ok=True)
    source, where = fetch(options.package, options.cache), machine()
    with tempfile.TemporaryDirectory() as scratch:
        results = run(cases(source, numbers, Path(scratch)), options.repetitions)
    if options.json:
        print(json.dumps(_as_object(where, source, results), indent=2))
        return 0
    print(f"{where['date']} · {where['cpu']}, {where['cpus']} CPUs · Python {where['python']} · load {where['load']}")
    print(f"\n### {source.name}: {len(source.files):,} files, {source.size / MB:.1f} MB\n")
    print(table(results))
    return 0


def _as_object(where: dict[str, Any], source: Tree, results: Sequence[Result]) -> dict[str, Any]:
    return {
        "machine": where,
        "tree": {"name": source.name, "files": len(source.files), "bytes": source.size},
        "cases": [asdict(one) for one in results],
        "figures": told(results),
    }


if __name__ == "__main__":
    sys.exit(main())

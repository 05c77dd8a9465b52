"""Fails where the linter has become slower: ratios of one run, held against those on record.

The linter works on a corpus that is the same everywhere (the layers of the installed torch, a made-up project, a
training script), from nothing, from its cache, and on one file; and it starts and ends. Each cost is divided by what a
fresh process takes to read and `ast.parse` the corpus, in turn with it in the same run. A busy machine slows either, so
that the ratio stays. Cost is processor time, the least of all rounds; or, by `--instructions`, what valgrind counts,
which is the same number each time whatever else the machine does.

    python benchmarks/guard.py                    # exit status 1 where a ratio is more than 15% above the record
    python benchmarks/guard.py --instructions     # some minutes
    python benchmarks/guard.py --record           # add this run to history.json
    python benchmarks/guard.py --record --because "rules of loading follow wrappers"   # begin anew: slower on purpose

What is on record is the least ratio of each case in runs of the same kind since the last one with a reason, so that
many small losses do not pass. Kinds are told apart by how cost was taken, Python's minor version and the release of
torch, and for processor time by the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from changed import generate
from measure import machine, measure
from training_script import training_script

HISTORY = Path(__file__).parent / "history.json"
LIMIT = 1.15  # times the ratio on record
YARDSTICK = "ast.parse"
_HERE = Path(__file__).parent
_REFS = re.compile(rb"I +refs: +([\d,]+)")


@dataclass(frozen=True, slots=True)
class Kind:
    """Runs whose ratios can be compared."""

    by: str  # "instructions" or "processor time"
    python: str  # "3.11"
    torch: str  # the release whose layers are in the corpus
    processor: str  # "" where it does not matter


@dataclass(frozen=True, slots=True)
class Record:
    """A run that is kept."""

    date: str
    version: str
    kind: Kind
    ratios: dict[str, float]  # by case: cost as a multiple of the yardstick's
    because: str = ""  # why the runs before this one no longer count


def corpus(root: Path) -> list[Path]:
    """Put the files to work on below `root`; those that are to be checked, sorted."""
    spec = find_spec("torch")  # not imported: only its files are wanted
    if spec is None or spec.origin is None:
        raise SystemExit("guard.py: torch is not installed: its layers are part of the corpus")
    shutil.copytree(Path(spec.origin).parent / "nn" / "modules", root / "layers", ignore=_no_python)
    generate(root, 40)
    (root / "train.py").write_text(training_script(600), encoding="utf-8")
    return sorted(root.rglob("*.py"))


def _no_python(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".py")]


def cases(root: Path, files: Iterable[Path], scratch: Path) -> dict[str, list[str]]:
    """What is measured: the yardstick, and the linter in different circumstances."""
    names = scratch / "files.txt"
    names.write_text("".join(f"{file}\n" for file in files), encoding="utf-8")
    program = [sys.executable, "-P", "-m", "torchmemlint"]
    check = [*program, "check", "--isolated", "--exit-zero", "--jobs", "1", "--quiet", "--project-root", str(root)]
    return {
        YARDSTICK: [sys.executable, str(_HERE / "parse_all.py"), str(names)],
        "cold": [*check, "--no-cache", str(root)],
        "warm": [*check, "--cache-dir", str(scratch / "cache"), str(root)],
        "one file": [*check, "--no-cache", str(root / "train.py")],
        "--version": [*program, "--version"],
    }


def environment() -> dict[str, str]:
    """What the commands run in: the same hashes each time, and a cache, which one of the cases is about."""
    return {**os.environ, "PYTHONHASHSEED": "0", "TORCHMEMLINT_NO_CACHE": "0"}


def by_time(commands: dict[str, list[str]], rounds: int) -> dict[str, float]:
    """Seconds of processor time of each command: the least of all rounds, in which they take turns."""
    least = dict.fromkeys(commands, float("inf"))
    for _ in range(rounds):
        for name, words in commands.items():
            least[name] = min(least[name], measure(words, frozenset({0}), environment()).cpu)
    return least


def by_instructions(commands: dict[str, list[str]]) -> dict[str, float]:
    """How many instructions each command executes, as valgrind counts them. OSError or RuntimeError where it cannot."""
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    counted = {}
    for name, words in commands.items():
        done = subprocess.run([*valgrind, *words], capture_output=True, check=False, env=environment())
        found = _REFS.search(done.stderr)
        if done.returncode or found is None:
            raise RuntimeError(
                f"valgrind gave {done.returncode} on {name}: {done.stderr[-500:].decode(errors='replace')}"
            )
        counted[name] = float(found[1].replace(b",", b""))
    return counted


def ratios(costs: dict[str, float]) -> dict[str, float]:
    """Costs as multiples of the yardstick's."""
    return {name: round(cost / costs[YARDSTICK], 3) for name, cost in costs.items() if name != YARDSTICK}


def on_record(history: Sequence[Record], kind: Kind) -> dict[str, float]:
    """The least ratio of each case among runs of a kind, since the last that says why it begins anew."""
    least: dict[str, float] = {}
    for record in history:
        if record.kind == kind:
            if record.because:
                least = {}
            for case, ratio in record.ratios.items():
                least[case] = min(ratio, least.get(case, ratio))
    return least


def worse(now: dict[str, float], record: dict[str, float], limit: float = LIMIT) -> list[str]:
    """The cases whose ratio is above what is on record by more than the limit."""
    return [case for case, ratio in now.items() if case in record and ratio > record[case] * limit]


def read(path: Path) -> list[Record]:
    """The runs on record, oldest first."""
    if not path.exists():
        return []
    found = json.loads(path.read_text(encoding="utf-8"))
    return [Record(**{**one, "kind": Kind(**one["kind"])}) for one in found]


def write(path: Path, history: Sequence[Record]) -> None:
    """Keep the runs, a line for each."""
    lines = (json.dumps(asdict(record)) for record in history)
    path.write_text("[\n  " + ",\n  ".join(lines) + "\n]\n", encoding="utf-8")


def table(now: dict[str, float], record: dict[str, float]) -> str:
    """Case, ratio, and how it stands to the record."""
    lines = [f"{'case':<12}{'ratio':>9}{'on record':>12}{'change':>9}"]
    for case, ratio in now.items():
        known = record.get(case)
        rest = f"{known:>12.3f}{ratio / known - 1:>+9.1%}" if known else f"{'-':>12}{'':>9}"
        lines.append(f"{case:<12}{ratio:>9.3f}{rest}")
    return "\n".join(lines)


def main() -> int:
    """Measure, compare, and record if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instructions", action="store_true", help="count instructions with valgrind")
    parser.add_argument("--rounds", type=int, default=5, help="of processor time (default %(default)s)")
    parser.add_argument("--history", type=Path, default=HISTORY, help="the runs on record (default %(default)s)")
    parser.add_argument("--record", action="store_true", help="add this run to the history")
    parser.add_argument(
        "--because", default="", metavar="WHY", help="with --record: why slower runs are right from now on"
    )
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("rounds begin at 1")
    if options.because and not options.record:
        parser.error("--because goes with --record")
    if options.instructions and shutil.which("valgrind") is None:
        parser.error("--instructions needs valgrind")
    kind = Kind(
        "instructions" if options.instructions else "processor time",
        ".".join(platform.python_version_tuple()[:2]),
        version("torch").partition("+")[0],
        platform.machine() if options.instructions else machine()["cpu"],
    )
    history = read(options.history)
    record = on_record(history, kind)
    with tempfile.TemporaryDirectory() as folder:
        root, scratch = Path(folder, "corpus"), Path(folder)
        root.mkdir()
        commands = cases(root, corpus(root), scratch)
        for words in commands.values():  # compiles what is imported, fills the page cache and the linter's own
            measure(words, frozenset({0}), environment())
        if options.instructions:
            now = ratios(by_instructions(commands))
        else:
            costs = by_time(commands, options.rounds)
            if worse(ratios(costs), record):  # once more, lest a busy moment has it
                again = by_time(commands, options.rounds)
                costs = {name: min(cost, again[name]) for name, cost in costs.items()}
            now = ratios(costs)
    print(f"{kind.by}, as multiples of {YARDSTICK} of the same files; Python {kind.python}, torch {kind.torch}")
    print(table(now, record))
    if not record:
        print("nothing of this kind is on record: there is nothing to compare with")
    slower = worse(now, record)
    if options.record:
        if slower and not options.because:
            print(f"not recorded: {', '.join(slower)} would need a reason (--because)", file=sys.stderr)
            return 1
        today = datetime.now(timezone.utc).date().isoformat()
        write(options.history, [*history, Record(today, version("torchmemlint"), kind, now, options.because)])
        return 0
    if slower:
        print(f"more than {LIMIT - 1:.0%} slower than on record: {', '.join(slower)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

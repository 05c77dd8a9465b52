"""One changed file of a large project: what a pre-commit hook or an editor waits for.

Each measured run is a fresh process that is given one file by name, without cache, and reads what else it needs of the
project. Beside its time stand the files read for context (as `--verbose` counts them) and what Python alone takes:
to start, and to parse all of the project. With `--warm` all of a made-up project is checked, of which an earlier run
has kept what it found; only the file was changed since.

    python benchmarks/changed.py path/to/transformers-5.23.0 --files 12
    python benchmarks/changed.py --synthetic 1000
    python benchmarks/changed.py --synthetic 1000 --warm
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from measure import Measurement, measure
from trees import Tree, fetch, tree

TARGET = 1.5  # seconds for a project of 1,000 files, on two cores
WARM_TARGET = 0.6  # where the rest of the project comes from the cache
CACHE = Path.home() / ".cache" / "torchmemlint-benchmarks"
_HERE = Path(__file__).parent
_WORDS = (b"torch", b"lightning", b"transformers")


@dataclass(frozen=True, slots=True)
class Changed:
    """What checking one file took."""

    file: str
    rows: int
    seconds: float  # wall time from start to end, the median of the runs
    cpu: float  # seconds of processor time, likewise
    context: int  # other files that were read
    findings: int


def candidates(project: Tree) -> list[Path]:
    """The files that a change would be checked for: those that mention torch, tests aside."""
    return [
        file
        for file in project.files
        if file.suffix == ".py"
        and not any(part.startswith("test") for part in file.relative_to(project.root).parts)
        and any(word in file.read_bytes() for word in _WORDS)
    ]


def choose(project: Tree, count: int) -> list[Path]:
    """A third of them the largest files, as these take longest; the rest drawn by a fixed seed from all."""
    files = sorted(candidates(project), key=lambda file: (-file.stat().st_size, file))
    largest = files[: count // 3]
    rest = files[len(largest) :]
    return [*largest, *random.Random(0).sample(rest, min(count - len(largest), len(rest)))]


def command(project: Tree, path: Path, *more: str) -> list[str]:
    """A run that is given one file of the project, or all of it."""
    options = ("--select", "ALL", "--isolated", "--exit-zero", "--project-root", str(project.root))
    return [sys.executable, "-m", "torchmemlint", "check", *options, *more, str(path)]


def check(project: Tree, file: Path, repetitions: int, kept: Path | None = None) -> Changed:
    """Check one file, in fresh processes; `kept`: all files, with a cache in that folder, the one changed each time."""
    asked = command(project, file, "--no-cache", "--verbose", "--output-format", "json")
    told = subprocess.run(asked, capture_output=True, text=True, check=True)
    found = re.search(r"read (\d+) other files?", told.stderr)
    if kept is None:
        words = command(project, file, "--no-cache", "--quiet", "--output-format", "concise")
        runs = [measure(words, frozenset({0})) for _ in range(repetitions)]
    else:
        words = command(project, project.root, "--cache-dir", str(kept), "--quiet", "--output-format", "concise")
        environment = {**os.environ, "TORCHMEMLINT_NO_CACHE": "0"}
        measure(words, frozenset({0}), environment)
        runs = [_changed(file, words, environment) for _ in range(repetitions)]
    return Changed(
        str(file.relative_to(project.root)),
        file.read_bytes().count(b"\n"),
        median(run.seconds for run in runs),
        median(run.cpu for run in runs),
        int(found[1]) if found is not None else 0,
        len(json.loads(told.stdout)),
    )


def _changed(file: Path, words: Sequence[str], environment: Mapping[str, str]) -> Measurement:
    with file.open("a", encoding="utf-8") as end:
        end.write("# changed\n")
    return measure(words, frozenset({0}), environment)


def baselines(project: Tree, scratch: Path, repetitions: int) -> dict[str, float]:
    """Seconds that Python takes to start with the standard parser, and to parse every file of the project."""
    names = scratch / "files.txt"
    names.write_text("".join(f"{file}\n" for file in project.files), encoding="utf-8")
    commands = {
        "import ast": [sys.executable, "-c", "import ast"],
        "ast.parse of all files": [sys.executable, str(_HERE / "parse_all.py"), str(names)],
    }
    return {
        name: median(measure(words, frozenset({0})).seconds for _ in range(repetitions))
        for name, words in commands.items()
    }


def table(project: Tree, results: Sequence[Changed], base: dict[str, float], target: float) -> str:
    """The results in Markdown."""
    lines = [
        f"### {project.name}: {len(project.files)} files, {project.size / 1e6:.1f} MB",
        "",
        *(f"- {name}: {seconds:.2f} s" for name, seconds in base.items()),
        "",
        "| changed file | lines | seconds | of processor time | read for context | times `import ast` |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for one in results:
        ratio = one.seconds / base["import ast"]
        lines.append(f"| {one.file} | {one.rows:,} | {one.seconds:.2f} | {one.cpu:.2f} | {one.context} | {ratio:.0f} |")
    slow = [one for one in results if one.seconds > target]
    within = len(results) - len(slow)
    lines += [
        "",
        f"median {median(one.seconds for one in results):.2f} s, {max(one.seconds for one in results):.2f} s at most; "
        f"{within} of {len(results)} within {target} s",
    ]
    return "\n".join(lines)


def generate(root: Path, files: int) -> None:
    """A project of so many files: packages of layers, meters and helpers, and trainers that import them."""
    packages = max(1, files // 20)
    for number in range(packages):
        package = root / "project" / f"part{number}"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("from .layers import *\nfrom .meters import Meter\n", encoding="utf-8")
        (package / "meters.py").write_text(_METERS, encoding="utf-8")
        (package / "base.py").write_text(
            _BASE.format(before=(number - 1) % packages, name=f"base{number}"), encoding="utf-8"
        )
        (package / "layers.py").write_text(_LAYERS, encoding="utf-8")
        for index in range(files // packages - 4):
            (package / f"train{index}.py").write_text(_TRAIN.format(number=number, index=index), encoding="utf-8")
    (root / "project" / "__init__.py").write_text("", encoding="utf-8")


_METERS = """class Meter:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value.item())
"""

_BASE = """from torch import nn

from project.part{before} import base as {name}


class Base(nn.Module):
    def __init__(self):
        super().__init__()
"""

_LAYERS = """import torch
from torch import nn

from .base import Base


class Block(Base):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))
"""

_TRAIN = """import torch

from project.part{number} import Block, Meter


def train{index}(loader):
    model = Block(8)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    meter = Meter()
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss)


def evaluate{index}(model: Block, loader):
    model.eval()
    right = 0
    for x, y in loader:
        right += (model(x).argmax(1) == y).sum().item()
    return right
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", nargs="?", default="transformers", help="a folder, or a package to download")
    parser.add_argument("--synthetic", type=int, metavar="FILES", help="a made-up project of so many files instead")
    parser.add_argument("--warm", action="store_true", help="check all of a made-up project, the rest from a cache")
    parser.add_argument("--changed", nargs="+", metavar="FILE", help="the changed files, relative to the project")
    parser.add_argument("--files", type=int, default=9, help="how many changed files are chosen (default 9)")
    parser.add_argument("--repetitions", type=int, default=3, help="runs for each (default 3)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where downloads are kept (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON instead of the table")
    options = parser.parse_args()
    if min(options.files, options.repetitions) < 1 or (options.synthetic is not None and options.synthetic < 20):
        parser.error("files and repetitions begin at 1, made-up projects at 20 files")
    if options.warm and options.synthetic is None:
        parser.error("--warm changes files: it needs --synthetic")
    with tempfile.TemporaryDirectory() as scratch:
        if options.synthetic is not None:
            root = Path(scratch).resolve() / f"synthetic-{options.synthetic}"
            generate(root, options.synthetic)
            project = tree(root)
        else:
            options.cache.mkdir(parents=True, exist_ok=True)
            project = fetch(options.project, options.cache)
        named = [project.root / name for name in options.changed or ()]
        missing = [str(file) for file in named if not file.is_file()]
        if missing:
            parser.error(f"no such file: {', '.join(missing)}")
        base = baselines(project, Path(scratch), options.repetitions)
        kept = Path(scratch) / "kept" if options.warm else None
        results = [check(project, file, options.repetitions, kept) for file in named or choose(project, options.files)]
    if options.json:
        shown = {"project": project.name, "files": len(project.files), "bytes": project.size, "baselines": base}
        print(json.dumps({**shown, "changed": [asdict(one) for one in results]}, indent=2))
    else:
        print(table(project, results, base, WARM_TARGET if options.warm else TARGET))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How much time and memory a tree of very many small files takes.

    python benchmarks/many_files.py --files 200000
    python benchmarks/many_files.py --files 20000 --every 10 --json

The tree is made up: folders of a hundred files each. One file of `--every` mentions torch, and one in a hundred of
those keeps every loss. It is checked from nothing, and again with what is kept of that run. Linux only.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from measure import measure

CHECK = (sys.executable, "-P", "-m", "torchmemlint", "check", "--isolated", "--exit-zero", "--quiet", "--jobs", "1")
FOLDER = 100  # files
PLAIN = "import json\n\n\ndef read(path):\n    return json.loads(path.read_text())[{number}]\n"
NETWORK = """\
from torch import nn


class Net{number}(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)
"""
LEAK = """\
import torch


def train{number}(model, loader, opt):
    total = 0.0
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        opt.step()
        total += loss
    return total
"""


@dataclass(frozen=True, slots=True)
class Result:
    """One check of the tree."""

    name: str
    files: int
    seconds: float  # wall
    cpu: float  # seconds of processor time
    peak: int  # bytes resident in the largest process


def make(root: Path, files: int, every: int) -> None:
    """Write a tree."""
    for number in range(files):
        folder = root / f"part{number // FOLDER // FOLDER}" / f"group{number // FOLDER}"
        if number % FOLDER == 0:
            folder.mkdir(parents=True)
        text = PLAIN if number % every else LEAK if number % (every * 100) == 0 else NETWORK
        (folder / f"file{number}.py").write_text(text.format(number=number))


def results(files: int, every: int) -> list[Result]:
    """Make a tree, and check it from nothing and again."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "tree"
        make(root, files, every)
        command = (*CHECK, f"--cache-dir={place}/kept", str(root))
        found = []
        for name in ("from nothing", "again"):
            taken = measure(command, {0})
            found.append(Result(name, files, taken.seconds, taken.cpu, taken.process_peak))
        return found


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and say what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=200_000, help="how many")
    parser.add_argument("--every", type=int, default=100, help="one of so many mentions torch")
    parser.add_argument("--json", action="store_true", help="as JSON")
    given = parser.parse_args(words)
    found = results(given.files, given.every)
    if given.json:
        print(json.dumps([asdict(one) for one in found]))
        return 0
    for one in found:
        taken = f"{one.seconds:.1f} s, {one.cpu:.1f} s of processor, {one.peak / 1e6:.0f} MB"
        print(f"{one.files} files, {one.name}: {taken}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

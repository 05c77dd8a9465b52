"""Look for inputs that make the linter fail: real files, mutated real files, and programs of a grammar.

    python tools/find_faults.py files PATH...                  # every file, with every fix, unsafe ones too
    python tools/find_faults.py mutate --count 10000 PATH...   # real files with lines and tokens lost, doubled, swapped
    python tools/find_faults.py generate --count 100000        # tests/loops.py

A fault is an internal error, a worker that dies, a limit of time or memory that is reached, a fix after which a file
that compiled no longer does, or a second round of fixes that changes something. Nothing is written to the files. Each
fault is a line of JSON in OUT/faults.jsonl, its text beside it; what was done is counted in OUT/counts.jsonl. All rules
are on, also in files that never name torch: an import of it is added to them. One program of the grammar in
twenty is a long one, and one in `--fix-every` is fixed. The same seed gives the same inputs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import loops
import programs

from torchmemlint.config.limits import Limits
from torchmemlint.engine.one_file import UNREADABLE, FileResult, Fixing, Profile, is_fleeting, is_relevant
from torchmemlint.engine.pool import Task, check_all
from torchmemlint.rules.registry import all_rules
from torchmemlint.source.decoding import UnreadableFile, decode

_TORCH = b"\nimport torch\n"
_PIECE = re.compile(r"\w+|[^\w\s]|\s+")
_TOKENS = (
    "(",
    ")",
    ":",
    "*",
    "=",
    "await ",
    "yield ",
    "not ",
    ",",
    ".",
    "\n",
    "\t",
    "[",
    "]",
    "{",
    "}",
    "lambda: ",
    "in ",
)
_LARGEST = 120_000  # bytes of a file to mutate
_AT_ONCE = 200

Input = tuple[str, bytes]  # a name for it, and its text


def main() -> int:
    """Run one kind of search; 1 if it has found something."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["files", "mutate", "generate"])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--begin", type=int, default=0, help="the number of the first")
    parser.add_argument("--fix-every", type=int, default=1, help="fix the first of so many inputs")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="the limit `time` for each input")
    parser.add_argument("--out", type=Path, default=Path("faults"))
    given = parser.parse_intermixed_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.kind == "files":
        inputs = _files(given.paths)
    elif given.kind == "mutate":
        inputs = _mutated(given.paths, range(given.begin, given.begin + given.count), given.seed)
    else:
        inputs = _generated(range(given.begin, given.begin + given.count), given.seed)
    codes = frozenset(rule.code for rule in all_rules())
    fixing = Profile(codes, fixing=Fixing.PREVIEW, unsafe=True, limits=Limits(time=given.seconds))
    profiles = [fixing] + [replace(fixing, fixing=Fixing.NONE)] * (given.fix_every - 1)
    counts: Counter[str] = Counter()
    began = time.monotonic()
    while batch := list(islice(inputs, _AT_ONCE)):
        for name, text, why in _faults(batch, profiles, given.jobs, counts):
            mark = hashlib.sha256(text).hexdigest()[:12]
            (given.out / f"{mark}.txt").write_bytes(text)
            with (given.out / "faults.jsonl").open("a") as file:
                file.write(json.dumps({"kind": given.kind, "name": name, "why": why, "text": mark}) + "\n")
            print(f"{name}: {why}", flush=True)
    told = {"kind": given.kind, "seed": given.seed, "seconds": round(time.monotonic() - began), **counts}
    with (given.out / "counts.jsonl").open("a") as file:
        file.write(json.dumps(told) + "\n")
    print(json.dumps(told))
    return int(counts["faults"] > 0)


def _faults(
    inputs: Sequence[Input], profiles: Sequence[Profile], jobs: int, counts: Counter[str]
) -> Iterator[tuple[str, bytes, str]]:
    """(name, text, what is wrong) of those inputs that something is wrong with."""
    first = _check(inputs, profiles, jobs)
    fixed = []
    for (name, text), result in zip(inputs, first, strict=True):
        counts["inputs"] += 1
        counts["findings"] += len(result.findings)
        counts["unreadable"] += any(one.code == UNREADABLE for one in result.findings)
        why = _wrong_with(result)
        if why is None and result.fixed is not None and result.fixed.after != result.fixed.before:
            counts["files fixed"] += 1
            counts["fixes"] += len(result.fixed.applied)
            counts["fixes taken back"] += len(result.fixed.rolled_back)
            if programs.compiles(result.fixed.before) and not programs.compiles(result.fixed.after):
                why = "it no longer compiles after the fixes"
            else:
                fixed.append((name, decode(text).encode(result.fixed.after)))
        if why is not None:
            counts["faults"] += 1
            yield name, text, why
    for (name, text), result in zip(fixed, _check(fixed, profiles[:1], jobs), strict=True):
        why = _wrong_with(result)
        if why is None and result.fixed is not None and result.fixed.after != result.fixed.before:
            why = "fixes are made in what was fixed"
        if why is not None:
            counts["faults"] += 1
            yield name, text, f"after the fixes: {why}"


def _check(inputs: Sequence[Input], profiles: Sequence[Profile], jobs: int) -> list[FileResult]:
    tasks = [
        Task(Path(name).absolute(), number % len(profiles), len(text), text)
        for number, (name, text) in enumerate(inputs)
    ]
    return check_all(tasks, profiles, jobs, lambda done: None, apart=True)


def _wrong_with(result: FileResult) -> str | None:
    if result.error is not None:
        return f"{result.error}\n{result.details or ''}".strip()
    if is_fleeting(result):
        return next(one.message for one in result.findings if one.code == UNREADABLE)
    return None


def _relevant(text: bytes) -> bytes:
    return text if is_relevant(text) else text + _TORCH


def _files(paths: Iterable[Path]) -> Iterator[Input]:
    for path in _found(paths):
        yield str(path), _relevant(path.read_bytes())


def _found(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(one for one in path.rglob("*.py") if one.is_file()) if path.is_dir() else (path,)


def _generated(numbers: range, seed: int) -> Iterator[Input]:
    for number in numbers:
        name = f"generated-{seed}-{number}.py"
        made = loops.script if number % 20 == 0 else loops.piece
        yield name, made(random.Random(f"{seed} {number}")).encode()


def _mutated(paths: Iterable[Path], numbers: range, seed: int) -> Iterator[Input]:
    files = [path for path in _found(paths) if 200 < path.stat().st_size < _LARGEST]
    for number in numbers:
        choose = random.Random(f"{seed} {number}")
        path, other = choose.choice(files), choose.choice(files)
        try:
            text, lines = decode(path.read_bytes()).text, decode(other.read_bytes()).text.splitlines(keepends=True)
        except UnreadableFile:
            continue
        for _ in range(choose.randint(1, 4)):
            if choose.random() < 0.5:
                text = "".join(_changed(text.splitlines(keepends=True), lines, choose))
            else:
                text = "".join(_changed(_PIECE.findall(text), _TOKENS, choose))
        yield f"{path}#{seed}-{number}.py", _relevant(text.encode("utf-8", "replace"))


def _changed(parts: list[str], others: Sequence[str], choose: random.Random) -> list[str]:
    """The parts with a few lost, doubled, swapped, indented or brought in from elsewhere."""
    here, there = (choose.randrange(len(parts)) for _ in range(2)) if parts else (0, 0)
    match choose.randrange(5) if parts else 3:
        case 0:
            del parts[here : here + choose.randint(1, 3)]
        case 1:
            parts.insert(there, parts[here])
        case 2:
            parts[here], parts[there] = parts[there], parts[here]
        case 3:
            parts.insert(here, choose.choice(others) if others else "")
        case _:
            parts[here] = "    " + parts[here]
    return parts


if __name__ == "__main__":
    sys.exit(main())

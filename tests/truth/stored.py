"""A stored sample: labels that running the programs gave, for tests that have no torch.

The programs themselves are not stored. They are made again from the seed, and each must have the fingerprint that it
had when it was run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from . import tables
from .build import Program
from .examples import Example, Label, fingerprint
from .sample import Plan, first_of, twin_of

if TYPE_CHECKING:
    from .pairs import Pair

SAMPLE = Path(__file__).parent / "labels" / "sample.json"


class StaleError(Exception):
    """The programs of a sample are no longer those that were run."""


def store(path: Path, seed: int, torch: str, pairs: Iterable[Pair]) -> None:
    """Write the labels of pairs that were drawn by seed: one line for each pair."""
    rows = [
        json.dumps([pair.plan.pair, pair.attempt, _row(pair.first), _row(pair.second)])
        for pair in pairs
        if pair.second is not None
    ]
    head = json.dumps({"seed": seed, "torch": torch})[1:-1]
    path.write_text(f'{{{head}, "pairs": [\n' + ",\n".join(rows) + "\n]}\n", encoding="utf-8")


def _row(example: Example) -> list[object]:
    label = example.label
    return [fingerprint(example.program), label.truth, int(label.grows), int(label.live)]


def load(path: Path = SAMPLE, count: int | None = None) -> Iterator[tuple[Example, Example]]:
    """The pairs of a sample, or the first `count`; raises `StaleError` where a program's text is another one."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    for pair, attempt, first_row, second_row in kept["pairs"][:count]:
        plan = Plan(pair, {})
        first = _example(f"{pair:05d}a", first_of(kept["seed"], plan), first_row, pair)
        program = twin_of(kept["seed"], plan, first.program, first.label.harmful, attempt)
        yield first, _example(f"{pair:05d}b", program, second_row, pair)


def seed_of(path: Path = SAMPLE) -> int:
    """The seed that the programs of a sample are drawn by."""
    return int(json.loads(path.read_text(encoding="utf-8"))["seed"])


def _example(name: str, program: Program, row: list[object], pair: int) -> Example:
    print_of_then, truth, grows, live = row
    if fingerprint(program) != print_of_then:
        raise StaleError(f"{name} is another program now: store the sample anew, as docs/truth.md says")
    unseen = bool(tables.FATE[program.values["fate"]].drive)
    label = Label(str(truth), unseen, bool(grows), bool(live), 0.0, 0.0, 0, 0, 0, ())
    return Example(name, program, label, pair)

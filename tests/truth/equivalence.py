"""Rewritten programs that do the same: kept only if the output and the label are those of the original."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from . import tables
from .emission import Mark
from .examples import Example
from .measure import labelled, run
from .rewrite import REWRITINGS, Rewritten, rewritten


@dataclass(frozen=True)
class Variant:
    """A program in another spelling."""

    rewriting: str
    original: Example
    example: Example


@dataclass
class Trials:
    """What became of each rewriting: kept, does not apply, or broken, with the reason."""

    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    broken: list[tuple[str, str, Rewritten]] = field(default_factory=list)


def variants(examples: Iterable[Example], trials: Trials) -> Iterator[Variant]:
    """Each program in all spellings that apply to it and change nothing."""
    for example in examples:
        program = example.program
        output = run(program.files, program.drive).output
        for name in REWRITINGS:
            new = rewritten(name, program.files, sorted(example.places))
            if new is None:
                trials.counts[name]["does not apply"] += 1
                continue
            if problem := _difference(example, output, new):
                trials.counts[name]["broken"] += 1
                trials.broken.append((name, problem, new))
                continue
            trials.counts[name]["kept"] += 1
            marks = {kind: _moved(old, new) for kind, old in program.marks.items()}
            spelt = dataclasses.replace(program, files=new.files, marks=marks)
            yield Variant(name, example, dataclasses.replace(example, name=f"{example.name}-{name}", program=spelt))


def _moved(marks: Iterable[Mark], new: Rewritten) -> list[Mark]:
    return [place for mark in marks for place in new.places.get(mark, ())]


def _difference(example: Example, output: str, new: Rewritten) -> str:
    """Why the new program is another one; "" if it is not."""
    drive, fate = example.program.drive, tables.FATE[example.program.values["fate"]]
    measured = run(new.files, drive)
    if not measured.complete:
        return measured.error or "too few iterations"
    if measured.output != output:
        return "another output"
    label = labelled(measured, fate.differentiates, bool(fate.drive))
    old = example.label
    same = (label.truth, label.live, label.grows) == (old.truth, old.live, old.grows)
    return "" if same else f"{label.truth} instead of {old.truth}"

"""Pairs of labelled programs: drawn, run, and kept if the twins differ in what there is to find."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from . import tables
from .build import Program
from .choice import ImpossibleError
from .examples import Example, Label
from .measure import Measured, confirmed, labelled, run
from .sample import Plan, first_of, twin_of

ATTEMPTS = 6  # at a twin


@dataclass
class Tally:
    """What became of the programs that were drawn."""

    dropped: Counter[str] = field(default_factory=Counter)
    confirmed: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, Program]] = field(default_factory=list)
    alike: int = 0  # pairs whose twins do not differ

    @property
    def raised(self) -> int:
        """How many programs could not be run."""
        return len(self.failures)


@dataclass(frozen=True)
class Pair:
    """Two forms of a program, one of them harmful; `attempt` is the one at which the second was found."""

    plan: Plan
    first: Example
    second: Example | None
    attempt: int


def label_of(program: Program, measured: Measured) -> Label:
    """The label of a run, with whether the marked lines are the cause."""
    fate = tables.FATE[program.values["fate"]]
    label = labelled(measured, fate.differentiates, bool(fate.drive))
    if not label.grows:
        return label
    cause = confirmed(program.files, program.drive, program.marks.get("put", []))
    return dataclasses.replace(label, put_confirmed=cause)


def pairs(seed: int, plans: Iterable[Plan], tally: Tally, alone: bool = False) -> Iterator[Pair]:
    """The pairs of the plans. With `alone`, a first program whose twin does not differ is there without it."""
    seen: set[str] = set()
    for plan in plans:
        try:
            program = first_of(seed, plan)
        except ImpossibleError as why:
            tally.dropped[f"impossible: {plan.strange or why}"] += 1
            continue
        label = _labelled(program, tally, seen)
        if label is None:
            continue
        first = Example(f"{plan.pair:05d}a", program, label, plan.pair, plan.strange)
        found = _twin(seed, plan, first, tally, seen)
        if found is not None or alone:
            second, attempt = found or (None, -1)
            for example in filter(None, (first, second)):
                if example.label.grows:
                    tally.confirmed[str(example.label.put_confirmed)] += 1
            yield Pair(plan, first, second, attempt)


def _twin(seed: int, plan: Plan, first: Example, tally: Tally, seen: set[str]) -> tuple[Example, int] | None:
    for attempt in range(ATTEMPTS):
        try:
            program = twin_of(seed, plan, first.program, first.label.harmful, attempt)
        except ImpossibleError:
            break
        label = _labelled(program, tally, seen)
        if label is not None and label.harmful != first.label.harmful:
            return Example(f"{plan.pair:05d}b", program, label, plan.pair, plan.strange), attempt
    tally.alike += 1
    return None


def _labelled(program: Program, tally: Tally, seen: set[str]) -> Label | None:
    """The label of a program that runs and was not there before."""
    if program.text in seen:
        tally.dropped["a duplicate"] += 1
        return None
    seen.add(program.text)
    measured = run(program.files, program.drive)
    if not measured.complete:
        why = measured.error or "too few iterations"
        tally.dropped[why[:100]] += 1
        tally.failures.append((why, program))
        return None
    return label_of(program, measured)

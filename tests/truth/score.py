"""What a checker says of programs, against what running them said."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .examples import Example

Report = tuple[str, int, str, str]  # file, line, code, confidence
Reports = dict[str, list[Report]]  # by name of the program
Checker = Callable[[dict[str, str]], Iterable[Sequence[Any]]]  # of one program's files

FAMILY = re.compile(r"TML(1\d\d|20[13467])$")  # graphs that are kept, and passes that record one for nothing
ALLOWED_WHERE_DEFERRED = "TML108"
QUIET = ("advice", "possible", "doubt", "hint")  # confidences that are no findings unless asked for


@dataclass(frozen=True)
class Verdict:
    """A checker on one program."""

    example: Example
    reported: bool
    placed: bool  # a report stands on a line that keeps the value, or on a pass
    codes: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether it was reported exactly if there is something to find."""
        return self.reported == self.example.label.harmful


@dataclass
class Group:
    """Programs that are counted together."""

    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many programs."""
        return len(self.verdicts)

    @property
    def reported(self) -> int:
        """How many of them were reported."""
        return sum(verdict.reported for verdict in self.verdicts)

    @property
    def placed(self) -> int:
        """How many were reported on the right line."""
        return sum(verdict.placed for verdict in self.verdicts)


@dataclass(frozen=True)
class Row:
    """A value of a dimension: harmful programs that were found, harmless ones that were reported."""

    value: str
    found: int
    harmful: int
    alarms: int
    harmless: int


@dataclass(frozen=True)
class Score:
    """All figures of a checker on one set of programs."""

    groups: dict[str, Group]
    told_apart: int
    pairs: int
    both_reported: int
    neither_reported: int
    rows: dict[str, list[Row]]
    verdicts: list[Verdict]


def in_process(examples: Sequence[Example]) -> Reports:
    """The linter on all programs, each in a folder of its own, in one call."""
    from torchmemlint import check_paths

    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        written(examples, root)
        reports: Reports = defaultdict(list)
        for finding in check_paths(root, select=["TML1", "TML2"], isolated=True):
            name, *rest = Path(finding.filename).resolve().relative_to(root).parts
            reports[name].append(("/".join(rest), finding.span.start.row, finding.code, finding.severity.value))
    return reports


def written(examples: Iterable[Example], root: Path) -> None:
    """Write the programs, each in a folder of its own."""
    for example in examples:
        folder = root / example.name
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in example.program.files.items():
            (folder / name).write_text(text, encoding="utf-8")


def by_function(checker: Checker, examples: Iterable[Example], failed: dict[str, str] | None = None) -> Reports:
    """A function on the files of each program. Where it fails is put into `failed`, if that is given."""
    reports: Reports = {}
    for example in examples:
        try:
            found = [tuple(report) for report in checker(dict(example.program.files))]
        except Exception as error:
            if failed is None:
                raise
            failed[example.name] = f"{type(error).__name__}: {error}"
            continue
        reports[example.name] = [
            (str(file), int(line), str(code), str(rest[0]) if rest else "") for file, line, code, *rest in found
        ]
    return reports


def verdict_on(example: Example, reports: Iterable[Report], quiet: Sequence[str] = QUIET) -> Verdict:
    """What the reports say of a program; those of other families, and quiet ones, say nothing."""
    deferred = example.label.truth == "deferred"
    counted = [
        (file, line, code)
        for file, line, code, confidence in reports
        if FAMILY.match(code) and confidence not in quiet and not (deferred and code == ALLOWED_WHERE_DEFERRED)
    ]
    placed = any((file, line) in example.places for file, line, _ in counted)
    return Verdict(example, bool(counted), placed, tuple(sorted({code for *_, code in counted})))


def scored(examples: Sequence[Example], reports: Mapping[str, list[Report]], quiet: Sequence[str] = QUIET) -> Score:
    """All figures. Programs whose caller is unseen are in groups of their own: only a doubt can be right there."""
    verdicts = [verdict_on(example, reports.get(example.name, []), quiet) for example in examples]
    seen = [verdict for verdict in verdicts if not verdict.example.label.unseen_caller]
    unseen = [verdict for verdict in verdicts if verdict.example.label.unseen_caller]

    def group(chosen: Iterable[Verdict], *truths: str) -> Group:
        return Group([verdict for verdict in chosen if verdict.example.label.truth in truths])

    groups = {
        "leak": group(seen, "leak"),
        "leak, live": group((v for v in seen if v.example.label.live), "leak"),
        "leak, spent": group((v for v in seen if not v.example.label.live), "leak"),
        "waste": group(seen, "waste"),
        "clean": group(seen, "clean"),
        "deferred": group(seen, "deferred"),
        "unseen caller, harmful": group(unseen, "leak", "waste"),
        "unseen caller, harmless": group(unseen, "clean", "deferred"),
    }
    twins = _twins(seen)
    return Score(
        groups,
        sum(a.right and b.right for a, b in twins),
        len(twins),
        sum(a.reported and b.reported for a, b in twins),
        sum(not a.reported and not b.reported for a, b in twins),
        _rows(seen),
        verdicts,
    )


def _twins(verdicts: Iterable[Verdict]) -> list[tuple[Verdict, Verdict]]:
    """Pairs of which exactly one is harmful."""
    by_pair: dict[int, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_pair[verdict.example.pair].append(verdict)
    both = [(pair[0], pair[1]) for pair in by_pair.values() if len(pair) == 2]
    return [(a, b) for a, b in both if a.example.label.harmful != b.example.label.harmful]


def _rows(verdicts: Iterable[Verdict]) -> dict[str, list[Row]]:
    """A table for each dimension, the worst value first. In a grid only the one strange value counts."""
    groups: dict[str, dict[str, list[Verdict]]] = defaultdict(lambda: defaultdict(list))
    for verdict in verdicts:
        dimension, _, strange = verdict.example.strange.partition("=")
        values = {dimension: strange} if strange else verdict.example.program.values
        for name, value in values.items():
            groups[name][value].append(verdict)
    return {
        dimension: sorted((_row(value, group) for value, group in values.items()), key=_badness)
        for dimension, values in groups.items()
    }


def _row(value: str, verdicts: list[Verdict]) -> Row:
    harmful = [verdict for verdict in verdicts if verdict.example.label.harmful]
    harmless = [verdict for verdict in verdicts if not verdict.example.label.harmful]
    found, alarms = (sum(v.reported for v in group) for group in (harmful, harmless))
    return Row(value, found, len(harmful), alarms, len(harmless))


def _badness(row: Row) -> tuple[float, float, str]:
    found = row.found / row.harmful if row.harmful else 2.0
    alarms = row.alarms / row.harmless if row.harmless else 0.0
    return found, -alarms, row.value


def share(part: int, whole: int) -> str:
    """A part of a whole, in columns of one width."""
    return f"{part:5d}/{whole:<5d}{100 * part / whole:6.1f}%" if whole else f"{'-':>6s}{'':12s}"


def as_text(score: Score, minimum: int = 3) -> str:
    """The figures, to be read."""
    lines = [
        f"{'pairs told apart':28s}{share(score.told_apart, score.pairs)}   "
        f"(both reported {score.both_reported}, neither {score.neither_reported})",
        f"{'':28s}{'reported':>18s}   {'on the line':>18s}",
    ]
    titles = {
        "leak": "leaks found",
        "waste": "waste found",
        "clean": "clean, reported",
        "deferred": "deferred, reported",
    }
    for name, group in score.groups.items():
        title = titles.get(name, "  " + name.removeprefix("leak, ") if name.startswith("leak, ") else name)
        lines.append(f"{title:28s}{share(group.reported, group.total)}   {share(group.placed, group.total)}")
    for dimension, rows in score.rows.items():
        shown = [row for row in rows if row.harmful + row.harmless >= minimum]
        if len(shown) > 1 or dimension != "cut_at":
            lines += ["", f"{dimension:28s}{'found':>18s}   {'false alarms':>18s}"]
            lines += [
                f"  {row.value:26s}{share(row.found, row.harmful)}   {share(row.alarms, row.harmless)}" for row in shown
            ]
    return "\n".join(lines)


def as_json(score: Score) -> dict[str, Any]:
    """The figures and every verdict, to be kept."""
    return {
        "pairs": {
            "told apart": score.told_apart,
            "both reported": score.both_reported,
            "neither reported": score.neither_reported,
            "all": score.pairs,
        },
        "groups": {name: [g.reported, g.placed, g.total] for name, g in score.groups.items()},
        "dimensions": {
            dimension: {row.value: [row.found, row.harmful, row.alarms, row.harmless] for row in rows}
            for dimension, rows in score.rows.items()
        },
        "programs": {
            verdict.example.name: {
                "truth": verdict.example.label.truth,
                "live": verdict.example.label.live,
                "reported": verdict.reported,
                "placed": verdict.placed,
                "codes": verdict.codes,
                "values": verdict.example.program.values,
                "strange": verdict.example.strange,
            }
            for verdict in score.verdicts
        },
    }


@dataclass
class Changes:
    """How often what is said of a program changes with its spelling."""

    total: int = 0
    changed: int = 0
    reported: int = 0  # before
    lost: int = 0
    gained: int = 0
    misplaced: int = 0  # reported on the right line before, and elsewhere now

    def add(self, before: Verdict, after: Verdict) -> None:
        """Count one program."""
        self.total += 1
        self.reported += before.reported
        self.changed += before.codes != after.codes
        self.lost += before.reported and not after.reported
        self.gained += after.reported and not before.reported
        self.misplaced += before.placed and after.reported and not after.placed


def changes(pairs: Iterable[tuple[str, Verdict, Verdict]]) -> dict[str, Changes]:
    """By rewriting, the worst first."""
    found: dict[str, Changes] = defaultdict(Changes)
    for name, before, after in pairs:
        found[name].add(before, after)
    return dict(sorted(found.items(), key=lambda item: -item[1].changed / max(item[1].total, 1)))


def changes_as_text(found: Mapping[str, Changes]) -> str:
    """The changes, to be read."""
    lines = [f"{'rewriting':28s}{'findings change':>18s}   {'lost':>18s}   {'gained':>18s}   misplaced"]
    for name, one in found.items():
        lines.append(
            f"{name:28s}{share(one.changed, one.total)}   {share(one.lost, one.reported)}   "
            f"{share(one.gained, one.total - one.reported)}   {one.misplaced:9d}"
        )
    return "\n".join(lines)

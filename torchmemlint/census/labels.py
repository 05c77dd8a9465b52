"""Samples of findings for reading by hand, and what was made of them.

A labels file has a line for each finding, of five columns with tabs between: project, `path:row`, code, label, snippet.
The label is `?` until somebody writes `true`, `false` or `unclear` there.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import NormalDist
from typing import Any

from torchmemlint.census.counting import Found, by_code
from torchmemlint.immutable import immutable

UNREAD = "?"
LABELS = ("true", "false", "unclear")
_COLUMNS = 5


class LabelsError(Exception):
    """A labels file that cannot be used; the message names the line and says why."""


@immutable()
class Precision:
    """What reading has shown of a rule. What is unclear counts for neither side."""

    code: str
    true: int
    false: int
    unclear: int
    unread: int

    @property
    def share(self) -> float | None:
        """True ones of those that are true or false; None where there are none."""
        read = self.true + self.false
        return self.true / read if read else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the share lies in the whole corpus, with 95% confidence: Wilson's score interval."""
        read = self.true + self.false
        return wilson(self.true, read) if read else None

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        low, high = self.interval or (None, None)
        return {**asdict(self), "share": self.share, "low": low, "high": high}


def wilson(hits: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval (1927) of a share. It holds for few trials, and for shares of nothing and all."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = hits / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * (share * (1 - share) / of + z * z / (4 * of * of)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


def sample(found: Iterable[Found], count: int, seed: int) -> list[Found]:
    """So many findings of each rule (all, where there are no more), drawn by a seed, in the order of the rules."""
    drawn: list[Found] = []
    for code, among in sorted(by_code(sorted(found, key=lambda one: one.place)).items()):
        drawn += sorted(
            random.Random(f"{seed} {code}").sample(among, min(count, len(among))), key=lambda one: one.place
        )
    return drawn


def lines(drawn: Iterable[Found], seed: int) -> Iterator[str]:
    """A labels file."""
    yield f"# Drawn with seed {seed}. Write true, false or unclear in place of {UNREAD}"
    yield "# project\tpath:row\tcode\tlabel\tsnippet"
    for one in drawn:
        parts = (one.project, f"{one.path}:{one.row}", one.code, UNREAD, one.snippet)
        yield "\t".join(" ".join(part.split()) for part in parts)


def read_labels(files: Iterable[Path]) -> list[Precision]:
    """What was read of each rule, in the order of codes. Raises `LabelsError`."""
    labels: dict[tuple[str, ...], str] = {}
    for file in files:
        for place, finding, label in _rows(file):
            other = labels.setdefault(finding, label)
            if label not in (other, UNREAD) and other != UNREAD:
                raise LabelsError(f"{place}: the label is `{label}`, and `{other}` where this finding stands before")
            if other == UNREAD:
                labels[finding] = label
    counts: dict[str, Counter[str]] = {}
    for (*_, code), label in labels.items():
        counts.setdefault(code, Counter())[label] += 1
    return [
        Precision(code, count["true"], count["false"], count["unclear"], count[UNREAD])
        for code, count in sorted(counts.items())
    ]


def _rows(file: Path) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(the line's place, (project, path and row, code), label)"""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LabelsError(f"{file}: cannot be read: {error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        place, columns = f"{file}:{number}", line.split("\t", _COLUMNS - 1)
        if len(columns) < _COLUMNS - 1:
            raise LabelsError(f"{place}: {len(columns)} columns with tabs between, where there should be {_COLUMNS}")
        project, where, code, label = (column.strip() for column in columns[:4])
        if label.lower() not in (*LABELS, UNREAD):
            raise LabelsError(f"{place}: the label is `{label}`; it may be {', '.join(LABELS)} or {UNREAD}")
        yield place, (project, where, code), label.lower()

"""The repository's fixtures in other spellings, with what is expected of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .emission import Mark
from .rewrite import REWRITINGS, depends_on_comments, expectations, rewritten

ROOT = Path(__file__).resolve().parents[2] / "fixtures"
_FINDING = re.compile(r"(?P<code>TML\d{3})(?: (?P<severity>\w+))?")


@dataclass(frozen=True)
class Expected:
    """One finding, and the lines that it may stand on."""

    code: str
    severity: str  # "" stands for any
    places: tuple[Mark, ...]


@dataclass(frozen=True)
class Respelt:
    """A fixture after a rewriting."""

    path: Path
    rewriting: str
    files: dict[str, str]
    expected: tuple[Expected, ...]


def bad_fixtures(*families: str) -> list[Path]:
    """The programs in which something is found, of the rules whose codes begin so (graphs and gradient mode)."""
    found = [path for family in families or ("TML1", "TML2") for path in ROOT.glob(f"{family}*/bad_*.py")]
    return sorted(path for path in found if not path.name.endswith(".fixed.py"))


def respelt(path: Path) -> Iterator[Respelt]:
    """A fixture in all spellings that apply to it; none if comments have a meaning that would be lost."""
    text = path.read_text(encoding="utf-8")
    announced = expectations(text)
    if depends_on_comments(text):
        return
    for name in REWRITINGS:
        new = rewritten(name, {path.name: text}, [(path.name, line) for line in announced])
        if new is not None:
            expected = tuple(
                Expected(finding["code"], finding["severity"] or "", new.places[(path.name, line)])
                for line, findings in announced.items()
                for finding in _FINDING.finditer(findings)
            )
            yield Respelt(path, name, new.files, expected)

"""What the linter finds in the fixtures, and in their other spellings: the same, in the same places."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from .emission import Mark
from .rewrite import REWRITINGS, Rewritten, depends_on_comments, rewritten

if TYPE_CHECKING:
    from torchmemlint.findings import Finding

K = TypeVar("K")


@dataclass(frozen=True)
class Found:
    """A finding, and the places that its evidence names."""

    place: Mark
    code: str
    severity: str
    message: str
    shown: frozenset[Mark]

    def is_at(self, places: Iterable[Mark]) -> bool:
        """Does it stand in one of these places?

        What a file hands to a class of another is reported where it is handed over, and the evidence leads to the
        class. So after a class has moved to another file, its finding stands in the file that uses it.
        """
        return any(self.place == at or (self.place[0] != at[0] and at in self.shown) for at in places)

    def __str__(self) -> str:
        return f"{self.code} {self.severity}, {self.place[0]}:{self.place[1]}: {self.message}"


@dataclass(frozen=True)
class Difference:
    """What another spelling of a fixture loses, or what is new in it."""

    path: Path
    rewriting: str
    lost: Found | None
    new: Found | None

    def __str__(self) -> str:
        what = f"lost: {self.lost}" if self.lost is not None else f"new: {self.new}"
        return f"{self.path.parent.name[:6]}-{self.path.stem}, {self.rewriting}, {what}"


def differences(paths: Iterable[Path]) -> tuple[int, list[Difference]]:
    """How many spellings some fixtures have, and what changes in them; comments must have no meaning in a fixture."""
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    texts = {path: text for path, text in texts.items() if not depends_on_comments(text)}
    before = _found({path: {path.name: text} for path, text in texts.items()})
    spelt: dict[tuple[Path, str], Rewritten] = {}
    for path, text in texts.items():
        for name in REWRITINGS:
            marks = sorted({place for one in before[path] for place in (one.place, *one.shown)})
            if new := rewritten(name, {path.name: text}, marks):
                spelt[path, name] = new
    after = _found({key: new.files for key, new in spelt.items()})
    changed = [one for key, new in spelt.items() for one in _between(key, new, before[key[0]], after[key])]
    return len(spelt), changed


def _between(key: tuple[Path, str], new: Rewritten, before: list[Found], after: list[Found]) -> Iterable[Difference]:
    left = set(after)
    for old in before:
        told = {place for mark in old.shown for place in new.places[mark]}  # passes that have a region of their own now
        left -= {one for one in after if one.code == old.code and one.place in told}
        same = (one for one in after if (one.code, one.severity) == (old.code, old.severity))
        here = {one for one in same if one.is_at(new.places[old.place])}
        left -= here
        if not here:
            yield Difference(*key, old, None)
    yield from (Difference(*key, None, one) for one in after if one in left)


def _found(programs: Mapping[K, Mapping[str, str]]) -> dict[K, list[Found]]:
    """Check all programs in one call, each in a folder of its own."""
    from torchmemlint import check_paths

    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        for number, files in enumerate(programs.values()):
            folder = root / str(number)
            folder.mkdir()
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
        found: dict[str, list[Found]] = defaultdict(list)
        for finding in check_paths(root, select=["TML1", "TML2"], isolated=True):
            name, one = _as_found(finding, root)
            found[name].append(one)
    return {key: found[str(number)] for number, key in enumerate(programs)}


def _as_found(finding: Finding, root: Path) -> tuple[str, Found]:
    def at(path: Path, line: int) -> tuple[str, Mark]:
        name, *rest = path.resolve().relative_to(root).parts
        return name, ("/".join(rest), line)

    own = Path(finding.filename)
    program, place = at(own, finding.span.start.row)
    shown = frozenset(at(one.filename or own, one.span.start.row)[1] for one in finding.evidence)
    return program, Found(place, finding.code, finding.severity.value, finding.message, shown)

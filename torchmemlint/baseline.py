"""The findings that a project lives with: a file of them, and which findings of a run they are.

`torchmemlint baseline create` writes the file, and `torchmemlint check` reports only what is not in it.
`baseline_schema.json` beside this module describes it. One finding is one line, in the order of files and rules, and
there are no row numbers in it, so what changes in it is what changed.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torchmemlint.config.errors import ConfigError
from torchmemlint.findings import Finding
from torchmemlint.fingerprints import core, subject
from torchmemlint.immutable import immutable
from torchmemlint.measured import Measured, read_measured
from torchmemlint.regular import text_of

FORMAT = "torchmemlint baseline"
VERSION = 1
_HINT = "mend it, or write it anew with `torchmemlint baseline create --force`"

ScopeOf = Callable[[Finding], str]


class BaselineError(ConfigError):
    """A baseline that cannot be read or written; the message names it and says why."""


@immutable()
class Entry:
    """A finding that is known. What it is recognised by is its fingerprint; the rest tells equal ones apart."""

    path: str  # as seen from the baseline's folder, with forward slashes
    rule: str  # code
    scope: str  # the function or class that it stands in, as `Trainer.validate`; empty at the top of the file
    fingerprint: str
    message: str  # for whoever reads the file
    measured: Measured | None = None

    @property
    def order(self) -> tuple[str, ...]:
        """By which the file is sorted."""
        return self.path, self.rule, self.scope, self.fingerprint, self.message

    def to_json(self) -> dict[str, Any]:
        """As JSON's types, without what there is none of."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "measured"}
        if self.measured is not None:
            told = self.measured.to_json()
            values["measured"] = {name: value for name, value in told.items() if value is not None}
        return values


@immutable()
class Sifted:
    """Findings held against a baseline."""

    new: tuple[Finding, ...]
    known: tuple[tuple[Finding, Entry], ...]
    gone: tuple[Entry, ...]  # that no finding is


@immutable()
class Baseline:
    """The contents of a baseline."""

    file: Path
    entries: tuple[Entry, ...] = ()

    def path_of(self, filename: Path) -> str:
        """How a file is named in it."""
        try:
            return Path(os.path.relpath(filename.resolve(), self.file.parent.resolve())).as_posix()
        except ValueError:  # on another drive
            return filename.resolve().as_posix()

    def entry(self, finding: Finding, scope: str) -> Entry:
        """A finding as an entry of this baseline."""
        message = " ".join(finding.message.split())
        path = self.path_of(finding.filename)
        return Entry(path, finding.code, scope, finding.fingerprint, message, finding.measured)

    def to_text(self) -> str:
        """The file's text."""
        lines = [json.dumps(entry.to_json(), ensure_ascii=False) for entry in sorted(self.entries, key=_order)]
        listed = "[\n" + ",\n".join(f"    {line}" for line in lines) + "\n  ]" if lines else "[]"
        return f'{{\n  "format": {json.dumps(FORMAT)},\n  "version": {VERSION},\n  "findings": {listed}\n}}\n'


def _order(entry: Entry) -> tuple[str, ...]:
    return entry.order


# -- which findings are known -----------------------------------------------------------------------------------------


def sift(findings: Sequence[Finding], baseline: Baseline, scope_of: ScopeOf, *, lends: Callable[[str], bool]) -> Sifted:
    """Tell the new findings from the known ones. Each entry stands for one finding.

    An entry is a finding with the same fingerprint: one in its own file first, in its own function before others. What
    then is left of both was moved: an entry may stand for a finding in another file if `lends` says so of its own
    (which is gone, or was looked at). At last, an entry stands for one whose statement was edited around it, in the
    same function.
    """
    sieve = _Sieve(findings, baseline, scope_of)
    sieve.match(core, here=True)
    sieve.match(core, here=False, lends=lends)
    sieve.match(subject, here=True, same_scope=True)
    known = sieve.known
    return Sifted(
        tuple(finding for number, finding in enumerate(findings) if number not in known),
        tuple((findings[number], known[number]) for number in sorted(known)),
        tuple(sieve.entries),
    )


class _Sieve:
    """Findings and entries that wait for each other."""

    def __init__(self, findings: Sequence[Finding], baseline: Baseline, scope_of: ScopeOf) -> None:
        self.entries = list(baseline.entries)
        self.known: dict[int, Entry] = {}
        self._findings = findings
        self._scope_of = scope_of
        paths = {name: baseline.path_of(name) for name in {finding.filename for finding in findings}}
        self._paths = [paths[finding.filename] for finding in findings]

    def match(
        self,
        part: Callable[[str], str],
        *,
        here: bool,
        lends: Callable[[str], bool] = lambda path: True,
        same_scope: bool = False,
    ) -> None:
        """Pair those of a rule that agree in a part of their fingerprints; with `here` only within one file."""
        waiting: defaultdict[tuple[str, str, str], list[Entry]] = defaultdict(list)
        for entry in self.entries:
            if lends(entry.path):
                waiting[entry.path if here else "", entry.rule, part(entry.fingerprint)].append(entry)
        groups: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
        for number, finding in enumerate(self._findings):
            key = (self._paths[number] if here else "", finding.code, part(finding.fingerprint))
            if number not in self.known and key in waiting:
                groups[key].append(number)
        taken: set[int] = set()
        for key, numbers in groups.items():
            for number, entry in self._pairs(numbers, waiting[key], same_scope=same_scope):
                self.known[number] = entry
                taken.add(id(entry))
        self.entries = [entry for entry in self.entries if id(entry) not in taken]

    def _pairs(self, numbers: list[int], entries: list[Entry], *, same_scope: bool) -> Iterator[tuple[int, Entry]]:
        """Findings and entries, those in the same function first; each at most once."""
        left = list(entries)
        if len(numbers) == 1 and len(left) == 1 and not same_scope:  # nothing to choose
            yield numbers[0], left[0]
            return
        others = []
        for number in numbers:
            scope = self._scope_of(self._findings[number])
            entry = next((entry for entry in left if entry.scope == scope), None)
            if entry is None:
                others.append(number)
            else:
                left.remove(entry)
                yield number, entry
        if not same_scope:
            yield from zip(others, left, strict=False)


# -- the file ---------------------------------------------------------------------------------------------------------


def read_baseline(path: Path) -> Baseline | None:
    """The baseline in a file; None where there is no such file.

    Raises BaselineError for one that cannot be read or is not, in every part, what this release writes: what it says
    is known would come back, or be lost as soon as the file is written anew.
    """
    try:
        text = text_of(path, most=None)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _problem(path, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _problem(path, "not UTF-8") from None
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in text.splitlines()):
        raise _problem(path, "has unresolved merge conflicts; keep the lines of both sides")
    try:
        contents = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _problem(path, f"not valid JSON: {error}; {_HINT}") from None
    if not isinstance(contents, dict) or contents.get("format") != FORMAT:
        raise _problem(path, f'not a baseline (it lacks "format": "{FORMAT}")')
    if contents.get("version") != VERSION:
        raise _problem(path, f"version {contents.get('version')!r}; this release reads version {VERSION}")
    try:
        if odd := sorted(contents.keys() ^ {"format", "version", "findings"}):
            raise ValueError(f"`{odd[0]}` is {'missing' if odd[0] == 'findings' else 'unknown'}")
        listed = contents["findings"]
        if not isinstance(listed, list):
            raise TypeError("`findings` is not a list")
        return Baseline(path, tuple(_entry(value, number) for number, value in enumerate(listed, 1)))
    except (TypeError, ValueError) as error:
        raise _problem(path, f"{error}; {_HINT}") from None


def write_baseline(baseline: Baseline) -> None:
    """Write a baseline into its file, or leave that as it is and raise BaselineError."""
    from torchmemlint.fixes.write import write_atomically

    try:
        write_atomically(baseline.file, baseline.to_text().encode("utf-8", "backslashreplace"), create=True)
    except OSError as error:
        raise _problem(baseline.file, f"cannot be written: {error.strerror or error}") from None


def refreshed(entry: Entry, now: Entry) -> Entry:
    """An entry as its finding stands now; figures that are not known now stay."""
    return now if now.measured is not None else replace(now, measured=entry.measured)


def _problem(path: Path, what: str) -> BaselineError:
    error = BaselineError(f"{path}: {what}")
    error.file = path
    return error


_TEXTS = ("path", "rule", "scope", "fingerprint", "message")


def _entry(value: object, number: int) -> Entry:
    if not isinstance(value, dict):
        raise TypeError(f"finding {number} is not an object")
    if odd := sorted(value.keys() - {*_TEXTS, "measured"}):
        raise ValueError(f"finding {number} has an unknown key `{odd[0]}`")
    for name in _TEXTS:
        if not isinstance(value.get(name), str):
            raise TypeError(f"`{name}` of finding {number} is {value.get(name, 'missing')!r}")
    measured = read_measured(value["measured"]) if "measured" in value else None
    return Entry(**{name: value[name] for name in _TEXTS}, measured=measured)


def by_cost(entries: Iterable[Entry]) -> list[Entry]:
    """The most costly first, as far as it was measured; else in the order of the file."""
    return sorted(entries, key=lambda entry: (0 if entry.measured is None else -entry.measured.weight, entry.order))

"""What running a program once told of a finding: plain data, in words and in a file. Knows nothing of torch.

`torchmemlint verify --record` writes the file, and whatever shows findings afterwards shows the figures beside them.
`measured_schema.json` beside this module describes the file. Bytes, or bytes per step.
"""

from __future__ import annotations

import enum
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import Any

from torchmemlint.immutable import immutable
from torchmemlint.regular import text_of
from torchmemlint.sizes import format_size

FILE_NAME = "torchmemlint-measured.json"
FORMAT = "torchmemlint measurements"
VERSION = 1
SIMULATED = "simulated"
"""The backend whose figures come from a model of the device."""


_STEPS = 1000  # what grows by a byte per step outweighs what a run of so many steps adds to the peak


class Verdict(enum.Enum):
    """What the measurement says about a finding."""

    CONFIRMED = "confirmed"  # its fix saves bytes
    CHANGES_RESULTS = "fix changes results"  # whether or not it saves bytes
    FIX_FAILS = "fix fails"  # the fixed program does not run
    NO_EFFECT = "no effect here"
    NOT_REACHED = "not reached by this run"
    NOT_TRIED = "no fix tried"  # there is none, or it was not asked for


class MeasurementsError(Exception):
    """A file of measurements that cannot be read or written; the message names it and says why."""


@immutable(frozen=True)
class Measured:
    """The figures of one finding.

    What its fix saves: 0 where that is nothing, or no more than chance; None where it was not compared. Without a
    fix to compare with: what is kept per step of what one of its lines made, or by the loop around it.
    """

    verdict: Verdict
    backend: str  # `cuda`, `cpu` or `simulated`
    card: str  # the GPU, measured or simulated; empty on the host
    torch: str
    date: str  # YYYY-MM-DD
    program: str  # as it was called
    per_step: float | None = None
    peak: int | None = None
    reserved: int | None = None  # by the allocator
    host_per_step: float | None = None  # on the host's heap, beside tensors
    line_per_step: float | None = None
    loop_per_step: float | None = None

    @property
    def figure(self) -> str:
        """What it costs, most telling first: `+48.0 MiB per step`. Growth hides the peak, which grows with it."""
        told = (
            (self.per_step, "per step"),
            (self.peak, "at the peak"),
            (self.reserved, "reserved"),
            (self.host_per_step, "per step on the host's heap"),
            (self.line_per_step, "per step kept"),
            (self.loop_per_step, "per step kept in the loop around it"),
        )
        return next((f"+{format_size(nbytes)} {unit}" for nbytes, unit in told if nbytes), "")

    @property
    def weight(self) -> float:
        """By which findings are ordered: bytes of every step before those of the peak."""
        per_step = max(self.per_step or 0, self.line_per_step or 0, self.loop_per_step or 0)
        return per_step * _STEPS + (self.peak or 0)

    @property
    def outcome(self) -> str:
        """The figure, and what else is to be known before the fix is made."""
        warning = {Verdict.CHANGES_RESULTS: "the fix changes results", Verdict.FIX_FAILS: "the fix fails"}
        figure = self.figure or ("" if self.verdict is Verdict.FIX_FAILS else Verdict.NO_EFFECT.value)
        return "; ".join(part for part in (figure, warning.get(self.verdict, "")) if part)

    @property
    def conditions(self) -> str:
        """On what it was measured, and when; of what shows no effect, also with which program."""
        device = f"{self.backend} {self.card}".rstrip()
        program = "" if self.figure else f"`{self.program}`, "
        return f"{program}{device}, {self.date}"

    @property
    def sentence(self) -> str:
        """All of it: `+579.0 KiB per step (simulated A100 40GB, 2026-11-21)`."""
        return f"{self.outcome} ({self.conditions})"

    @property
    def brief(self) -> str:
        """The outcome, and whether it is a model's: `+579.0 KiB per step, simulated`."""
        return f"{self.outcome}, {SIMULATED}" if self.backend == SIMULATED else self.outcome

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        return {**asdict(self), "verdict": self.verdict.value}


@immutable(frozen=True)
class Measurement:
    """A line of the file: the figures of the finding that has this fingerprint in this file."""

    fingerprint: str
    code: str
    file: str  # as seen from the folder in which the measurements lie, with forward slashes
    measured: Measured

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        return {
            "fingerprint": self.fingerprint,
            "code": self.code,
            "file": self.file,
            "measured": self.measured.to_json(),
        }


class Measurements:
    """The contents of a file of measurements.

    A fingerprint does not hold the file, so two files may share one: then the path decides. Figures of a file that is
    no longer there belong to the one that has their finding now: it was moved.
    """

    def __init__(self, folder: Path, lines: Iterable[Measurement] = ()) -> None:
        self._folder = folder.resolve()
        self._lines: defaultdict[str, list[Measurement]] = defaultdict(list)
        for line in lines:
            self._lines[line.fingerprint].append(line)

    def of(self, fingerprint: str, filename: Path) -> Measured | None:
        """The figures of a finding, by its fingerprint and its file."""
        if fingerprint not in self._lines:
            return None
        line = self._line(fingerprint, self._relative(filename))
        return None if line is None else line.measured

    def with_figures(self, fingerprint: str, code: str, filename: Path, measured: Measured) -> Measurements:
        """These, and new figures of one finding in the place of its old ones."""
        file = self._relative(filename)
        old = self._line(fingerprint, file)
        kept = [line for lines in self._lines.values() for line in lines if line is not old]
        return Measurements(self._folder, [*kept, Measurement(fingerprint, code, file, measured)])

    def _line(self, fingerprint: str, file: str) -> Measurement | None:
        lines = self._lines.get(fingerprint, ())
        here = [line for line in lines if line.file == file]
        moved = [line for line in lines if line.file != file and not (self._folder / line.file).exists()]
        if here:
            return here[0]
        return moved[0] if len(moved) == 1 else None

    def _relative(self, filename: Path) -> str:
        try:
            return Path(os.path.relpath(filename.resolve(), self._folder)).as_posix()
        except ValueError:  # on another drive
            return filename.name

    def to_text(self) -> str:
        """The file's text: in the order of files and codes, so that versions of it can be compared."""
        import json

        lines = [line for lines in self._lines.values() for line in lines]
        lines.sort(key=lambda line: (line.file, line.code, line.fingerprint))
        contents = {"format": FORMAT, "version": VERSION, "measurements": [line.to_json() for line in lines]}
        return json.dumps(contents, indent=2, ensure_ascii=False) + "\n"


def read_measurements(path: Path) -> Measurements | None:
    """The measurements of a file; None where there is no such file.

    Raises MeasurementsError for one that cannot be read or is not, in every part, what this release writes: whoever
    writes it anew would lose the rest.
    """
    import json

    try:
        text = text_of(path, most=None)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise MeasurementsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise MeasurementsError(f"{path}: not UTF-8") from None
    try:
        contents = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MeasurementsError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(contents, dict) or contents.get("format") != FORMAT:
        raise MeasurementsError(f'{path}: not a file of measurements (it lacks "format": "{FORMAT}")')
    if contents.get("version") != VERSION:
        raise MeasurementsError(f"{path}: version {contents.get('version')!r}; this release reads version {VERSION}")
    try:
        lines = _values(contents, _FILE)["measurements"]
        return Measurements(path.parent, [_line_of(line) for line in lines])
    except (TypeError, ValueError) as error:
        raise MeasurementsError(f"{path}: {error}") from None


# --- from JSON

_FILE = {"format": str, "version": int, "measurements": list}
_LINE = {"fingerprint": str, "code": str, "file": str, "measured": dict}
_TEXTS = ("verdict", "backend", "card", "torch", "date", "program")
_NUMBERS = tuple(item.name for item in fields(Measured) if item.name not in _TEXTS)


def _line_of(value: object) -> Measurement:
    line = _values(value, _LINE)
    return Measurement(line["fingerprint"], line["code"], line["file"], _measured(line["measured"]))


def read_measured(value: object) -> Measured:
    """One finding's figures from JSON, where what is not there is unknown; raises TypeError or ValueError."""
    return _measured({**dict.fromkeys(_NUMBERS), **value} if isinstance(value, dict) else value)


def _measured(value: object) -> Measured:
    kinds: dict[str, Any] = {**dict.fromkeys(_TEXTS, str), **dict.fromkeys(_NUMBERS, (int, float, type(None)))}
    values = _values(value, kinds)
    for name in _NUMBERS:
        number = values[name]
        if isinstance(number, bool) or (number is not None and not math.isfinite(number)):
            raise ValueError(f"`{name}` is {number}")
    date.fromisoformat(values["date"])
    return Measured(**{**values, "verdict": Verdict(values["verdict"])})


def _values(value: object, kinds: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an object that has exactly these keys; raises TypeError or ValueError."""
    if not isinstance(value, dict):
        raise TypeError("a measurement is not an object")
    if odd := sorted(value.keys() ^ kinds.keys()):
        missing = odd[0] in kinds
        raise ValueError(f"a measurement {'lacks' if missing else 'has an unknown key'} `{odd[0]}`")
    for key, kind in kinds.items():
        if not isinstance(value[key], kind):
            raise TypeError(f"`{key}` of a measurement is {value[key]!r}")
    return value

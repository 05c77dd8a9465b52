"""Whether a program fits a GPU, and with which value of one of its options.

The program itself is run, on a simulated GPU and with shapes only (`--fake`), so that nothing is computed, and one that
is far too large runs to its end. Knows nothing of torch; bytes unless said otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from torchmemlint.immutable import immutable
from torchmemlint.runtime.commands import CannotMeasure, Options
from torchmemlint.runtime.launch import launch, workspace
from torchmemlint.runtime.order import Program
from torchmemlint.runtime.results import End, RunResult
from torchmemlint.runtime.runs import Progress
from torchmemlint.runtime.simulated import cards
from torchmemlint.runtime.what_ifs import ALTERING, GPUS, WhatIf
from torchmemlint.sizes import parse_size

UNBOUNDED = 1 << 50
"""A limit that no program meets."""
_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
_WRITTEN = re.compile(r"(?:--)?(?P<name>[A-Za-z][\w.-]*)=(?P<low>\d+)\.\.(?P<high>\d+)")


@immutable()
class Variation:
    """The powers of two between two bounds, for one option of a program: `batch-size=1..256`."""

    name: str
    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Variation:
        """Raises ValueError for what is written otherwise, and where no power of two lies between."""
        written = _WRITTEN.fullmatch(text)
        if written is None:
            raise ValueError(f"not a range: {text!r} (write it like batch-size=1..256)")
        found = cls(written["name"], int(written["low"]), int(written["high"]))
        if not found.values:
            raise ValueError(f"no power of two lies in {found.low}..{found.high}")
        return found

    @property
    def values(self) -> tuple[int, ...]:
        """What is tried, smallest first."""
        powers = (1 << exponent for exponent in range(self.high.bit_length()))
        return tuple(value for value in powers if self.low <= value <= self.high)

    def given(self, arguments: Sequence[str]) -> int | None:
        """The value that the arguments have; None where they have none."""
        for index, word in enumerate(arguments):
            name, separator, value = word.partition("=")
            if self._is(name):
                value = value if separator else next(iter(arguments[index + 1 : index + 2]), "")
                return int(value) if value.isdecimal() else None
        return None

    def applied(self, arguments: Sequence[str], value: int) -> tuple[str, ...]:
        """The arguments with another value; at the end as `--name value` where they have none."""
        for index, word in enumerate(arguments):
            name, separator, _ = word.partition("=")
            if self._is(name) and separator:
                return (*arguments[:index], f"{name}={value}", *arguments[index + 1 :])
            if word == f"--{self.name}":
                return (*arguments[: index + 1], str(value), *arguments[index + 2 :])
        return (*arguments, f"--{self.name}", str(value))

    def _is(self, word: str) -> bool:
        return word in (f"--{self.name}", self.name)  # the second is Hydra's: batch_size=8


@immutable()
class Margin:
    """What is counted beside what the allocator reserves and a CUDA context: a share of the first, and bytes."""

    share: float = 0.0
    nbytes: int = 0

    @classmethod
    def parse(cls, text: str) -> Margin:
        """`18%`, `1.5GiB` or `18%+1.5GiB`. Raises ValueError for what is written otherwise."""
        first, plus, size = text.partition("+")
        share = _SHARE.fullmatch(first)
        if share is None:
            plus, size = "+", text
        if (share is None and "+" in text) or (plus and not size.strip()) or size.strip().isdecimal():
            raise ValueError(f"not a margin: {text!r} (write it like 18%, 1.5GiB or 18%+1.5GiB)")
        return cls(float(share[1]) / 100 if share else 0.0, parse_size(size.strip()) if plus else 0)

    def with_it(self, reserved: int) -> int:
        """What a program is taken to need whose allocator reserves so much."""
        return reserved + cards.CONTEXT[1] + round(self.share * reserved) + self.nbytes

    def left(self, capacity: int) -> int:
        """The most that an allocator may reserve of a card's bytes; negative where nothing is left for it."""
        return int((capacity - cards.CONTEXT[1] - self.nbytes) / (1 + self.share))


NO_MARGIN = Margin()


@immutable()
class Tried:
    """A run. `needed` is what the allocator reserves with a CUDA context and a margin, where it has all it asks for.

    Beyond the card's bytes, cached blocks are given back first: `fits` is told by a second run where that may suffice.
    """

    value: int | None  # of the varied option; None for the program as it is given
    peak: int
    reserved: int
    needed: int
    fits: bool
    steps: int


@immutable()
class Changed:
    """The program with a change. `tried` is None where it cannot be applied, or the program then fails: `problem`."""

    name: str
    words: str
    price: str
    tried: Tried | None
    saved: int = 0  # of what the program needs as it is
    problem: str = ""


@immutable()
class FitReport:
    """All of it. `given` is the program with its own arguments, `tried` the values of the varied option, in order."""

    program: str
    card: str
    capacity: int
    context: int
    backend: str
    given: Tried
    margin: Margin = NO_MARGIN
    option: str | None = None
    tried: tuple[Tried, ...] = ()
    changes: tuple[Changed, ...] = ()

    @property
    def remedies(self) -> tuple[Changed, ...]:
        """The changes with which the program fits, what saves most first."""
        return tuple(one for one in self.changes if one.tried is not None and one.tried.fits)

    @property
    def missing(self) -> int:
        """By how many bytes the program as it is needs more than there are; 0 where it fits."""
        return 0 if self.given.fits else max(self.given.needed - self.capacity, 0)

    @property
    def largest(self) -> int | None:
        """The largest value that fits, of those between which it was looked for."""
        return max((one.value for one in self.tried if one.fits and one.value is not None), default=None)

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        return {**asdict(self), "fits": self.given.fits, "missing": self.missing, "largest": self.largest}


def fit(
    program: Program,
    options: Options,
    variation: Variation | None,
    progress: Progress,
    what_ifs: Sequence[WhatIf] = (),
    gpus: int = GPUS,
    margin: Margin = NO_MARGIN,
) -> FitReport:
    """Run a program as it is, with values of an option, and with changes; `options` name the card.

    `gpus` is how many share the work with those changes that share it out.

    Larger values are taken to need more, so that a few runs suffice: it is looked between one that fits and one that
    does not. Raises CannotMeasure for a program that does not run, or uses no GPU.
    """
    card = cards.card(options.card, options.memory)
    search = _Search(program, replace(options, backend="simulated", fake=True), card.total, progress, gpus, margin)
    own = None if variation is None else variation.given(program.arguments)
    given = search.tried(program, own)
    tried: dict[int, Tried] = {}
    if variation is not None:
        values = variation.values
        if own in values:
            tried[own] = given

        def fits(value: int) -> bool:
            if value not in tried:
                changed = replace(program, arguments=variation.applied(program.arguments, value))
                tried[value] = search.tried(changed, value)
            return tried[value].fits

        largest(values, fits, known=own)
    changes = [search.changed(program, one, given) for one in what_ifs]
    return FitReport(
        program.words,
        cards.title(card),
        card.total,
        cards.CONTEXT[1],
        search.description,
        given,
        margin,
        None if variation is None else variation.name,
        tuple(tried[value] for value in sorted(tried)),
        tuple(sorted(changes, key=lambda one: (one.tried is None, -one.saved))),
    )


def largest(values: Sequence[int], fits: Callable[[int], bool], known: int | None = None) -> int | None:
    """The largest of ascending values that fits, by bisection; None where none does. `known` is asked for first."""
    low, high = -1, len(values)  # the one fits, the other does not
    while high - low > 1:
        middle = values.index(known) if known in values else (low + high) // 2
        known = None
        low, high = (middle, high) if fits(values[middle]) else (low, middle)
    return values[low] if low >= 0 else None


class _Search:
    def __init__(
        self, program: Program, options: Options, capacity: int, progress: Progress, gpus: int, margin: Margin
    ) -> None:
        self._options = options
        self._gpus = gpus
        self._margin = margin
        self._capacity = capacity
        self._progress = progress
        self._runs = 0
        self.description = ""

    def changed(self, program: Program, what_if: WhatIf, given: Tried) -> Changed:
        """What a program needs with a change, run with it."""
        about = what_if.name, what_if.words, what_if.price
        try:
            made = self.tried(program, None, what_if)
        except CannotMeasure as error:
            problem = str(error).removeprefix("the program does not run: ").removeprefix(f"`{program.words}`: ")
            return Changed(*about, None, problem=problem)
        return Changed(*about, made, given.needed - made.needed)

    def tried(self, program: Program, value: int | None, change: WhatIf | None = None) -> Tried:
        """What a program needs, with a change if one is given, and whether it fits."""
        free = self._margin.left(self._capacity)
        result = self._run(program, UNBOUNDED, change)
        uses = [use for use in result.faces if use.peak_reserved is not None]
        if not uses:
            raise CannotMeasure(replace(result, error="it puts nothing on a GPU", traceback=""))
        peak, reserved = max(use.peak for use in uses), max(use.peak_reserved or 0 for use in uses)
        self.description = self.description or result.description
        fits = reserved <= free
        if not fits and peak <= free:  # cached blocks that are given back may make room
            fits = self._run(program, free, change).out_of_memory is None
        return Tried(value, peak, reserved, self._margin.with_it(reserved), fits, result.steps)

    def _run(self, program: Program, limit: int, change: WhatIf | None) -> RunResult:
        self._runs += 1
        number = self._runs
        self._progress.begin(program.words, number, None)
        with workspace() as folder:
            settings: dict[str, Any] = {}
            if change is not None:
                settings = {"analysis": ALTERING, "options": {"what_if": change.name, "gpus": self._gpus}}
            order = replace(self._options, limit=limit).order(program, folder, **settings)
            result = launch(order, lambda made: self._progress.steps(number, made))
        self._progress.end(number)
        failed = result.end is End.FAILED and result.out_of_memory is None
        if failed or not result.usable or result.exit_code:
            error = result.error or f"it ended with code {result.exit_code}"
            raise CannotMeasure(replace(result, error=f"`{program.words}`: {error}"))
        if change is not None and not any(one.get("applied") for one in result.analyses):
            raise CannotMeasure(replace(result, error=f"cannot be applied: it needs {change.needs}"))
        return result

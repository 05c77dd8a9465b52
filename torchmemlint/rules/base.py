"""What a rule is: metadata, a documentation page, and one question to the facts."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from torchmemlint.findings import Applicability, Finding, Severity

if TYPE_CHECKING:
    from torchmemlint.flow.facts import FileFacts
    from torchmemlint.rules.told import Told


class Tag(enum.Enum):
    """How an editor shows the code that a finding stands on, besides underlining it."""

    UNNECESSARY = "unnecessary"  # faded: all of it does nothing, not only an argument
    DEPRECATED = "deprecated"  # struck through: its name goes away


class Rule(ABC):
    """One anti-pattern. Subclasses live one to a file, in a folder per family, each with its page beside it.

    The page of `x.py` is `x.md`; a plugin's may be the docstring of the class. It holds the sections `## What it does`,
    `## Why it costs memory`, `## Example`, `## Use instead`, `## Fix safety`, `## When it stays silent` and
    `## References`.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]  # the highest it gives; one finding may carry less
    on: ClassVar[bool] = True  # on by default
    fix: ClassVar[Applicability | None] = None  # the best applicability of its fixes
    tag: ClassVar[Tag | None] = None
    url: ClassVar[str] = ""  # where a plugin's rule has a page; our own have theirs in the documentation
    why: ClassVar[str]  # why it costs memory, in one sentence; part of the full output

    @abstractmethod
    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield what this rule has to say about one file."""


class SilentRule(Rule):
    """A rule that says nothing itself: what runs the rules reports what it is about, as a file that nobody can read."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield nothing."""
        return iter(())


class CaseRule(SilentRule):
    """A rule about what runs of the program show: `rules.cases` yields its findings, with those of all such rules."""


class TellingRule(CaseRule):
    """One that words its findings itself; those of kept graphs and of wasted passes are worded by `rules.cases`."""

    since: tuple[int, ...] = ()  # the release of torch with which what it asks for came

    @abstractmethod
    def tell(self, told: Told) -> Finding | None:
        """Say what a case is; None where something else that the program says speaks against it."""

"""What a rule is: metadata, a documentation page, and one question to the facts."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from torchmemlint.findings import Applicability, Finding, Severity

if TYPE_CHECKING:
    from torchmemlint.flow.facts import FileFacts
    from torchmemlint.rules.told import Told


class Tag(enum.Enum):
    """How an editor shows the code of a finding, besides underlining it."""

    UNNECESSARY = "unnecessary"  # faded: all of it does nothing, not only an argument
    DEPRECATED = "deprecated"  # struck through: its name goes away


class Stage(enum.Enum):
    """How far a rule has come."""

    PREVIEW = "preview"  # not yet right often enough, or not yet shown to be: `--no-preview` turns it off
    STABLE = "stable"
    DEPRECATED = "deprecated"  # a later release will not have it: on only where its own code or name selects it


class Rule(ABC):
    """One anti-pattern: the metadata below, a page that documents it, and one question to the facts.

    A plugin's rule is a class with the metadata, and its page is the docstring. A page holds the sections `## What it
    does`, `## Why it costs memory`, `## Example`, `## Use instead`, `## Fix safety`, `## When it stays silent` and
    `## References`. Our own rules have one file each, in a folder per family. Beside `x.py` is its page `x.md`, with
    the metadata as its head.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]  # the highest it gives; one finding may carry less
    on: ClassVar[bool] = True  # on by default
    fix: ClassVar[Applicability | None] = None  # the best applicability of its fixes
    tag: ClassVar[Tag | None] = None
    stage: ClassVar[Stage] = Stage.STABLE
    instead: ClassVar[str] = ""  # of a deprecated rule: the code of the one that takes its place
    version: ClassVar[str] = ""  # of the release with which it came to that stage, as "0.1", if it is known
    url: ClassVar[str] = ""  # where a plugin's rule has a page; our own have theirs in the documentation
    page: ClassVar[Path | None] = None  # of a rule of our own
    why: ClassVar[str]  # why it costs memory, in one sentence; part of the full output

    @abstractmethod
    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield what this rule has to say about one file."""


class TellingRule(Rule):
    """One about what runs of the program show: `rules.cases` yields its findings, which it words itself."""

    since: tuple[int, ...] = ()  # the release of torch with which what it asks for came

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield nothing."""
        return iter(())

    @abstractmethod
    def tell(self, told: Told) -> Finding | None:
        """Say what a case is; None where something else that the program says speaks against it."""

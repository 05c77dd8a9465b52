"""Our own rules, by their pages: the head of a page is the metadata of a rule.

The module of a rule, and the analysis behind it, is imported only to check. A run that takes all results from earlier
ones, or only asks which rules are on, needs no more than the pages. A rule without a module says nothing itself:
`rules.cases` words its findings, or what runs the rules.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.rules.base import Rule, Stage, Tag

if TYPE_CHECKING:
    from torchmemlint.flow.facts import FileFacts

_MARK = "---\n"  # before and after the head
_READ: dict[str, Any] = {"severity": Severity, "fix": Applicability, "tag": Tag, "on": lambda text: text != "false"}


class Listed(Rule):
    """A rule that is imported when it is asked for more than its page."""

    head: ClassVar[dict[str, Any]]  # what its page says of it
    kind: ClassVar[str] = ""  # the class in the module of the page's name, if there is one

    @cached_property
    def whole(self) -> Rule:
        """The rule itself."""
        assert self.page is not None
        if not self.kind:
            return self
        module = importlib.import_module(f"{__package__}.{self.page.parent.name}.{self.page.stem}")
        found: type[Rule] = getattr(module, self.kind)
        for name, value in self.head.items():
            setattr(found, name, value)
        return found()

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """As the rule itself."""
        return self.whole.check(facts) if self.kind else iter(())


def whole(rule: Rule) -> Rule:
    """The rule itself."""
    return rule.whole if isinstance(rule, Listed) else rule


def read() -> tuple[Rule, ...]:
    """Every rule that has a page here, ordered by code."""
    found = [_listed(path) for path in Path(__file__).parent.glob("*/tml*.md")]
    return tuple(sorted(found, key=lambda rule: rule.code))


def metadata(page: Path) -> dict[str, Any]:
    """What the head of a page says of its rule, with the page itself."""
    head = page.read_text(encoding="utf-8").split(_MARK)[1]
    said = dict(line.split(": ", 1) for line in head.splitlines())
    stage, _, version = said.pop("status").partition(" since ")
    found = {"page": page, "kind": said.pop("class", ""), "stage": Stage(stage), "version": version}
    return {**found, **{name: _READ.get(name, str)(text) for name, text in said.items()}}


def body(page: Path) -> str:
    """The page without its head."""
    return page.read_text(encoding="utf-8").split(_MARK, 2)[2]


def _listed(page: Path) -> Rule:
    members = metadata(page)
    rule: Rule = type(members["kind"] or members["code"], (Listed,), {**members, "head": members})()
    return rule

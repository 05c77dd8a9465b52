"""Findings, counted by rule and by project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from torchmemlint import __version__
from torchmemlint.immutable import immutable

VERSION = 1  # of the JSON; `schema.json` beside this module describes it
SEVERITIES = ("error", "warning", "advice")


@immutable()
class Project:
    """What was looked at. Sizes are None where a report does not tell them."""

    name: str
    files: int | None = None
    lines: int | None = None
    torch_files: int | None = None  # those that mention torch or a framework built on it: others have no findings
    torch_lines: int | None = None


@immutable()
class Found:
    """One finding."""

    project: str
    path: str  # within the project
    row: int
    column: int
    code: str
    name: str  # of the rule
    severity: str
    message: str
    fingerprint: str
    snippet: str = ""  # the row of code; "" where it cannot be had
    confidence: str = "certain"

    @property
    def place(self) -> tuple[str, str, int, int, str]:
        """What findings are ordered by."""
        return self.project, self.path, self.row, self.column, self.code


def by_code(found: Iterable[Found]) -> dict[str, list[Found]]:
    """The findings of each rule, in their order."""
    sorted_out: dict[str, list[Found]] = {}
    for one in found:
        sorted_out.setdefault(one.code, []).append(one)
    return sorted_out


@immutable()
class Rule:
    """How often a rule speaks."""

    code: str
    name: str
    findings: int
    severities: Mapping[str, int]
    projects: int  # in how many it speaks
    prevalence: float  # their share of the projects that mention torch
    per_thousand_lines: float | None  # of files that mention torch


@immutable()
class Census:
    """A corpus."""

    projects: tuple[Project, ...]
    found: tuple[Found, ...]
    errors: tuple[str, ...] = ()  # what went wrong: a line each

    @property
    def looked_at(self) -> int:
        """How many projects mention torch, or may do."""
        return sum(one.torch_files != 0 for one in self.projects)

    @property
    def torch_lines(self) -> int | None:
        """Lines of the files that mention torch; None where a project does not tell."""
        sizes = [one.torch_lines for one in self.projects]
        return None if None in sizes or not sizes else sum(size for size in sizes if size is not None)

    def rules(self) -> list[Rule]:
        """The rules that speak, those in the most projects first."""
        rules = [self._rule(code, found) for code, found in by_code(self.found).items()]
        return sorted(rules, key=lambda rule: (-rule.projects, -rule.findings, rule.code))

    def by_project(self) -> Counter[str]:
        """How many findings there are in each project."""
        return Counter(one.project for one in self.found)

    def to_json(self) -> dict[str, Any]:
        """All of it; `saved.py` reads it back."""
        counts = self.by_project()
        severities = Counter(one.severity for one in self.found)
        return {
            "version": VERSION,
            "torchmemlint": __version__,
            "totals": {
                "projects": len(self.projects),
                "projects_with_torch": self.looked_at,
                "torch_lines": self.torch_lines,
                "findings": len(self.found),
                "severities": {name: severities[name] for name in SEVERITIES},
            },
            "rules": [asdict(rule) for rule in self.rules()],
            "projects": [{**asdict(one), "findings": counts[one.name]} for one in self.projects],
            "findings": [asdict(one) for one in self.found],
            "errors": list(self.errors),
        }

    def _rule(self, code: str, found: Sequence[Found]) -> Rule:
        severities = Counter(one.severity for one in found)
        projects = len({one.project for one in found})
        return Rule(
            code,
            found[0].name,
            len(found),
            {name: severities[name] for name in SEVERITIES},
            projects,
            round(projects / self.looked_at, 4) if self.looked_at else 0.0,
            round(1000 * len(found) / self.torch_lines, 4) if self.torch_lines else None,
        )


def census_of(projects: Iterable[Project], found: Iterable[Found], errors: Iterable[str] = ()) -> Census:
    """A census, in an order that does not depend on that of its parts."""
    return Census(
        tuple(sorted(projects, key=lambda one: one.name)),
        tuple(sorted(found, key=lambda one: one.place)),
        tuple(errors),
    )

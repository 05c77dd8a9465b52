"""Findings of a plugin's rule."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torchmemlint.doubts import Doubt, ordered
from torchmemlint.findings import Evidence, Finding, Fix, Severity, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.plugins.calling import Call
from torchmemlint.rules.base import Rule
from torchmemlint.syntax.source_module import Site


def report(
    rule: Rule,
    facts: FileFacts,
    place: Call | Site | Span,
    message: str,
    *,
    severity: Severity | None = None,
    evidence: Iterable[tuple[Call | Site | Span, str]] = (),
    fix: Fix | None = None,
    doubts: Iterable[Doubt] = (),
) -> Finding:
    """A finding of `rule` at a place of the file.

    `severity` is the rule's own by default. `evidence` says, place by place, how the analysis came to it. `doubts`
    are what the rule could not determine: with one, the finding is no longer certain. A fact may lie in another file
    that the analysis was led to. It is then reported when that file is checked.
    """
    span = _span(place)
    found = tuple(Evidence(words, _span(where), _elsewhere(where, facts)) for where, words in evidence)
    level = severity or rule.severity
    # What the analysis followed into another file is that file's: the engine leaves it to the check of it.
    path, statement = facts.path, facts.source.statement_span(span)
    if isinstance(place, Site) and place.piece.path != path:
        path, statement = place.piece.path, span
    return Finding(
        rule.code, rule.name, level, message, path, span, statement, found, fix, rule.why, doubts=ordered(doubts)
    )


def _span(place: Call | Site | Span) -> Span:
    return place if isinstance(place, Span) else place.span


def _elsewhere(place: Call | Site | Span, facts: FileFacts) -> Path | None:
    return place.piece.path if isinstance(place, Site) and place.piece.path != facts.path else None

"""From facts to findings: evidence, spans, and the edits that several rules make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import libcst as cst

from torchmemlint.doubts import Doubt, ordered
from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Severity, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.values import Step
from torchmemlint.rules.base import Rule
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of

Link = tuple[Site, str]  # a place and what it contributes


def report(
    rule: Rule,
    facts: FileFacts,
    site: Site,
    message: str,
    *,
    severity: Severity | None = None,
    evidence: Iterable[Link] = (),
    fix: Fix | None = None,
    doubts: Iterable[Doubt] = (),
) -> Finding:
    """A finding of `rule` at `site`."""
    span = site.span
    return Finding(
        rule.code,
        rule.name,
        severity or rule.severity,
        message,
        site.piece.path,
        span,
        site.piece.statement_span(span),
        chain(evidence, facts.path),
        fix,
        rule.why,
        doubts=ordered(doubts),
    )


def chain(links: Iterable[Link], path: Path) -> tuple[Evidence, ...]:
    """Evidence for a finding in `path`, in the order given, each place and sentence once."""
    found: dict[Evidence, None] = {}
    for site, message in links:
        elsewhere = site.piece.path if site.piece.path != path else None
        found[Evidence(message, site.span, elsewhere)] = None
    return tuple(found)


def history(steps: Sequence[Step]) -> list[Link]:
    """A value's history as evidence."""
    return [(step.site, step.text) for step in steps]


_ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.List,
    cst.Dict,
    cst.ListComp,
)


def call_method(site: Site, method: str) -> tuple[Edit, ...]:
    """Edits that put `.method()` behind an expression, with parentheses where it needs them."""
    node = site.node
    span = site.span
    if isinstance(node, _ATOMS):
        return (Edit(Span(span.end, span.end), f".{method}()"),)
    return (
        Edit(Span(span.start, span.start), "("),
        Edit(Span(span.end, span.end), f").{method}()"),
    )


def detach_fix(site: Site, *, safe: bool = True) -> Fix | None:
    """Detach the expression at `site`, where that is in the analysed file."""
    if site.piece.context:
        return None
    return Fix(
        f"Detach `{text_of(site.node)}` from its graph",
        Applicability.SAFE if safe else Applicability.UNSAFE,
        call_method(site, "detach"),
    )


def is_test(facts: FileFacts) -> bool:
    """A module of tests: what it computes is small, and whether it has a graph may be its subject."""
    return facts.program.is_test

"""From facts to findings: evidence, spans, and the edits that several rules make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from torchmemlint.amounts import Amount
from torchmemlint.doubts import OF_WORTH, Doubt, ordered
from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Position, Severity, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir.ops import Op
from torchmemlint.rules.base import Rule
from torchmemlint.syntax import cst
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened, text_of


def report(
    rule: Rule,
    facts: FileFacts,
    span: Span,
    message: str,
    evidence: Iterable[Evidence],
    *,
    severity: Severity | None = None,
    fix: Fix | None = None,
    doubts: Iterable[Doubt] = (),
    amount: Amount | None = None,
) -> Finding:
    """A finding of `rule` at a place of the file, with others that contribute to it.

    `amount` is what it concerns: little of that is advice, and is said.
    """
    whole, links = facts.source.statement_span(span), tuple(evidence)
    doubted = ordered((*doubts, *doubts_of(amount)))
    if amount is not None:
        severity = severity if amount.is_much else Severity.ADVICE
    if fix is not None and fix.applicability is Applicability.SAFE and not _is_safe(facts, fix, doubted):
        fix = replace(fix, applicability=Applicability.UNSAFE)
    severity = severity or rule.severity
    return Finding(
        rule.code, rule.name, severity, message, facts.path, span, whole, links, fix, rule.why, doubted, amount
    )


def _is_safe(facts: FileFacts, fix: Fix, doubts: Iterable[Doubt]) -> bool:
    return OF_WORTH.issuperset(doubts) and not _drops_comment(facts, fix)


def _drops_comment(facts: FileFacts, fix: Fix) -> bool:
    """Does a fix take a comment away?"""
    source = facts.source
    replaced = (edit for edit in fix.edits if "#" in edit.span.text(source.rows))
    return any(comment not in edit.content for edit in replaced for _, comment in source.comments_in(edit.span))


def doubts_of(amount: Amount | None) -> frozenset[Doubt]:
    """Return what makes it doubtful that so much is worth a change."""
    return frozenset((Doubt.LITTLE,)) if amount is not None and amount.is_little else frozenset()


def report_operation(
    rule: Rule,
    facts: FileFacts,
    op: Op,
    message: str,
    *,
    severity: Severity | None = None,
    evidence: Iterable[tuple[Op, str]] = (),
    fix: Fix | None = None,
    doubts: Iterable[Doubt] = (),
    amount: Amount | None = None,
) -> Finding:
    """A finding of `rule` at an operation of the file, with others that contribute to it, in other files, too."""
    links = dict.fromkeys(Evidence(text, *facts.place(other)) for other, text in evidence)
    return report(
        rule,
        facts,
        facts.source.span_of(op.span),
        message,
        links,
        severity=severity,
        fix=fix,
        doubts=doubts,
        amount=amount,
    )


def written(facts: FileFacts, op: Op, limit: int) -> str:
    """The source text of an operation, in one line that is not too long."""
    text = facts.source.span_of(op.span).text(facts.source.rows)
    return shortened(text, limit)


def offered(title: str, applicability: Applicability, edits: tuple[Edit, ...]) -> Fix:
    """A fix that makes some edits, each once; a hint where there are none."""
    return Fix(title, applicability if edits else Applicability.HINT, tuple(dict.fromkeys(edits)))


def call_method(site: Site, method: str) -> tuple[Edit, ...]:
    """Edits that put `.method()` behind an expression, with parentheses where it needs them.

    Of `a if test else b` behind each of the two that is no number.
    """
    node = site.node
    span = site.span
    if isinstance(node, cst.IfExp):
        return tuple(
            edit
            for one in (node.body, node.orelse)
            if not _is_number(one)
            for edit in call_method(Site(site.piece, one), method)
        )
    atoms = cst.Name | cst.Attribute | cst.Call | cst.Subscript | cst.List | cst.Dict | cst.ListComp
    if isinstance(node, atoms):
        return (Edit(Span(span.end, span.end), f".{method}()"),)
    if _closes_at_once(node):
        behind = Position(span.end.row, span.end.column + 1)
        return (Edit(Span(behind, behind), f".{method}()"),)
    return (Edit(Span(span.start, span.start), "("), Edit(Span(span.end, span.end), f").{method}()"))


def _closes_at_once(node: cst.CSTNode) -> bool:
    """Has an expression brackets of its own, the inner one right behind it?"""
    match getattr(node, "rpar", ()):
        case [cst.RightParen(whitespace_before=cst.SimpleWhitespace(value="")), *_]:
            return True
    return False


def _is_number(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("item")) | cst.Name("float" | "int")) | cst.BaseNumber():
            return True
    return False


def detach_fix(site: Site, *, safe: bool = True) -> Fix:
    """Detach the expression at `site`."""
    return Fix(
        f"Detach `{shortened(text_of(site.node))}` from its graph",
        Applicability.SAFE if safe else Applicability.UNSAFE,
        call_method(site, "detach"),
    )


def is_test(facts: FileFacts) -> bool:
    """A module of tests: what it computes is small, and whether it has a graph may be its subject."""
    return facts.program.is_test

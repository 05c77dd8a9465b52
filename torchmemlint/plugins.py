"""What a plugin's rule may rely on; described in `docs/plugins.md`.

What this module exports, and the facts that its documentation names, change only with a new minor version, and are
listed in the change log then. Everything else in the package may change at any time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from torchmemlint.doubts import Confidence, Doubt, ordered
from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Position, Severity, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.base import Rule, Stage, Tag
from torchmemlint.syntax.outline import dotted, imports
from torchmemlint.syntax.source_module import Site

__all__ = [
    "Applicability",
    "Call",
    "Confidence",
    "Doubt",
    "Edit",
    "Evidence",
    "FileFacts",
    "Finding",
    "Fix",
    "Position",
    "Rule",
    "Severity",
    "Span",
    "Stage",
    "Tag",
    "calls",
    "report",
    "span_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call, by the name that the imports of the file give to what is called."""

    name: str  # qualified: "torch.save" where the file has `from torch import save`
    node: ast.Call
    span: Span
    around: tuple[ast.stmt, ...]  # the statements that it stands in, the outermost first

    @property
    def in_loop(self) -> bool:
        """Does it stand in the body of a loop of its own function?"""
        for statement in reversed(self.around):
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                return False
            if isinstance(statement, ast.For | ast.AsyncFor | ast.While):
                return True
        return False

    def argument(self, name: str, position: int | None = None) -> ast.expr | None:
        """The argument given by this name or, where one is told, in this position (from 0)."""
        for keyword in self.node.keywords:
            if keyword.arg == name:
                return keyword.value
        if position is None or any(isinstance(one, ast.Starred) for one in self.node.args[: position + 1]):
            return None
        return self.node.args[position] if position < len(self.node.args) else None


def calls(facts: FileFacts, *names: str) -> Iterator[Call]:
    """The calls in the file of functions and classes with these qualified names, in the order of the text.

    A name may hold `*` and `?`, as in `"acme.ops.*"`. What is called through a variable is found by that variable's
    name alone (`"model.half"`, `"*.half"`), which is no evidence of what it is.
    """
    for piece in facts.source.pieces:
        if piece.outline is None:  # written for a newer Python than this one
            continue
        for node, around in _calls_in(piece.outline, ()):
            name = _qualified(dotted(node.func), around, facts)
            if name and any(fnmatchcase(name, one) for one in names):
                yield Call(name, node, span_of(facts, node), around)


def span_of(facts: FileFacts, node: ast.expr | ast.stmt) -> Span:
    """Where a node of a call (an argument, a statement around it) stands in the file."""
    rows = facts.source.rows

    def position(row: int, column: int) -> Position:
        # The standard parser counts bytes.
        return Position(row, len(rows[row - 1].encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore")) + 1)

    start = position(node.lineno, node.col_offset)
    return Span(start, position(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset))


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

    (A fact may lie in another file, which the analysis was led to; what is found there is reported when that file is
    checked.) `severity` is the rule's own if it is not given. `evidence` says, place by place, what made it so.
    `doubts` are what the rule could not determine: with one, the finding is no longer certain.
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


def _calls_in(node: ast.AST, around: tuple[ast.stmt, ...]) -> Iterator[tuple[ast.Call, tuple[ast.stmt, ...]]]:
    """Calls with the statements around them, from left to right and from the outside in."""
    if isinstance(node, ast.Call):
        yield node, around
    if isinstance(node, ast.stmt):
        around = (*around, node)
    for child in ast.iter_child_nodes(node):
        yield from _calls_in(child, around)


def _qualified(written: str, around: tuple[ast.stmt, ...], facts: FileFacts) -> str:
    """A dotted name with its first part replaced by what it was imported as, in a function around or in the file."""
    first, dot, rest = written.partition(".")
    for statement in reversed(around):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            meant = dict(imports(statement.body)).get(first)
            if meant is not None:
                return meant + dot + rest
    return facts.program.qualify(written) if written else ""


def _span(place: Call | Site | Span) -> Span:
    return place if isinstance(place, Span) else place.span


def _elsewhere(place: Call | Site | Span, facts: FileFacts) -> Path | None:
    return place.piece.path if isinstance(place, Site) and place.piece.path != facts.path else None

"""A small stand-in for the rules and the analysis, so that these tests do not depend on what they find.

The word `LEAK101` in a file is a finding of TML101, and so on; its safe fix replaces it by `mended`. `LEAK101_GIVEN`
is one with that doubt.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from torchmemlint.doubts import Doubt
from torchmemlint.engine import one_file
from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Severity, Span
from torchmemlint.rules import registry
from torchmemlint.rules.base import Rule
from torchmemlint.rules.listed import body
from torchmemlint.source.decoding import UnreadableFile, position_of

_OF_THE_RUN = tuple(registry.by_code()[code] for code in ("TML000", "TML001", "TML002"))
_PAGE = body(_OF_THE_RUN[0].page) if _OF_THE_RUN[0].page is not None else ""


def _rule(code_: str, name_: str, severity_: Severity, on_: bool = True, fix_: Applicability | None = None) -> Rule:
    class Fake(Rule):
        __doc__ = _PAGE
        code, name, severity, on, fix, why = code_, name_, severity_, on_, fix_, "it is kept"

        def check(self, facts: object) -> Iterator[Finding]:
            return iter(())

    return Fake()


RULES = (
    *_OF_THE_RUN,
    _rule("TML101", "graph-accumulation", Severity.ERROR, fix_=Applicability.SAFE),
    _rule("TML102", "graph-collection", Severity.ERROR),
    _rule("TML201", "eval-without-no-grad", Severity.ERROR, fix_=Applicability.UNSAFE),
    _rule("TML204", "no-grad-instead-of-inference-mode", Severity.ADVICE, on_=False),
    _rule("TML301", "out-of-place-activation", Severity.ADVICE),
    _rule("TML401", "serial-loader", Severity.WARNING),
)
BY_CODE = {rule.code: rule for rule in RULES}


def check_text(text: str, path: Path, codes: frozenset[str], around: object = None, **_: object) -> list[Finding]:
    if "CRASH" in text:
        raise ZeroDivisionError("a rule divided by zero")
    if "DIE" in text:
        os._exit(7)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        place = Position(getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1)
        raise UnreadableFile(f"Syntax error: {error.args[0]}", place) from error
    found = []
    for match in re.finditer(r"LEAK(\d{3})(?:_([A-Z_]+))?", text):
        rule = BY_CODE[f"TML{match[1]}"]
        if rule.code in codes:
            span = Span(position_of(text, match.start()), position_of(text, match.end()))
            fix = Fix("Mend it", rule.fix, (Edit(span, "mended"),)) if rule.fix else None
            statement = _statement(tree, span)
            doubts = (Doubt[match[2]],) if match[2] else ()
            found.append(
                Finding(rule.code, rule.name, rule.severity, "a leak", path, span, statement, fix=fix, doubts=doubts)
            )
    return found


def _statement(tree: ast.Module, span: Span) -> Span:
    """The smallest statement around a place."""
    best = span
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            start = Position(node.lineno, node.col_offset + 1)
            end = Position(node.end_lineno or 0, (node.end_col_offset or 0) + 1)
            if start <= span.start < end:
                best = Span(start, end)
    return best


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    import torchmemlint.engine

    module = ModuleType("torchmemlint.engine.checking")
    module.check_text = check_text  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(torchmemlint.engine, "checking", module, raising=False)
    monkeypatch.setattr(registry, "all_rules", lambda: RULES)
    monkeypatch.setattr(registry, "by_code", lambda: BY_CODE)
    monkeypatch.setattr(registry, "by_name", lambda: {rule.name: rule for rule in RULES})
    one_file._catalogue.cache_clear()

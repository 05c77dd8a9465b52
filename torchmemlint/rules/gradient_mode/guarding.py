"""Fixes that run code with gradients off: a decorator on the function, or a `with` around statements."""

from __future__ import annotations

import io
import re
import tokenize

import libcst as cst

from torchmemlint.findings import Applicability, Edit, Fix, Position, Span
from torchmemlint.flow.facts import FileFacts, Scope
from torchmemlint.flow.program import Function
from torchmemlint.syntax.source_module import Site

_IMPORTS_PART = re.compile(r"import torch\.|from torch(?:\.[\w.]+)? import\b")


def no_grad_name(facts: FileFacts) -> str | None:
    """How this file can spell `torch.no_grad`, None where it imports neither torch nor that."""
    for name, qualified in facts.program.imported.items():
        if qualified in facts.program.contracts.off and qualified.endswith("no_grad"):
            return name
    for name, qualified in facts.program.imported.items():
        if qualified == "torch":
            return f"{name}.no_grad"
    return None


def _spelled(facts: FileFacts, row: int) -> tuple[str, tuple[Edit, ...]] | None:
    """How to write `torch.no_grad` in a row, with the import that this takes: beside one of another part of torch.

    None where nothing of torch is imported above.
    """
    name = no_grad_name(facts)
    if name is not None:
        return name, ()
    if facts.program.defines("torch"):
        return None
    for piece in facts.source.pieces:
        if piece.first_row < row and _IMPORTS_PART.match(_line(facts, piece.first_row)):
            return "torch.no_grad", (Edit(_at(piece.first_row, 1), "import torch\n"),)
    return None


def decorate(facts: FileFacts, function: Function, applicability: Applicability) -> Fix | None:
    """`@torch.no_grad()` on the function; not on coroutines, which the decorator would not cover."""
    start = Site(function.piece, function.node).span.start
    spelled = _spelled(facts, start.row)
    if spelled is None or function.node.asynchronous is not None or function.parent is not None:
        return None
    line = _line(facts, start.row)
    indent = line[: start.column - 1]
    if indent.strip():
        return None
    name, importing = spelled
    added = Edit(_at(start.row, 1), f"{indent}@{name}()\n")
    return Fix(f"Run `{function.name}` with gradients off", applicability, (*importing, added))


def wrap(facts: FileFacts, statement: Span, applicability: Applicability) -> Fix | None:
    """`with torch.no_grad():` around whole statements that stand on lines of their own."""
    spelled = _spelled(facts, statement.start.row)
    if spelled is None:
        return None
    name, importing = spelled
    first, last = statement.start.row, statement.end.row
    lines = [_line(facts, row) for row in range(first, last + 1)]
    indent = lines[0][: statement.start.column - 1]
    if indent.strip() or not lines or not _indentable(lines):
        return None
    edits = [Edit(_at(first, 1), f"{indent}with {name}():\n")]
    step = "\t" if "\t" in indent else "    "
    edits[0] = Edit(_at(first, 1), f"{indent}with {name}():\n{step}")
    edits += [Edit(_at(row, 1), step) for row, line in enumerate(lines[1:], first + 1) if line.strip()]
    return Fix("Run it with gradients off", applicability, (*importing, *edits))


def _at(row: int, column: int) -> Span:
    return Span(Position(row, column), Position(row, column))


def _line(facts: FileFacts, row: int) -> str:
    lines = facts.source.rows
    return lines[row - 1] if 0 < row <= len(lines) else ""


def _indentable(lines: list[str]) -> bool:
    """Would moving these lines to the right change a string that spans several of them?"""
    import textwrap

    text = textwrap.dedent("\n".join(lines)) + "\n"
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return False
    multiline = {getattr(tokenize, "FSTRING_MIDDLE", -1), tokenize.STRING}
    return not any(t.type in multiline and t.start[0] != t.end[0] for t in tokens)


def innermost_loop(scope: Scope) -> Site | None:
    """The innermost loop statement of a scope."""
    for mark in reversed(scope.loops):
        if mark.site is not None and isinstance(mark.node, cst.For | cst.While):
            return mark.site
    return None

"""Edits that take a statement out of a program."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.guarding import ends_its_row
from torchmemlint.rules.separating import place_of
from torchmemlint.syntax import statements


def removing(facts: FileFacts, call: Span) -> tuple[Edit, ...]:
    """Edits that remove a call that is a statement with its row, and every `if` that holds nothing else.

    Where nothing would be left of another block, `pass` takes its place. () where the statement shares its row.
    """
    source = facts.source
    *outer, found = (None, *statements.around(source.statements, call, source.rows))
    before = source.rows[call.start.row - 1][: call.start.column - 1]
    if found is None or source.statement_span(call) != call or before.strip() or not ends_its_row(facts, call):
        return ()
    for around in reversed(outer):
        if around is None or all(len(block) > 1 for block in statements.blocks(around) if found in block):
            return (Edit(_rows(source.rows, found.lineno, call.end.row), ""),)
        alternative = source.rows[around.lineno - 1].lstrip().startswith("elif")
        if not isinstance(around, ast.If) or around.orelse or alternative:
            break
        found = around
    return (Edit(call, "pass"),)


def _rows(rows: Sequence[str], first: int, last: int) -> Span:
    """Whole rows, with comment rows above that speak of nothing else, and one of the blank rows around them."""

    def is_blank(row: int) -> bool:
        return not 1 <= row <= len(rows) or not rows[row - 1].strip()

    if is_blank(last + 1):
        while not is_blank(first - 1) and rows[first - 2].lstrip().startswith("#"):
            first -= 1
        last += is_blank(first - 1) and last < len(rows)
    return Span(Position(first, 1), Position(last + 1, 1))


def unread(facts: FileFacts, name: str, gone: Sequence[Span]) -> tuple[Edit, ...]:
    """Edits that take out `self.name = Something(...)`, if nothing but what goes reads it.

    () where it stays: other code may read it, or to make it may do more.
    """
    source = facts.source
    around = statements.around(source.statements, gone[0], source.rows)
    home = next((one for one in reversed(around) if isinstance(one, ast.ClassDef)), None)
    if home is None or _is_asked_of_others(facts, home.name, name):
        return ()
    left = [
        node
        for node in _attributes(home, name)
        if not any(span.contains(source.span_of(place_of(node))) for span in gone)
    ]
    setting = [one for one in ast.walk(home) if isinstance(one, ast.Assign) and one.targets == left]
    if len(setting) != 1 or not _only_makes(setting[0].value):
        return ()
    return removing(facts, source.span_of(place_of(setting[0])))


def _attributes(tree: ast.AST, name: str) -> Iterator[ast.Attribute]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == name)


def _only_makes(value: ast.expr) -> bool:
    """Is it a call with nothing but numbers and the like, which has no other effect if it makes a layer?"""
    if not isinstance(value, ast.Call):
        return False
    given = (*value.args, *(keyword.value for keyword in value.keywords))
    return all(
        isinstance(part, ast.Constant | ast.UnaryOp | ast.USub | ast.Load) for one in given for part in ast.walk(one)
    )


def _is_asked_of_others(facts: FileFacts, home: str, name: str) -> bool:
    """Is an attribute asked of anything but `self`, or may a class have it that comes of its own?"""
    for statement in facts.source.statements:
        for node in ast.walk(statement):
            match node:
                case ast.ClassDef(bases=bases) if any(isinstance(b, ast.Name) and b.id == home for b in bases):
                    return True
                case ast.Attribute(value=base, attr=attribute) if attribute == name:
                    if not (isinstance(base, ast.Name) and base.id == "self"):
                        return True
                case ast.Constant(value=text) if text == name:
                    return True
    project, path = facts.program.project, facts.path
    if project is None:
        return False
    named, own = (project.mentioning(phrase, path) for phrase in (name, f"self.{name}"))
    if named is None or own is None:
        return True
    users = project.runs.users(path)
    return any(other != path and (count != own.get(other) or other in users) for other, count in named.items())

"""Programs in one file, made ones of two or three files whose lines keep their numbers."""

from __future__ import annotations

import ast

from .programs import PRELUDE

_START = PRELUDE.count("\n")


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module binds."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _used(statements: list[ast.stmt]) -> set[str]:
    return {node.id for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _first(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def split(text: str, parts: int) -> dict[str, str]:
    """Put the last function into `main.py`, what stands before it into `other.py` and, as the third, the prelude.

    Every part is at the lines at which it was. Each file has the imports of libraries, and imports what it uses of the
    others.
    """
    *before, last = ast.parse(text).body
    libraries = [statement for statement in before if isinstance(statement, (ast.Import, ast.ImportFrom))]
    before = [statement for statement in before if statement not in libraries]
    groups = [[last], before]
    if parts == 3:
        groups[1:] = [[s for s in before if s.lineno > _START], [s for s in before if s.lineno <= _START]]
    names = ["main", "other", "base"]
    lines = text.split("\n")
    files = {}
    for index, group in enumerate(groups):
        kept = [""] * len(lines)
        for statement in [*group, *libraries]:
            span = slice(_first(statement) - 1, statement.end_lineno)
            kept[span] = lines[span]
        imports = []
        for other, name in list(zip(groups, names, strict=False))[index + 1 :]:
            wanted = _used(group) & {bound for statement in other for bound in _bound(statement)}
            if wanted:
                imports.append(f"from {name} import {', '.join(sorted(wanted))}")
            elif other and index == 0:
                imports.append(f"import {name}")  # for what it does: register hooks, freeze parameters
        if imports:
            row = kept.index("")  # below the imports of the prelude
            kept[row] = "; ".join(imports)
        files[f"{names[index]}.py"] = "\n".join(kept)
    return files


def splittable(text: str) -> bool:
    """Whether names may be imported from another file: none is bound again, and the file is not imported itself."""
    statements = ast.parse(text).body
    again = any(isinstance(node, ast.Global) for statement in statements for node in ast.walk(statement))
    return not again and isinstance(statements[-1], ast.FunctionDef)

"""What fixes change, and which lines run if it runs (`tools/other_suites.py`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

_IMPORT = re.compile(r"\s*(import |from \S+ import |$)")


@dataclass(frozen=True)
class Place:
    """A stretch of a file that fixes changed, and the lines of its statements, or of the function that it decorates."""

    file: str
    row: int
    lines: frozenset[int]


def changed(before: Path, after: Path) -> list[Place]:
    """What differs in the files of two folders."""
    return [
        place
        for old in sorted(before.rglob("*"))
        if old.suffix in {".py", ".ipynb"} and old.is_file() and (new := after / old.relative_to(before)).is_file()
        if old.read_bytes() != new.read_bytes()
        for place in places(str(old.relative_to(before)), old.read_text("utf-8"), new.read_text("utf-8"))
    ]


def places(file: str, before: str, after: str) -> Iterator[Place]:
    """What differs in a file; not the imports that are added."""
    old, new = before.splitlines(), after.splitlines()
    tree = ast.parse(before) if file.endswith(".py") else None  # a notebook is run by no test
    for kind, first, last, start, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal" or all(_IMPORT.match(line) for line in old[first:last] + new[start:stop]):
            continue
        if first == last and (first == len(old) or _depth(old[first]) < _depth(new[start])):  # at the end of a block
            first -= 1
        rows = range(first + 1, max(last, first + 1) + 1)
        yield Place(file, rows[0], frozenset(_run(tree, rows)) if tree else frozenset())


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else 0


def _run(tree: ast.AST, rows: range) -> Iterator[int]:
    """The lines of the statements in these rows; of a function of which the head is there, those of its body."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            begin = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            end = node.end_lineno or node.lineno
            body = getattr(node, "body", None)
            head = range(begin, body[0].lineno if body and body[0].lineno > begin else end + 1)
            if set(head) & set(rows):
                inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                yield from range(body[0].lineno, end + 1) if inside and body else head

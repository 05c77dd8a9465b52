"""How deep the patterns of `match` statements are nested.

The time that libcst's parser (1.9.0) takes for them doubles with each level of sequences and classes and grows fourfold
with each of mappings: ten mappings in each other take seconds, thirty take centuries, and nothing can interrupt it.
"""

from __future__ import annotations

import ast
import re

from torchmemlint.syntax.standard import parse

MAX_PATTERNS = 6  # in each other: some 10 milliseconds; people write two or three
_CASE = re.compile(r"^[ \t\f]*case\b", re.MULTILINE)
_BRACKETS = re.compile(r"[(\[{]|[)\]}]")


def too_deep(text: str) -> bool:
    """Are patterns in a text nested too deeply for libcst? In a text that Python cannot read any brackets count."""
    if "case" not in text or not _CASE.search(text):
        return False
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return brackets(text) > MAX_PATTERNS
    patterns = (case.pattern for node in ast.walk(tree) if isinstance(node, ast.Match) for case in node.cases)
    return any(_depth(pattern) > MAX_PATTERNS for pattern in patterns)


def _depth(pattern: ast.pattern) -> int:
    """How many are around the innermost; level by level, since Python's own stack may be shorter."""
    depth, level = -1, [pattern]
    while level:
        depth += 1
        level = [child for one in level for child in ast.iter_child_nodes(one) if isinstance(child, ast.pattern)]
    return depth


def brackets(text: str) -> int:
    """How deep brackets are nested, at most (those in strings and comments count)."""
    depth = deepest = 0
    for bracket in _BRACKETS.findall(text):
        depth = depth + 1 if bracket in "([{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest

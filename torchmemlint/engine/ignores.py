"""Writing suppression comments into one file, and making sure that they do what they should and nothing else."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence

from torchmemlint.findings import Finding
from torchmemlint.fixes.apply import FixResult
from torchmemlint.fixes.edits import apply_edits
from torchmemlint.source.ignoring import ignoring


def ignore_all(
    text: str, findings: Sequence[Finding], recheck: Callable[[str], Sequence[Finding]], reason: str = ""
) -> FixResult:
    """Silence the findings of a text by comments. `recheck(text)` gives the findings of a changed text.

    The text stays as it is where it would mean something else with the comments, or more would be found in it.
    """
    found = ignoring(findings, text, reason)
    if found.edits:
        after = apply_edits(text, found.edits)
        if _means_the_same(text, after):
            left = tuple(recheck(after))
            if len(left) <= len(found.left):
                silenced = tuple(finding for finding in findings if not any(finding is one for one in found.left))
                return FixResult(after, silenced, (), left)
    return FixResult(text, (), (), tuple(findings))


def _means_the_same(before: str, after: str) -> bool:
    try:
        return _tree(before) == _tree(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _tree(text: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.dump(ast.parse(text))

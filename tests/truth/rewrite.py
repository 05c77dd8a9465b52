"""Rewritings that must not matter: other spellings of the same program, with the lines that findings stand on.

`rewritten` changes the trees of a program's files. A line that is tracked belongs to the innermost statement that it is
part of, and moves along with it. A statement may become several: then a finding may stand on the line of any of them.
The text is printed anew, so comments are lost. What a file's `# expect:` comments say is read with `expectations`.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from . import reshapings, respellings
from .emission import Mark
from .tracking import REWRITINGS, lines_of, statements, statements_at, track, tracked_by

__all__ = ["REWRITINGS", "Rewritten", "depends_on_comments", "expectations", "reshapings", "respellings", "rewritten"]

_COMMENT = re.compile(r"# expect: (?P<findings>TML.*)")
_SUPPRESSION = re.compile(r"#\s*(?:noqa|torchmemlint:)")


@dataclass(frozen=True)
class Rewritten:
    """The new files, and the lines on which each tracked line's statement stands now."""

    files: dict[str, str]
    places: dict[Mark, tuple[Mark, ...]]


def rewritten(name: str, files: Mapping[str, str], tracked: Iterable[Mark] = ()) -> Rewritten | None:
    """The files after a rewriting; None where there is nothing that it could change."""
    trees = {file: ast.parse(text) for file, text in files.items()}
    for file, line in tracked:
        for statement in statements_at(trees[file], line):
            track(statement, (file, line))
    if not REWRITINGS[name](trees):
        return None
    new: dict[str, str] = {}
    places: dict[Mark, list[Mark]] = {}
    for file, tree in trees.items():
        new[file] = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        printed = ast.parse(new[file])
        for old, statement in zip(statements(tree), statements(printed), strict=True):
            for mark in tracked_by(old):
                places.setdefault(mark, []).extend((file, line) for line in lines_of(statement))
    return Rewritten(new, {mark: tuple(lines) for mark, lines in places.items()})


def expectations(text: str) -> dict[int, str]:
    """What the comments `# expect:` announce, by line."""
    found: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and (comment := _COMMENT.search(token.string)):
            found[token.start[0]] = comment["findings"]
    return found


def depends_on_comments(text: str) -> bool:
    """Whether comments that are lost when it is printed anew have a meaning."""
    return _SUPPRESSION.search(text) is not None

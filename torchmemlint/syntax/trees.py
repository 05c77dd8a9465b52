"""Where trees come from: made anew, or kept from one look at a text to the next.

A run reads a text once and lets go of it. An editor asks about the same files again and again, each time with
little changed: there, trees are kept, and only the pieces that changed are read.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from torchmemlint.config.limits import MAX_NESTING
from torchmemlint.syntax import cst
from torchmemlint.syntax.patterns import too_deep
from torchmemlint.syntax.standard import parse
from torchmemlint.syntax.text import empty, form_feeds, parse_with_libcst
from torchmemlint.syntax.walking import inside

if TYPE_CHECKING:
    from torchmemlint.syntax.positions import CodeRanges


@dataclass(eq=False, slots=True)
class Tree:
    """A libcst tree and, once asked for, where its nodes stand."""

    text: str
    module: cst.Module
    _ranges: CodeRanges | None = field(default=None, repr=False)
    _at: dict[tuple[tuple[int, int], tuple[int, int]], list[cst.CSTNode]] | None = field(default=None, repr=False)
    _methods: dict[int, cst.Call] | None = field(default=None, repr=False)  # by what they are called on

    @property
    def ranges(self) -> CodeRanges:
        """Start and end of every node, within the piece."""
        if self._ranges is None:
            from torchmemlint.syntax.positions import code_ranges  # which imports libcst

            self._ranges = _moved(code_ranges(self.module), form_feeds(self.text))
        return self._ranges

    def at(self, start: tuple[int, int], end: tuple[int, int]) -> list[cst.CSTNode]:
        """The nodes of that start and end, outer ones first."""
        if self._at is None:
            self._at = {}
            for node in inside(self.module):
                first, last, _ = self.ranges[id(node)]
                self._at.setdefault((first, last), []).append(node)
        return self._at.get((start, end), [])

    def method_on(self, node: cst.CSTNode) -> cst.Call | None:
        """The call of a method of what an expression gives; None without one."""
        if self._methods is None:
            calls = (one for one in inside(self.module) if isinstance(one, cst.Call))
            self._methods = {id(one.func.value): one for one in calls if isinstance(one.func, cst.Attribute)}
        return self._methods.get(id(node))


def _moved(places: CodeRanges, further: dict[int, int]) -> CodeRanges:
    """The places with those of some rows so many characters further right."""
    if not further:
        return places

    def moved(place: tuple[int, int]) -> tuple[int, int]:
        return place[0], place[1] + further.get(place[0], 0)

    return {key: (moved(start), moved(end), node) for key, (start, end, node) in places.items()}


class Trees:
    """Makes the trees of each text that it is asked for.

    `nesting` is how deep statements and expressions may be in each other for libcst and the analysis to look at them.
    """

    def __init__(self) -> None:
        self.nesting = MAX_NESTING
        self._last: tuple[tuple[Path, str], ast.Module] | None = None  # a file is read for its pieces, and to be run

    def standard(self, text: str, path: Path) -> ast.Module:
        """The standard parser's tree of a whole file, which nobody may change; raises what that parser raises."""
        if self._last is None or self._last[0] != (path, text):
            self._last = (path, text), parse(text)
        return self._last[1]

    def concrete(self, text: str, path: Path) -> Tree:
        """The libcst tree of a piece of the file `path`; empty where libcst cannot read what Python can."""
        return Tree(text, empty() if too_deep(text) else _parsed(text))


PARSING = Trees()


class KeptTrees(Trees):
    """Keeps trees for the next round of questions."""

    def __init__(self) -> None:
        super().__init__()
        self._standard: dict[Path, tuple[str, ast.Module]] = {}
        self._concrete: dict[tuple[Path, str], Tree] = {}
        self._asked: set[tuple[Path, str]] = set()  # for these, in this round
        self._read: set[Path] = set()  # files, likewise

    def begin(self) -> None:
        """A new round."""
        self._asked.clear()
        self._read.clear()

    def end(self) -> None:
        """The round is over: of the files that were asked about, trees of texts that are no longer there may go."""
        for key in [key for key in self._concrete if key[0] in self._read and key not in self._asked]:
            del self._concrete[key]

    def keep_only(self, paths: set[Path]) -> None:
        """Let go of the trees of all other files."""
        self._standard = {path: known for path, known in self._standard.items() if path in paths}
        self._concrete = {key: tree for key, tree in self._concrete.items() if key[0] in paths}

    def standard(self, text: str, path: Path) -> ast.Module:
        """As `Trees.standard`."""
        self._read.add(path)
        known = self._standard.get(path)
        if known is None or known[0] != text:
            known = self._standard[path] = text, parse(text)
        return known[1]

    def concrete(self, text: str, path: Path) -> Tree:
        """As `Trees.concrete`."""
        self._asked.add((path, text))
        if (path, text) not in self._concrete:
            self._concrete[path, text] = super().concrete(text, path)
        return self._concrete[path, text]


def _parsed(text: str) -> cst.Module:
    """What libcst parses of a text; empty where it cannot read what Python can."""
    try:
        return _parse(text)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - nothing is said about such a piece
        return empty()


def _parse(text: str) -> cst.Module:
    """`parse_with_libcst` without the checks that each node makes of itself: a fifth of the time, and a parser makes
    none that fail. They are for trees built by hand.
    """
    checked = cst.CSTNode.__post_init__
    cst.CSTNode.__post_init__ = _unchecked  # type: ignore[assignment,method-assign]
    try:
        return parse_with_libcst(text)
    finally:
        cst.CSTNode.__post_init__ = checked  # type: ignore[method-assign]


def _unchecked(node: cst.CSTNode) -> None:
    """In place of the checks."""

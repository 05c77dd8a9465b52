"""Detaching that a change leaves nothing to do: what is detached has had a graph, and has none any more."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchmemlint.fixes.edits import BOM, Replacement, TextIndex, newline_of
from torchmemlint.fixes.graphs import Arrivals, Compared
from torchmemlint.fixes.identity import Change
from torchmemlint.fixes.leaves import statements
from torchmemlint.flow.fact.details import Arriving, Graphs
from torchmemlint.syntax import standard
from torchmemlint.syntax.source_module import SourceModule, span_in
from torchmemlint.syntax.text import is_explained

_DETACHING = re.compile(r"\s*\.\s*detach\(\s*\)\Z")
_DATA = re.compile(r"\s*\.\s*data\Z")  # a number of a tensor of old was `x.data[0]`: that is left
_PACKED = re.compile(r"\bpack_|PackedSequence")  # its `.data` is what it holds


def idle_detaching(
    change: Change, path: Path, before: Arrivals, after: Arrivals, *, safe: bool
) -> tuple[Replacement, ...]:
    """What takes away the idle detaching of a changed text, as replacements of that text.

    Only in functions that are changed: others may be called with a graph one day. For a `safe` change it must be known
    that no graph is left, for another that none is seen.
    """
    had, has = (_detached(change, path, arrivals, old=old) for arrivals, old in ((before, True), (after, False)))
    allowed = {Graphs.NONE} if safe else {Graphs.NONE, Graphs.UNKNOWN}
    rows, index = SourceModule.rows_of(change.after), TextIndex.of(change.after)
    places = {spot: span_in(rows, span) for spot, (_, span) in has.items()}
    idle = {spot for spot, (graphs, _) in has.items() if graphs <= allowed}
    freed = {spot for spot in idle if Graphs.SEEN in had.get(spot, (frozenset(),))[0]}
    if not freed:
        return ()
    functions = list(_functions(change.after))
    changed = {_owner(functions, index.position(offset).row) for offset in _changed(change)}
    touched: dict[tuple[int, int] | None, set[tuple[int, ...]]] = {}  # what is detached in statements that are freed
    for statement in statements(change.after):
        within = {n for n, one in places.items() if statement.start <= index.offset(one.start) < statement.end}
        owner = _owner(functions, index.position(statement.start).row)
        if within & freed and owner in changed:
            touched.setdefault(owner, set()).update(within)
    found: list[Replacement] = []
    for owner, spots in touched.items():
        others = {n for n, one in places.items() if _owner(functions, one.start.row) == owner} - (spots & idle)
        ends = {spot: index.offset(one.end) for spot, one in places.items()}
        others |= {spot for spot in spots if change.after.startswith("[", ends[spot])}
        has_data = any(change.after.endswith(".data", 0, ends[spot]) for spot in others)
        for spot in spots & idle:
            if is_explained(rows, places[spot].start.row, "detach"):
                continue  # the comment would be about nothing
            start, end = (index.offset(one) for one in (places[spot].start, places[spot].end))
            found += _removed(change.after, start, end, with_data=not has_data)
    return tuple(sorted(one for one in set(found) if not any(_is_within(one, other) for other in found)))


def _detached(
    change: Change, path: Path, arrivals: Arrivals, *, old: bool
) -> dict[tuple[int, ...], tuple[frozenset[Graphs], tuple[int, int, int, int]]]:
    """What is detached in the file: by its stretch of the old text, its graphs in all runs, and where it stands."""
    text = Compared(path, change, old=old)
    graphs: dict[tuple[int, ...], set[Graphs]] = defaultdict(set)
    spans: dict[tuple[int, ...], tuple[int, int, int, int]] = {}
    for one in arrivals:
        if one.how is Arriving.DETACHED and one.at and one.at[0].path == path:
            spot = text.spot(one.at[0])[1]
            graphs[spot].add(Graphs(one.begin[1]))
            spans[spot] = one.at[0].span
    return {spot: (frozenset(graphs[spot]), spans[spot]) for spot in graphs}


def _changed(change: Change) -> Iterator[int]:
    """Yield where the new text begins and ends that each replacement brings."""
    moved = 0
    for one in change.replacements:
        yield one.start + moved
        moved += len(one.content) - (one.end - one.start)
        yield max(one.end + moved - 1, 0)


def _functions(text: str) -> Iterator[tuple[int, int]]:
    """Yield the first and the last row of each function, with its decorators."""
    for node in ast.walk(_parsed(text) or ast.Module([], [])):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.end_lineno or node.lineno


def _owner(functions: Sequence[tuple[int, int]], row: int) -> tuple[int, int] | None:
    """The innermost function around a row; None outside of all."""
    return max((one for one in functions if one[0] <= row <= one[1]), default=None)


def _is_within(one: Replacement, other: Replacement) -> bool:
    return one != other and other.start <= one.start and one.end <= other.end


def _removed(text: str, start: int, end: int, *, with_data: bool) -> Iterator[Replacement]:
    """Yield what takes away the detaching of an expression; its row, if that does nothing else.

    With `.data` only if nothing else in the function still asks for it.
    """
    whole = text[start:end]
    cut = _DETACHING.search(whole)
    if cut is None and with_data and not text.startswith("[", end) and not _PACKED.search(text):
        cut = _DATA.search(whole)
    if cut is None or "#" in cut[0]:
        return
    line, behind = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    behind = len(text) if behind < 0 else behind
    before, kept, rest = text[line:start].strip(), whole[: cut.start()], text[end:behind].strip()
    if not rest and before == f"{kept} =":
        yield Replacement(line, min(behind + 1, len(text)), "")
    elif not (before.endswith("=") and not rest and "requires_grad" in text):  # then the name asks for gradients
        yield Replacement(start + cut.start(), end, "")
        if kept.startswith("(") and _is_the_same(text, start, start + cut.start(), end):
            yield Replacement(start, start + 1, "")
            yield Replacement(start + cut.start() - 1, start + cut.start(), "")


def _is_the_same(text: str, start: int, end: int, behind: int) -> bool:
    """Does a text without the detaching behind an expression say the same without the parentheses around that?"""
    inner = text[start + 1 : end - 1]
    if "\n" in inner or not _is_alone(inner):
        return False
    trees = [_tree(text[:start] + middle + text[behind:]) for middle in (f"({inner})", inner)]
    return trees[0] is not None and trees[0] == trees[1]


def _is_alone(text: str) -> bool:
    """Is a text an expression by itself? What stands between the outermost parentheses of `(a)(b)` is not."""
    try:
        standard.expression(text)
    except SyntaxError:
        return False
    return True


def _tree(text: str) -> str | None:
    parsed = _parsed(text)
    return None if parsed is None else ast.dump(parsed)


def _parsed(text: str) -> ast.Module | None:
    try:
        return standard.parse(text.removeprefix(BOM).replace(newline_of(text), "\n"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None

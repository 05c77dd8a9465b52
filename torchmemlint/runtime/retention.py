"""Who keeps the storages alive that outlived the step which made them.

A look at a running program: a walk over the heap from its names (`references.py`) finds what is held directly, a walk
along the autograd graphs of what was found (`graphs.py`) what is held for a backward that may never come. Each storage
counts once. Its holder is the smallest thing that holds storages of most turns: the list, and not the model that has
the list as an attribute, nor one element of it.
"""

from __future__ import annotations

import functools
import gc
import itertools
import sys
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Container, Iterable, Sequence
from typing import Any

import torch

from torchmemlint.runtime import graphs
from torchmemlint.runtime.filling import Fill, source_of
from torchmemlint.runtime.graphs import Graphs, Reach
from torchmemlint.runtime.holders import Holder, Look
from torchmemlint.runtime.internals import graph_of
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.ledger import Ledger, Site
from torchmemlint.runtime.orphans import owner_of
from torchmemlint.runtime.references import References
from torchmemlint.runtime.threads import living
from torchmemlint.runtime.tracker import StorageTracker
from torchmemlint.runtime.ways import Way, in_cycle

_MOST = 0.75
"""The share of a line's turns that a holder must have, to be taken and not what holds it."""
_SHOWN = 5


def look(
    tracker: StorageTracker, device: str, hooked: Container[Any], marks: Sequence[int], *, outlived: bool = False
) -> Look:
    """Look who holds what was made on a device after the first turn. `marks` are the ends of turns.

    With `outlived`, only what outlived the turn that made it; without marks, all that was made.

    Other threads are held meanwhile: what the look refers to, such as the gradients of many steps of a thread that
    went on, would seem to be kept.
    """
    ledger = tracker.ledger
    with tracker.standstill.held():
        tracker.write_off()
        since, until = (marks[0], marks[-1] if outlived else ledger.now) if marks else (0, ledger.now)
        wanted = {index for index in ledger.alive_at(ledger.now, device) if since <= ledger.born(index) < until}
        collecting = gc.isenabled()
        gc.disable()  # a collection in the middle would free what the program still has
        try:
            return _Looking(tracker, hooked, marks, wanted, device).result()
        finally:
            if collecting:
                gc.enable()


class _Looking:
    """The state of one look."""

    def __init__(
        self, tracker: StorageTracker, hooked: Container[Any], marks: Sequence[int], wanted: set[int], device: str
    ) -> None:
        self._tracker = tracker
        self._ledger: Ledger = tracker.ledger
        self._hooked = hooked
        self._marks = marks
        self._wanted = wanted
        self._device = device
        self._references = References(tracker.sites)
        self._graphs = Graphs(tracker.index_of, hooked, tracker.sites)
        self._direct: dict[int, Any] = {}  # record -> the tensor that has it
        self._shown: Counter[int] = Counter()  # record -> the bytes of it that the largest of its tensors shows
        self._by_graph: dict[int, Any] = {}  # record -> the value whose graph has it
        self._reaches: list[tuple[Any, Reach]] = []

    def result(self) -> Look:
        """Walk, and put it together."""
        self._references.walk(self._is_missing)
        self._take()
        self._take_hooked()
        groups = self._grouped()
        lines = self._graph_lines(groups)
        holders = [
            (self._holder(one, self._references.way_to(one), records, lines[id(one)]), records)
            for one, records in groups
        ]
        holders += self._in_cycles()
        holders.sort(key=lambda pair: -pair[0].nbytes)
        holder_of = {index: place for place, (_, records) in enumerate(holders) for index in records}
        unreached = sum(self._ledger.nbytes(index) for index in self._wanted if index not in holder_of)
        return Look(
            self._ledger.now,
            self._device,
            tuple(holder for holder, _ in holders),
            holder_of,
            unreached,
            self._references.visited,
            self._references.cut or self._graphs.cut,
            frozenset(index for index in holder_of if index in self._by_graph and index not in self._direct),
        )

    # --- who has what

    def _is_missing(self) -> bool:
        """Whether records are left that nothing found so far holds, directly or by a graph."""
        self._take()
        return any(index not in self._direct and index not in self._by_graph for index in self._wanted)

    def _take(self) -> None:
        for tensor in self._references.tensors:
            index = self._tracker.index_of(tensor)
            if index is not None and index in self._wanted and index not in self._by_graph:
                self._direct.setdefault(index, tensor)
                self._shown[index] = max(self._shown[index], tensor.numel() * tensor.element_size())
        roots: dict[Any, Any] = {}
        entries: list[tuple[Any, bool]] = []
        for value in (*self._references.tensors, *self._references.nodes):
            node = graph_of(value) if isinstance(value, torch.Tensor) else value
            if node is not None and node not in roots:
                roots[node] = value
                entries.append((node, self._is_carried(value)))
        for node in graphs.in_order(entries):
            reach = self._graphs.reach(node, self._direct, self._ledger.nbytes)
            if reach.records or reach.hooked:
                self._reaches.append((roots[node], reach))
                for index in reach.records:
                    self._ledger.claim(index, Kind.SAVED)  # when the run ends, its names may be gone
                    if index in self._wanted:
                        self._by_graph[index] = roots[node]

    def _take_hooked(self) -> None:
        """What nothing reaches, and was made in the turn of a value whose graph has nodes with hooks, is held by these.

        A checkpoint's hooks belong to the graph, out of Python's sight; they keep the inputs of its block.
        """
        hooked: dict[int, Any] = {}
        for value, reach in self._reaches:
            index = self._tracker.index_of(value) if reach.hooked and isinstance(value, torch.Tensor) else None
            if index is not None:
                hooked.setdefault(self._turn(index), value)
        for index in self._wanted:
            if index not in self._direct and index not in self._by_graph:
                holder = hooked.get(self._turn(index))
                if holder is not None:
                    self._by_graph[index] = holder

    def _is_carried(self, value: Any) -> bool:
        """Whether a value goes from one turn into the next, by what the source does with its name."""
        parent = next(iter(list(self._references.ancestors(value))[1:2]), None)
        if isinstance(parent, list | tuple | set | deque):
            return False
        way = self._references.way_to(value)
        return _is_carried(way.site.path, way.leaf)

    # --- holders

    def _grouped(self) -> list[tuple[Any, list[int]]]:
        """Each record's holder: the smallest of what holds it that has most of its line's turns."""
        keepers = {**self._by_graph, **self._direct}
        turn_of = {index: self._turn(index) for index in keepers}
        turns: defaultdict[int, set[int]] = defaultdict(set)
        for index, keeper in keepers.items():
            for ancestor in self._references.ancestors(keeper):
                turns[id(ancestor)].add(turn_of[index])
        of_line: defaultdict[Site, set[int]] = defaultdict(set)
        for index in keepers:
            of_line[self._ledger.site(index)].add(turn_of[index])
        groups: dict[int, tuple[Any, list[int]]] = {}
        for index, keeper in keepers.items():
            chain = list(self._references.ancestors(keeper))
            enough = _MOST * len(of_line[self._ledger.site(index)])
            holder = next((one for one in chain if len(turns[id(one)]) >= enough and self._can_hold(one)), None)
            if holder is None:
                holder = max(chain, key=lambda one: len(turns[id(one)]))
            holder = self._head(holder, chain)
            groups.setdefault(id(holder), (holder, []))[1].append(index)
        return list(groups.values())

    def _turn(self, index: int) -> int:
        born = self._ledger.born(index)
        return bisect_right(self._marks, born) if self._marks else born

    @staticmethod
    def _can_hold(one: Any) -> bool:
        return not isinstance(one, type)

    @staticmethod
    def _head(holder: Any, chain: Sequence[Any]) -> Any:
        """What a holder is part of: the newest node of a linked list, the function that has a cache."""
        kind = type(holder)
        above = next((over for one, over in itertools.pairwise(chain) if one is holder), None)
        if kind is dict and isinstance(above, functools._lru_cache_wrapper):
            return above
        if kind.__module__ == "builtins" or issubclass(kind, torch.Tensor):
            return holder
        return next(one for one in reversed(chain) if type(one) is kind)

    def _graph_lines(self, groups: Sequence[tuple[Any, list[int]]]) -> defaultdict[int, Counter[Site]]:
        """For each holder the lines that made the nodes of its graphs, with the bytes they hold."""
        holder_of = {index: id(one) for one, records in groups for index in records if index not in self._direct}
        lines: defaultdict[int, Counter[Site]] = defaultdict(Counter)
        for _, reach in self._reaches:
            whose = next((holder_of[index] for index in reach.records if index in holder_of), None)
            if whose is not None:
                lines[whose].update(reach.lines)
        return lines

    def _in_cycles(self) -> list[tuple[Holder, list[int]]]:
        """Holders of what no name reaches: for each line that made such, the owner of one that is like the others."""
        by_line: defaultdict[Site, list[int]] = defaultdict(list)
        for index in self._wanted:
            if index not in self._direct and index not in self._by_graph:
                by_line[self._ledger.site(index)].append(index)
        if not by_line:
            return []
        lines = sorted(by_line, key=lambda site: -sum(map(self._ledger.nbytes, by_line[site])))[:_SHOWN]
        examples = {min(by_line[site]): site for site in lines}
        found: list[tuple[Holder, list[int]]] = []
        for orphan in living(torch.Tensor):
            site = examples.pop(self._tracker.index_of(orphan) or -1, None)
            owner = None if site is None else owner_of(orphan)
            if site is not None and owner is not None:
                records = by_line[site]
                self._direct.update(dict.fromkeys(records))
                found.append((self._holder(orphan, in_cycle(*owner), records, Counter()), records))
        return found

    def _holder(self, one: Any, way: Way, records: Sequence[int], lines: Counter[Site]) -> Holder:
        direct = sum(self._ledger.nbytes(index) for index in records if index in self._direct)
        nbytes = sum(self._ledger.nbytes(index) for index in records)
        made = Counter(self._ledger.site(index).path for index in records)
        named = (way.site.path, *(path for path, _ in made.most_common()))
        paths = dict.fromkeys(path for path in named if self._tracker.sites.is_users_file(path))
        functions = Counter(self._ledger.site(index).function.rpartition(".")[2] for index in records)
        filled = _filled(one, way, paths, functions)
        return Holder(
            way.text,
            way.kind,
            _type_of(one),
            way.site,
            way.function,
            way.of_type,
            tuple(site for _, site in filled),
            bool(filled) and filled[0][0],
            nbytes,
            len(records),
            direct,
            nbytes - direct,
            tuple(lines.most_common(_SHOWN)) if nbytes > direct else (),
            _bound(one),
            _length(one),
            sum(min(self._shown[index], self._ledger.nbytes(index)) for index in records if index in self._direct),
            _unfindable(one, self._references),
        )


@functools.lru_cache(maxsize=4096)
def _is_carried(path: str, leaf: str) -> bool:
    source = source_of(path)
    return source is not None and source.is_carried(leaf)


def _type_of(one: Any) -> str:
    kind = type(one)
    if isinstance(one, functools._lru_cache_wrapper):
        return "lru_cache"
    if isinstance(one, deque) and one.maxlen is not None:
        return f"deque(maxlen={one.maxlen})"
    return kind.__qualname__


def _bound(one: Any) -> int | None:
    if isinstance(one, deque):
        return one.maxlen
    if isinstance(one, functools._lru_cache_wrapper):
        return one.cache_info().maxsize
    return None


def _length(one: Any) -> int | None:
    if isinstance(one, list | dict | set | tuple | deque):
        return len(one)
    return one.cache_info().currsize if isinstance(one, functools._lru_cache_wrapper) else None


def _unfindable(one: Any, seen: Container[Any]) -> int:
    """The results of an `lru_cache` that no call can get again: their key is an object that nothing else has.

    What was `seen` by the walk is held by it as well.
    """
    if not isinstance(one, functools._lru_cache_wrapper):
        return 0
    own: Any = vars(one)
    found = [part for part in gc.get_referents(one) if type(part) is dict and part is not own]
    results = found[-1] if found else {}  # the results themselves come first
    alone = _references((object(),))[0]
    return sum(
        any(
            count - (argument in seen) <= alone and _is_only_equal_to_itself(argument)
            for argument, count in zip(key, _references(key), strict=True)
        )
        for key in results
        if isinstance(key, tuple)
    )


def _references(key: tuple[Any, ...]) -> list[int]:
    return [sys.getrefcount(argument) for argument in key]


def _is_only_equal_to_itself(argument: Any) -> bool:
    kind: Any = type(argument)
    return not isinstance(argument, type) and (issubclass(kind, torch.Tensor) or kind.__hash__ is object.__hash__)


def _filled(one: Any, way: Way, paths: Iterable[str], functions: Counter[str]) -> list[tuple[bool, Site]]:
    """The statements that fill a holder, and whether they make the new value from the old one.

    Of a value, those that make it from itself come first; then those in the function whose local it is, then those
    in functions which made the storages.
    """
    if way.kind == "cache":
        return [(False, way.site)]
    contents = isinstance(one, list | dict | set | tuple | deque)
    scope = "<module>" if way.kind == "global" else way.function.rpartition(".")[2] if way.kind == "local" else None

    of_object = way.kind in ("attribute", "class attribute", "cycle")

    def rank(fill: Fill) -> tuple[bool, bool, bool, bool, int]:
        elsewhere = (scope is not None and fill.function != scope) or (of_object and fill.is_name)
        return elsewhere, not (contents or fill.carried), fill.function not in functions, fill.is_name, fill.line

    for path in paths:
        source = source_of(path)
        if source is None:
            continue
        fills = source.fills(way.leaf, contents=contents, key=way.key)
        if not fills and way.owner is not None:  # inside of a library's object
            fills = source.fills(way.owner, contents=True, any_method=True)
        if fills:
            return [(fill.carried, Site(path, fill.line, fill.function)) for fill in sorted(fills, key=rank)]
    return []

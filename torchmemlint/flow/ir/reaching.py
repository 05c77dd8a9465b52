"""Reaching definitions: what says what a name stands for where it is read, and which names a generator still needs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from .blocks import layout_of, operations
from .control import Break, Continue, For, If, Raise, Return, Try, While, With, Yield
from .defuse import definitions
from .ops import Bind, CallMethod, Function, GetAttribute, GetItem, Load, Make, Op, Operate, Unbind, Unpack
from .places import Name, Scope

Definitions = frozenset[Op | None]  # None: what the name stands for when the function begins
_BEGIN: Definitions = frozenset({None})
_State = dict[str, Definitions]  # of names that stand for what they did at first, nothing


class Reaching:
    """What defines the local names of a function: those that no nested function shares.

    In the body of a module these are names that no function of the file mentions. What changes in place (`x += y`,
    `x.add_(y)`) defines the name anew.
    """

    def __init__(self, function: Function) -> None:
        self.at: dict[Load, Definitions] = {}
        self.readers: dict[Op, list[Load]] = {}  # of each definition
        self.rounds: dict[Op, _State | None] = {}  # what names stand for where an iteration of a loop ends, if one does
        self._outer = function.parent is None
        self._shared = {name for f in function.unit.functions[1:] for name in f.mentions} if self._outer else set()
        self._leaving: list[tuple[list[_State], list[_State]]] = []  # of each loop around: breaks, continues
        self._run(function.body, {})
        for load, found in self.at.items():
            for op in found:
                if op is not None:
                    self.readers.setdefault(op, []).append(load)

    def only(self, load: Op | None) -> Op | None:
        """The one operation that says what a name stands for where it is read; None where there is not just one."""
        found = self.at.get(load, _BEGIN) if isinstance(load, Load) else _BEGIN
        return next(iter(found)) if len(found) == 1 else None

    def is_local(self, name: Name) -> bool:
        """Is a name read and bound nowhere else?"""
        return name.scope is Scope.LOCAL or (self._outer and name.text not in self._shared)

    def has_one_round(self, loop: Op) -> bool:
        """Is a loop left within its first iteration, whichever way that goes?"""
        return loop in self.rounds and self.rounds[loop] is None

    def comes_round(self, loop: Op, definition: Op) -> bool:
        """May a name still stand for what an operation has made it when an iteration of a loop ends?"""
        name = defined(definition)
        if name is None or not self.is_local(name) or loop not in self.rounds:
            return True
        return definition in (self.rounds[loop] or {}).get(name.text, _BEGIN)

    def _run(self, block: Iterable[Op], state: _State | None) -> _State | None:
        """Return the state after a block; None where its end is not reached."""
        for op in block:
            if state is None:
                return None
            kind = type(op)
            if kind is Load:
                self._read(op, state)
            elif (name := defined(op)) is not None:
                state[name.text] = frozenset({op})
            elif isinstance(op, If):
                state = _joined(self._run(op.then, dict(state)), self._run(op.orelse, state))
            elif isinstance(op, For | While):
                state = self._loop(op, state)
            elif isinstance(op, Try):
                state = self._try(op, state)
            elif isinstance(op, With):
                state = self._run(op.body, state)
            elif kind in _ENDS:
                state = None
            elif kind is Break or kind is Continue:
                if self._leaving:
                    self._leaving[-1][kind is Continue].append(state)
                state = None
        return state

    def _read(self, op: Op, state: _State) -> None:
        assert isinstance(op, Load)
        if self.is_local(op.name):
            self.at[op] = self.at.get(op, frozenset()) | state.get(op.name.text, _BEGIN)

    def _loop(self, op: For | While, state: _State) -> _State | None:
        head: list[Op] = op.head if isinstance(op, While) else []
        begun, known = state, None
        while begun != known:
            known = begun
            self._leaving.append(([], []))
            tested = self._run(head, dict(begun))
            after = self._run(op.body, dict(tested)) if tested is not None else None
            breaks, continues = self._leaving.pop()
            for other in continues:
                after = _joined(after, other)
            self.rounds[op] = after
            begun = _joined(begun, after) or begun
        ended = self._run(op.orelse, dict(tested)) if tested is not None else None
        for other in breaks:
            ended = _joined(ended, other)
        return ended

    def _try(self, op: Try, state: _State) -> _State | None:
        raised = _with_all(state, op.body)
        ended = self._run(op.body, dict(state))
        ended = self._run(op.orelse, ended) if ended is not None else None
        for handler in op.handlers:
            ended = _joined(ended, self._run(handler.body, dict(raised)))
        if not op.final:
            return ended
        others = [other for handler in op.handlers for other in handler.body]
        anyhow = _with_all(raised, [*op.orelse, *others])
        left = self._run(op.final, anyhow)
        return None if left is None or ended is None else left


@lru_cache(maxsize=256)
def reaching(function: Function) -> Reaching:
    """The definitions of a function's names, worked out once."""
    return Reaching(function)


def hands_back(function: Function) -> bool:
    """May a function return what was there before it was called, or a part of that: what it is given, or keeps?"""
    flow, known = definitions(function), reaching(function)
    todo, seen = [op.src for op in operations(function.body) if isinstance(op, Return)], set[Op]()
    for temp in todo:
        op = flow.made.get(temp)
        todo += flow.moved.get(temp, ())
        if op is None or op in seen:
            continue
        seen.add(op)
        match op:
            case Load():
                found = known.at.get(op, _BEGIN)
                if None in found:
                    return True
                todo += [one.src for one in found if isinstance(one, Bind)]
            case GetAttribute(base=base) | GetItem(base=base) | Unpack(src=base):
                todo.append(base)
            case Make(entries=entries):
                todo += [entry.temp for entry in entries]
    return False


def defined(op: Op) -> Name | None:
    """The name that an operation defines."""
    if type(op) is Bind or type(op) is Unbind:
        return op.name
    if isinstance(op, Operate | CallMethod) and isinstance(op.place, Name):
        return op.place
    return None


def _joined(one: _State | None, other: _State | None) -> _State | None:
    if one is None or other is None or one == other:
        return other if one is None else one
    return {text: one.get(text, _BEGIN) | other.get(text, _BEGIN) for text in {*one, *other}}


def _with_all(state: _State, body: Iterable[Op]) -> _State:
    """Return a state from which any of a block's definitions may have been come to."""
    found = dict(state)
    for op in operations(body):
        name = defined(op)
        if name is not None:
            found[name.text] = found.get(name.text, _BEGIN) | {op}
    return found


_ENDS = frozenset({Return, Raise})


def forget() -> None:
    """Let go of what is kept of the functions that were asked about."""
    definitions.cache_clear()
    layout_of.cache_clear()
    reaching.cache_clear()
    held.cache_clear()


# What a generator holds while it waits, and goes on with afterwards.


@lru_cache(maxsize=4096)
def held(function: Function) -> frozenset[str]:
    """Return the names that a generator reads after a `yield`, and has bound before it."""
    order = list(operations(function.body))
    waits = [number for number, op in enumerate(order) if type(op) is Yield]
    bound: dict[str, list[int]] = {}
    for number, op in enumerate(order):
        if type(op) is Bind:
            bound.setdefault(op.name.text, []).append(number)
    number_of = {op: number for number, op in enumerate(order)}
    loops = [(number, number + _length(op)) for op, number in number_of.items() if isinstance(op, For | While)]
    found: set[str] = set()
    for number, op in enumerate(order):
        if type(op) is Load and op.name.text in bound:
            last = max((at for at in bound[op.name.text] if at < number), default=-1)
            around = (start for start, end in loops if start <= number <= end and start > last)
            first = min(around, default=number)  # the outermost loop that comes round without a new value
            ends = max((end for start, end in loops if start == first), default=number)
            if any(last < wait < number or first <= wait <= ends for wait in waits):
                found.add(op.name.text)
    return frozenset(found)


def _length(loop: Op) -> int:
    """Return how many operations a loop has, with those of the blocks in it."""
    return sum(1 for _ in operations([loop])) - 1

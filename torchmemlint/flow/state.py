"""What the interpreter knows at one point of the program."""

from __future__ import annotations

from torchmemlint.flow.heap import Heap
from torchmemlint.flow.values import Key, Mode, Value, join


class State:
    """Local names of the running function, the shared heap, and the gradient mode."""

    __slots__ = ("dead", "heap", "mode", "vars")

    def __init__(self, variables: dict[str, Value], heap: Heap, mode: Mode, dead: bool = False) -> None:
        self.vars = variables
        self.heap = heap
        self.mode = mode
        self.dead = dead  # this point is not reached

    def copy(self) -> State:
        """An independent state."""
        return State(dict(self.vars), self.heap.copy(), self.mode, self.dead)

    def get(self, key: Key) -> Value | None:
        """The value of a local path or heap slot."""
        return self.vars.get(key) if isinstance(key, str) else self.heap.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Bind a local path or heap slot, without regard to longer paths."""
        if isinstance(key, str):
            self.vars[key] = value
        else:
            self.heap[key] = value

    def adopt(self, other: State) -> None:
        """Become `other`."""
        self.vars, self.heap, self.mode, self.dead = other.vars, other.heap, other.mode, other.dead

    def bind(self, name: str, value: Value) -> None:
        """Assign a local name: what was known of its attributes is forgotten."""
        paths = [key for key in self.vars if "." in key]  # few, and told from plain names faster than by their prefix
        for path in paths:
            if path.startswith(name + "."):
                del self.vars[path]
        self.vars[name] = value


def join_states(a: State, b: State) -> State:
    """The state after two ways meet."""
    if a.dead:
        return b
    if b.dead:
        return a
    return State(_join_maps(a.vars, b.vars), a.heap.joined(b.heap), a.mode if a.mode is b.mode else Mode.UNKNOWN)


def _join_maps(a: dict, b: dict) -> dict:  # type: ignore[type-arg]
    different = [(key, value) for key, value in b.items() if a.get(key) is not value]
    if not different:
        return a
    merged = dict(a)
    for key, value in different:
        mine = merged.get(key)
        merged[key] = value if mine is None else join(mine, value)
    return merged

"""Work in forked processes, each piece after those whose results it needs."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from functools import partial
from graphlib import TopologicalSorter
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

from torchmemlint.engine.garbage import quiet_collector
from torchmemlint.engine.stack import deep

K = TypeVar("K", bound=Hashable)
S = TypeVar("S")
R = TypeVar("R")


def spread(
    needs: Mapping[K, Sequence[K]], work: Callable[[K, list[S]], R], handed: Callable[[R], S], processes: int
) -> Generator[tuple[K, R], None, None]:
    """Do pieces of work, each after those that it needs, and yield their results as they come.

    `handed` reduces a result to what the pieces that need it receive. A piece that raises, or ends its process, is left
    out with all that need it. Which process does what, and in which order, does not depend on how long it takes: what a
    process remembers of one piece serves the next, and that should be the same in every run.

    Needs a system that can fork.
    """
    team = [_Member(work, needs, lane) for lane in lanes(needs, processes) if lane]
    ended: dict[K, list[S]] = {}
    try:
        while True:
            while any(member.go_on(ended) for member in team):
                pass  # what one leaves out, another may have waited for
            busy = {member.pipe: member for member in team if member.piece is not None}
            if not busy:
                return
            for pipe in connection.wait(list(busy)):
                assert isinstance(pipe, connection.Connection)
                piece, results = busy[pipe].receive()
                ended[piece] = [handed(result) for result in results]
                yield from ((piece, result) for result in results)
    finally:
        for member in team:
            member.end()


def lanes(needs: Mapping[K, Sequence[K]], number: int) -> list[deque[K]]:
    """Return what each of so many does, in order, if one piece takes as long as another."""
    found: list[deque[K]] = [deque() for _ in range(number)]
    free = [0] * number
    done: dict[K, int] = {}
    for piece in TopologicalSorter(needs).static_order():
        ready = max((done[other] for other in needs[piece]), default=0)
        lane = min(range(number), key=lambda n: (max(free[n], ready), -free[n]))
        found[lane].append(piece)
        done[piece] = free[lane] = max(free[lane], ready) + 1
    return found


class _Member(Generic[K, S, R]):
    """A process that does its pieces one after the other."""

    def __init__(self, work: Callable[[K, list[S]], R], needs: Mapping[K, Sequence[K]], lane: deque[K]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.piece: K | None = None  # in hand
        self._needs, self._lane = needs, lane
        self._is_dead = False
        self._process: BaseProcess = context.Process(target=_serve, args=(other, self.pipe, work), daemon=True)
        self._process.start()
        other.close()

    def go_on(self, ended: dict[K, list[S]]) -> bool:
        """Begin with its next piece, or leave it out: is there one, and can it be decided?"""
        if self.piece is not None or not self._lane or not all(other in ended for other in self._needs[self._lane[0]]):
            return False
        piece = self._lane.popleft()
        told = [result for other in self._needs[piece] for result in ended[other]]
        if self._is_dead or len(told) < len(self._needs[piece]):
            ended[piece] = []
            return True
        self.piece = piece
        with contextlib.suppress(OSError):  # that it is dead is noticed when its answer is read
            self.pipe.send((piece, told))
        return True

    def receive(self) -> tuple[K, list[R]]:
        """Return the piece in hand and what came of it: nothing if that raised, or ended the process."""
        assert self.piece is not None
        piece, self.piece = self.piece, None
        try:
            return piece, self.pipe.recv()
        except (EOFError, OSError):
            self._is_dead = True
            return piece, []

    def end(self) -> None:
        """Stop it in the middle of its work."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _serve(pipe: connection.Connection, other_end: connection.Connection, work: Callable[[K, list[S]], R]) -> None:
    other_end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends us
    with contextlib.suppress(EOFError, OSError), quiet_collector() as collect:  # the parent has gone
        while True:
            piece, told = pipe.recv()
            results: list[R] = []
            with contextlib.suppress(Exception):  # raised again for who does it without us
                results.append(deep(partial(work, piece, told)))
            pipe.send(results)
            collect()

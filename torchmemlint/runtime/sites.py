"""Which line of the user's source an allocation belongs to.

In the forward it is the nearest frame of the user's own code. In backward there is only the line that called
`backward()`, or (in the engine's own threads) no Python frame at all; but every node of the graph carries the
sequence number it got when the forward made it, and so leads to the forward's line.
"""

from __future__ import annotations

import os
import sys
import threading
from array import array
from pathlib import Path
from types import CodeType, FrameType

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.ledger import NOWHERE, Site
from torchmemlint.runtime.libraries import is_of_a_library

HERE = f"{Path(__file__).parent.parent.absolute()}{os.sep}"
TORCH = f"{Path(torch.__file__).parent.absolute()}{os.sep}"
_DATA = f"{Path(torch.__file__).parent.absolute() / 'utils' / 'data'}{os.sep}"
_UNKNOWN = -1

_OWN, _LIBRARY, _USER, _LOADER = range(4)


class _Forward:
    """The lines, by number, of one thread's nodes, from the first that was seen on."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.lines = array("i")

    def remember(self, sequence: int, number: int) -> None:
        missing = sequence - self.first + 1 - len(self.lines)
        if missing > 0:
            self.lines.extend([_UNKNOWN] * missing)
        self.lines[sequence - self.first] = number

    def number_of(self, sequence: int) -> int:
        place = sequence - self.first
        return self.lines[place] if 0 <= place < len(self.lines) else _UNKNOWN


class Sites:
    """Finds lines, and remembers those of the forward for its backward."""

    def __init__(self) -> None:
        self._role_of_code: dict[CodeType, int] = {}
        self._sites: dict[tuple[CodeType, int], Site] = {}
        self._numbered: list[Site] = [NOWHERE]
        self._numbers: dict[Site, int] = {NOWHERE: 0}
        self._forwards: dict[int, _Forward] = {}  # by thread: each numbers its nodes by itself
        self._differentiates: int | None = None  # the thread that began a backward last

    @property
    def footprint(self) -> int:
        """The bytes that the remembered forwards take on the heap."""
        return sum(sys.getsizeof(one.lines) for one in list(self._forwards.values()))

    def _role(self, code: CodeType) -> int:
        role = self._role_of_code.get(code)
        if role is None:
            role = self._role_of_code[code] = self._role_of_file(code.co_filename)
        return role

    @staticmethod
    def _role_of_file(name: str) -> int:
        if name.startswith(_DATA):
            return _LOADER
        if name.startswith((HERE, TORCH, "<frozen ")):
            return _OWN
        return _LIBRARY if is_of_a_library(name) else _USER

    def is_users(self, code: CodeType) -> bool:
        """Whether code is the user's own: neither torch's, nor a library's, nor of this package."""
        return self._role(code) == _USER

    def is_users_file(self, path: str) -> bool:
        """Whether a file is the user's own."""
        return self._role_of_file(path) == _USER

    def current(self, depth: int = 1) -> tuple[Site, bool]:
        """The user's line that runs now, and whether a data loader runs between it and here.

        Where no frame is the user's (a program that only a library drives), it is the library's nearest line.
        """
        frame: FrameType | None = sys._getframe(depth)
        library: FrameType | None = None
        in_loader = False
        while frame is not None:
            role = self._role(frame.f_code)
            if role == _USER:
                return self._site(frame), in_loader
            if role == _LIBRARY and library is None:
                library = frame
            elif role == _LOADER:
                in_loader = True
            frame = frame.f_back
        return (NOWHERE if library is None else self._site(library)), in_loader

    def place(self, depth: int = 1) -> CodeType | None:
        """The user's function that runs now."""
        frame: FrameType | None = sys._getframe(depth)
        while frame is not None and self._role(frame.f_code) != _USER:
            frame = frame.f_back
        return None if frame is None else frame.f_code

    def _site(self, frame: FrameType) -> Site:
        key = (frame.f_code, frame.f_lineno or 0)
        site = self._sites.get(key)
        if site is None:
            name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
            site = self._sites[key] = Site(frame.f_code.co_filename, key[1], name)
        return site

    def remember(self, site: Site) -> None:
        """Note that the operation which runs now, in a forward, is written at this line."""
        sequence = internals.next_sequence_number() - 1
        if sequence < 0:
            return
        thread = threading.get_ident()
        forward = self._forwards.get(thread)
        if forward is None or sequence < forward.first:  # a new thread may have the number of one that has ended
            forward = self._forwards[thread] = _Forward(sequence)
        number = self._numbers.get(site)
        if number is None:
            number = self._numbers[site] = len(self._numbered)
            self._numbered.append(site)
        forward.remember(sequence, number)

    def begin_backward(self) -> None:
        """Note that this thread begins a backward: the engine's own threads carry out that of a GPU."""
        self._differentiates = threading.get_ident()

    def of_node(self, node: object) -> Site | None:
        """The forward's line that made a node of the graph; None where it was not seen."""
        sequence = internals.sequence_number(node)
        forward = self._forwards.get(threading.get_ident()) or self._forwards.get(self._differentiates or 0)
        if sequence is None or forward is None:
            return None
        number = forward.number_of(sequence)
        return None if number == _UNKNOWN else self._numbered[number]

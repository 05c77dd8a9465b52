"""Which line of the user's source an allocation belongs to.

In the forward it is the nearest frame of the user's own code. In backward there is only the line that called
`backward()`, or (in the engine's own threads) no Python frame at all; but every node of the graph carries the
sequence number it got when the forward made it, and so leads to the forward's line.
"""

from __future__ import annotations

import os
import site as site_packages
import sys
import sysconfig
from array import array
from pathlib import Path
from types import CodeType, FrameType

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.ledger import NOWHERE, Site

_HERE = f"{Path(__file__).parent.parent.absolute()}{os.sep}"
_TORCH = f"{Path(torch.__file__).parent.absolute()}{os.sep}"
_DATA = f"{Path(torch.__file__).parent.absolute() / 'utils' / 'data'}{os.sep}"
_UNKNOWN = -1

_OWN, _LIBRARY, _USER, _LOADER = range(4)


def _library_folders() -> tuple[str, ...]:
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {*site_packages.getsitepackages(), site_packages.getusersitepackages()}
    return tuple(f"{Path(path).absolute()}{os.sep}" for path in paths if path)


class Sites:
    """Finds lines, and remembers those of the forward for its backward."""

    def __init__(self) -> None:
        self._libraries = _library_folders()
        self._role_of_code: dict[CodeType, int] = {}
        self._sites: dict[tuple[CodeType, int], Site] = {}
        self._numbered: list[Site] = [NOWHERE]
        self._numbers: dict[Site, int] = {NOWHERE: 0}
        self._forward = array("i")
        self._first_sequence: int | None = None

    @property
    def footprint(self) -> int:
        """The bytes that the remembered forward takes on the heap."""
        return sys.getsizeof(self._forward)

    def _role(self, code: CodeType) -> int:
        role = self._role_of_code.get(code)
        if role is None:
            role = self._role_of_code[code] = self._role_of_file(code.co_filename)
        return role

    def _role_of_file(self, name: str) -> int:
        if name.startswith(_DATA):
            return _LOADER
        if name.startswith((_HERE, _TORCH, "<frozen ")):
            return _OWN
        return _LIBRARY if name.startswith(self._libraries) else _USER

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
        if self._first_sequence is None:
            self._first_sequence = sequence
        place = sequence - self._first_sequence
        if place < 0:  # made on another thread, before the first that was seen
            return
        number = self._numbers.get(site)
        if number is None:
            number = self._numbers[site] = len(self._numbered)
            self._numbered.append(site)
        missing = place + 1 - len(self._forward)
        if missing > 0:
            self._forward.extend([_UNKNOWN] * missing)
        self._forward[place] = number

    def of_node(self, node: object) -> Site | None:
        """The forward's line that made a node of the graph; None where it was not seen."""
        sequence = internals.sequence_number(node)
        if sequence is None or self._first_sequence is None:
            return None
        place = sequence - self._first_sequence
        if not 0 <= place < len(self._forward) or self._forward[place] == _UNKNOWN:
            return None
        return self._numbered[self._forward[place]]

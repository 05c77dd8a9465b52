"""Which names of a program reach which of its objects: a walk over the heap that begins at names, not at objects.

One walk in breadth finds, for every tensor, the shortest way from a local of a living frame, a global or a class of
the user's modules; what these do not reach is looked for from the libraries' side. The way's steps are put into words
only for what is reported. The walk changes nothing: it runs no user code, and keeps no object after it is dropped.
"""

from __future__ import annotations

import gc
import inspect
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from torchmemlint.runtime.internals import graph_of
from torchmemlint.runtime.ledger import Site
from torchmemlint.runtime.sites import Sites
from torchmemlint.runtime.ways import Name, Way, values_of, way

LIMIT = 1_000_000
"""Objects that one walk visits at most: about a second."""

_ATOMS = {str, bytes, bytearray, int, float, complex, bool, type(None), type(...), range, slice, types.CodeType}
_ATOMS |= {types.ModuleType, torch.dtype, torch.device, torch.Size, types.GetSetDescriptorType}
_PASSED, _FOLLOWED, _TENSOR, _NODE = range(4)


class References:
    """One walk. `tensors` and `nodes` are what it found, in the order in which it found them."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._limit = LIMIT
        self._roles: dict[type, int] = {}
        self._found: dict[int, tuple[Any, int | None]] = {}
        self._names: dict[int, Name] = {}
        self._skipped: set[int] = set()
        self._user_modules: dict[str, bool] = {}
        self.tensors: list[torch.Tensor] = []
        self.nodes: list[Any] = []
        self.cut = False

    @property
    def visited(self) -> int:
        """The number of objects seen."""
        return len(self._found)

    # --- walking

    def walk(self, missing: Callable[[], bool]) -> None:
        """Walk from the user's names; and, where something is `missing` then, from those of libraries."""
        frames = _living_frames()
        self._skipped |= {id(frame) for frame in frames} | {id(self._found), id(self._names), id(frames), id(self)}
        modules = {name: module for name, module in list(sys.modules.items()) if isinstance(module, types.ModuleType)}
        self._skipped |= {id(vars(module)) for module in modules.values()}
        self._follow(self._user_names(frames, modules))
        if missing():
            self._follow(self._library_names(frames, modules))
        frames.clear()

    def _user_names(
        self, frames: list[types.FrameType], modules: dict[str, types.ModuleType]
    ) -> Iterator[tuple[Name, Any]]:
        for frame in frames:
            if self._sites.is_users(frame.f_code):
                yield from _locals(frame, "local")
        spaces = {id(frame.f_globals): frame for frame in frames if self._sites.is_users(frame.f_code)}
        for module in modules.values():
            if self._is_users(module.__name__):
                spaces.pop(id(vars(module)), None)
                yield from self._globals(vars(module), getattr(module, "__file__", None) or "?")
        for frame in spaces.values():  # a program that was run in a namespace of its own
            yield from self._globals(frame.f_globals, frame.f_code.co_filename)

    def _globals(self, space: dict[str, Any], path: str) -> Iterator[tuple[Name, Any]]:
        site = Site(path, 1, "<module>")
        classes = []
        for name, value in list(space.items()):
            if isinstance(value, type):
                if value.__module__ == space.get("__name__"):
                    classes.append((Name(name, "class", site), value))
            elif not name.startswith("__"):
                yield Name(name, "global", site), value
        yield from classes

    def _library_names(
        self, frames: list[types.FrameType], modules: dict[str, types.ModuleType]
    ) -> Iterator[tuple[Name, Any]]:
        for frame in frames:
            if not self._sites.is_users(frame.f_code) and not _is_own(frame.f_globals.get("__name__")):
                yield from _locals(frame, "library")
        for module in modules.values():
            if not self._is_users(module.__name__) and not _is_own(module.__name__):
                site = Site(getattr(module, "__file__", None) or "?", 1, "<module>")
                for name, value in list(vars(module).items()):
                    if not name.startswith("__"):
                        yield Name(f"{module.__name__}.{name}", "library", site), value
        for attribute in ("last_exc", "last_value", "last_traceback"):
            value = getattr(sys, attribute, None)
            if value is not None:
                yield Name(f"sys.{attribute}", "library", Site("sys", 1, "<module>")), value

    def _is_users(self, module: str) -> bool:
        known = self._user_modules.get(module)
        if known is None:
            found = sys.modules.get(module)
            path = getattr(found, "__file__", None)
            known = type(found) is types.ModuleType and path is not None and self._sites.is_users_file(path)
            self._user_modules[module] = known
        return known

    def _follow(self, names: Iterable[tuple[Name, Any]]) -> None:
        found, names_of, skipped, roles = self._found, self._names, self._skipped, self._roles
        waiting: deque[Any] = deque()

        def meet(one: Any, parent: int | None) -> None:
            key = id(one)
            if key in found or key in skipped:
                return
            kind = type(one)
            role = roles.get(kind)
            if role is None:
                role = roles[kind] = _role_of(kind)
            if role == _PASSED or (
                issubclass(kind, type) and not self._is_users(type.__getattribute__(one, "__module__"))
            ):
                return
            if len(found) >= self._limit:
                self.cut = True
                return
            found[key] = one, parent
            waiting.append(one)
            if role == _TENSOR:
                self.tensors.append(one)
            elif role == _NODE:
                self.nodes.append(one)

        for name, value in names:
            if id(value) not in found:
                meet(value, None)
                if id(value) in found:
                    names_of[id(value)] = name
        while waiting and not self.cut:
            one = waiting.popleft()
            key = id(one)
            for child in gc.get_referents(one):
                meet(child, key)
            if roles.get(type(one)) == _TENSOR and graph_of(one) is None and one.grad is not None:
                meet(one.grad, key)

    # --- what was found

    def __contains__(self, one: object) -> bool:
        return id(one) in self._found

    def ancestors(self, one: Any) -> Iterator[Any]:
        """An object, then what refers to it, up to one that has a name."""
        key: int | None = id(one)
        while key is not None:
            value, key = self._found[key]
            yield value

    def way_to(self, one: Any) -> Way:
        """How the program gets at an object that was found."""
        chain = list(self.ancestors(one))[::-1]
        return way(self._names[id(chain[0])], chain)


def _role_of(kind: type) -> int:
    if issubclass(kind, torch.Tensor):
        return _TENSOR
    if kind in _ATOMS or _is_own(kind.__module__):
        return _PASSED
    return _NODE if hasattr(kind, "next_functions") and hasattr(kind, "metadata") else _FOLLOWED


def _is_own(module: object) -> bool:
    return isinstance(module, str) and (module == "torchmemlint" or module.startswith("torchmemlint."))


def _living_frames() -> list[types.FrameType]:
    """The frames of all threads, innermost first; this thread's come first. Without this package's own."""
    seen: set[int] = set()
    frames: list[types.FrameType] = []
    one: types.FrameType | None = None
    try:
        for one in (sys._getframe(1), *sys._current_frames().values()):
            while one is not None and id(one) not in seen:
                seen.add(id(one))
                if not _is_own(one.f_globals.get("__name__")):
                    frames.append(one)
                one = one.f_back
    finally:
        del one  # this function's own frame, among others: it would be kept alive by itself, with all its locals
    return frames


def _locals(frame: types.FrameType, kind: str) -> Iterator[tuple[Name, Any]]:
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return  # a module's or a class's body: its locals are no function's
    function = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
    site = Site(frame.f_code.co_filename, frame.f_lineno or 0, function)
    for name, value in values_of(frame):
        yield Name(name, kind, site), value

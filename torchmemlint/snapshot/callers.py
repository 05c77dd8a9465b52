"""What a call stack of a snapshot says: the user's line, the operation, and what the program was doing.

Stacks have the innermost frame first. C++ frames (`stacks="all"`, torch's default) tell a backward by the engine's
frames, and the operation. Without them, a backward on the engine's own thread has no frame at all.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from torchmemlint.immutable import immutable
from torchmemlint.runtime.ledger import Site
from torchmemlint.snapshot.records import Frame

BEFORE = Site("<before the history>", 0, "")
"""For what was allocated before the history began, or without a call stack."""
_BACKWARD, _NATIVE, _INSIDE = "<backward>", "<C++>", "<library>"

_LIBRARY = re.compile(r"(^|/)(site-packages|dist-packages|lib/python3[^/]*|importlib)/|^<|(^|/)torch/_[a-z]+/")
_OPERATION = re.compile(r"at::_ops::(\w+)::call\b")
_NODE = re.compile(r"torch::autograd::(?:generated::)?(\w+)::apply(?:_with_saved|_functional)?\b")
_ENGINE = "torch::autograd::Engine::"
_TO_DEVICE = re.compile(r"THPVariable_(to|cuda)\b|at::_ops::_?to_\w+::call\b|at::_ops::_to_copy::call\b")
_MOVING = ("_apply", "convert", "to_empty", "load_state_dict", "_load_from_state_dict")
_WORKSPACE = re.compile(r"[Ww]orkspace|cublas\w*Create|getCurrentCUDABlasHandle")


class Phase(enum.IntEnum):
    """What the program was doing."""

    OTHER = 0
    SETUP = 1  # a module was made, loaded, or moved
    INPUT = 2  # a tensor was copied to the device, outside of a module
    FORWARD = 3
    BACKWARD = 4
    OPTIMIZER = 5
    WORKSPACE = 6  # a library asked for memory of its own


@immutable()
class Caller:
    """What a call stack says. `lines` are the user's, the innermost first."""

    site: Site
    lines: tuple[Site, ...]
    phase: Phase
    operation: str
    accumulates: bool = False  # autograd keeps a gradient
    guessed: bool = False  # the phase is concluded from a missing stack


IsUsers = Callable[[str], bool]


def is_users_file(path: str) -> bool:
    """Whether a file is the user's: neither torch's, nor an installed package's, nor Python's own."""
    return _LIBRARY.search(path) is None


def caller(frames: Sequence[Frame], is_users: IsUsers = is_users_file, *, native: bool = True) -> Caller:
    """What a stack says; `native` tells whether the snapshot's stacks have C++ frames."""
    if not frames:
        if native:
            return Caller(BEFORE, (), Phase.OTHER, "")
        return Caller(Site(_BACKWARD, 0, ""), (), Phase.BACKWARD, "", guessed=True)
    python = [frame for frame in frames if frame.python]
    names = [frame.name for frame in frames if not frame.python]
    lines = tuple(_site(frame) for frame in python if is_users(normal(frame.filename)))
    operation = next((found[1] for name in names if (found := _OPERATION.search(name))), "")
    phase = _phase(python, names, lines)
    accumulates = any("AccumulateGrad" in name for name in names)
    if lines:
        return Caller(lines[0], lines, phase, operation, accumulates)
    if phase is Phase.BACKWARD:
        node = next((found[1] for name in names if (found := _NODE.search(name))), operation)
        return Caller(Site(_BACKWARD, 0, node), (), phase, operation, accumulates)
    if python:
        return Caller(_site(python[0]), (), phase, operation)
    return Caller(Site(_NATIVE, 0, operation), (), phase, operation)


def _site(frame: Frame) -> Site:
    return Site(normal(frame.filename), frame.line, frame.name)


def normal(path: str) -> str:
    """A path with forward slashes and without `..`, as another machine wrote it."""
    if "\\" in path:
        path = path.replace("\\", "/")
    if "/../" not in path and "/./" not in path:
        return path
    parts: list[str] = []
    for part in PurePosixPath(path).parts:
        if part == ".." and parts and parts[-1] != "/":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return str(PurePosixPath(*parts))


def _phase(python: Sequence[Frame], names: Sequence[str], lines: Sequence[Site]) -> Phase:
    """The phase; of several the innermost that decides what becomes of the bytes."""
    if any(_WORKSPACE.search(name) for name in names):
        return Phase.WORKSPACE
    if any(_ENGINE in name for name in names) or any(map(_is_backward, python)):
        return Phase.BACKWARD
    if any("/torch/optim/" in normal(frame.filename) for frame in python):
        return Phase.OPTIMIZER
    modules = [frame for frame in python if normal(frame.filename).endswith("/torch/nn/modules/module.py")]
    if any(
        frame.name in ("_apply", "convert", "to_empty", "load_state_dict", "_load_from_state_dict") for frame in modules
    ):
        return Phase.SETUP
    if any(frame.name in ("_call_impl", "_wrapped_call_impl", "__call__") for frame in modules):
        return Phase.FORWARD
    if any(frame.name in ("__init__", "reset_parameters") for frame in python):
        return Phase.SETUP
    if any("/torch/utils/data/" in normal(frame.filename) for frame in python):
        return Phase.INPUT
    if lines and any(map(_TO_DEVICE.search, names)):
        return Phase.INPUT
    return Phase.OTHER


def _is_backward(frame: Frame) -> bool:
    path = normal(frame.filename)
    if path.endswith("/torch/utils/checkpoint.py"):
        return frame.name in ("unpack_hook", "recompute_fn", "backward")
    return frame.name == "_engine_run_backward" or (
        path.endswith("/torch/autograd/__init__.py") and frame.name in ("backward", "grad")
    )


def words(site: Site) -> str | None:
    """A site that is no line, in words; None for a line."""
    if site == BEFORE:
        return "allocated before the history began, or without a call stack"
    if site.path == _BACKWARD:
        return f"in backward ({site.function})" if site.function else "in backward, on a thread without Python frames"
    if site.path == _NATIVE:
        return f"no Python frame ({site.function})" if site.function else "no Python frame"
    return None

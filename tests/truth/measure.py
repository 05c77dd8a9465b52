"""Running a program, and counting what is alive at the start of every iteration.

Nodes are autograd nodes that can be reached from any live tensor. Saved are those of them that still hold saved
tensors: no backward has freed them. Bytes are of the storages of live tensors and of saved tensors. Passes are calls of
a module with parameters, outermost ones only. A pass is recorded if a tensor that it returns, however wrapped, has a
`grad_fn`; it is used if a gradient flowed through one of them and, where optimizers step, came to a parameter that one
of them holds, or to a tensor that is no parameter.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib.machinery
import importlib.util
import io
import re
import signal
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import dataloader

from .emission import Mark
from .examples import Label
from .tables.words import SIZES

WINDOW = 8  # a series grows if it does over so many iterations
_SIZE = re.compile(rf"\b({'|'.join(SIZES)})\b")
_SAVED: dict[type, list[str]] = {}  # the names of the saved tensors, by type of node
_ROLES: dict[type, str] = {}  # what an object of a type is to the count


@dataclass
class Measured:
    """What was counted in a run."""

    nodes: list[int] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    passes: int = 0
    recorded: int = 0
    used: int = 0
    output: str = ""
    error: str = ""

    @property
    def complete(self) -> bool:
        """Whether it ran, and long enough to tell what grows."""
        return not self.error and len(self.nodes) >= WINDOW + 2


def count() -> tuple[int, int, int]:
    """Live autograd nodes, those with saved tensors, and bytes of storages."""
    roots: list[Any] = []
    storages: dict[int, int] = {}
    for thing in gc.get_objects():
        kind = type(thing)
        role = _ROLES.get(kind)
        if role is None:
            role = _ROLES[kind] = _role(kind)
        if role == "tensor":
            if thing.grad_fn is not None:
                roots.append(thing.grad_fn)
            storage = thing.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
        elif role == "node" and isinstance(thing.next_functions, tuple):
            roots.append(thing)
    seen: dict[int, object] = {}
    saving = 0
    while roots:
        node = roots.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        if type(node).__name__ == "AccumulateGrad":
            continue
        saving += _is_saving(node, storages)
        roots += [after for after, _ in node.next_functions if after is not None]
    return len(seen), saving, sum(storages.values())


def _role(kind: type) -> str:
    if issubclass(kind, torch.Tensor):
        return "tensor"
    return "node" if hasattr(kind, "next_functions") else "other"


def _is_saving(node: object, storages: dict[int, int]) -> bool:
    names = _SAVED.get(type(node))
    if names is None:
        names = _SAVED[type(node)] = [name for name in dir(type(node)) if name.startswith("_saved_")]
    saving = False
    for name in names:
        try:
            value = getattr(node, name)
        except RuntimeError as error:  # freed by a backward, or kept and modified in place since
            saving |= "modified by an inplace" in str(error)
            continue
        except AttributeError:
            continue
        for tensor in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(tensor, torch.Tensor):
                saving |= tensor.dim() > 0 or tensor.requires_grad  # not the 0.1 of `0.1 * loss`
                storage = tensor.untyped_storage()
                storages[storage.data_ptr()] = storage.nbytes()
    return saving


def tensors_in(value: object, depth: int = 4) -> Iterator[torch.Tensor]:
    """The tensors of what a module returned: of tuples, lists, dicts and objects with attributes."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth:
        if isinstance(value, Mapping):
            inner: Sequence[object] = list(value.values())
        elif isinstance(value, (tuple, list)):
            inner = value
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            inner = [getattr(value, item.name) for item in dataclasses.fields(value)]
        elif isinstance(value, types.SimpleNamespace):
            inner = list(vars(value).values())
        else:
            return
        for item in inner:
            yield from tensors_in(item, depth - 1)


@contextlib.contextmanager
def probes(measured: Measured) -> Iterator[None]:
    """Count at every batch that a DataLoader hands out, and mark passes."""
    depth = 0
    used: set[int] = set()
    leaves: list[set[int]] = []  # of each recorded pass: the parameters that its graph leads to
    stepped: set[int] = set()

    def at_batch() -> None:
        nodes, saved, size = count()
        measured.nodes.append(nodes)
        measured.saved.append(saved)
        measured.bytes.append(size)

    def enter(module: torch.nn.Module, arguments: object) -> None:
        nonlocal depth
        depth += 1

    def leave(module: torch.nn.Module, arguments: object, out: object) -> None:
        nonlocal depth
        depth -= 1
        if depth or next(module.parameters(), None) is None:
            return
        measured.passes += 1
        recorded = [tensor for tensor in tensors_in(out) if tensor.grad_fn is not None]
        if recorded:
            index = measured.recorded
            measured.recorded += 1
            leaves.append(parameters_above(recorded))
            for tensor in recorded:
                tensor.register_hook(lambda gradient: used.add(index))  # type: ignore[no-untyped-call]

    def step(optimizer: torch.optim.Optimizer, arguments: object, named: object) -> None:
        stepped.update(id(parameter) for group in optimizer.param_groups for parameter in group["params"])

    first = torch.nn.modules.module.register_module_forward_pre_hook(enter)
    steps = register_optimizer_step_post_hook(step)
    last = torch.nn.modules.module.register_module_forward_hook(leave)
    try:
        with batches_seen_by(at_batch):
            yield
    finally:
        first.remove()
        last.remove()
        steps.remove()
        measured.used = sum(not (stepped and leaves[n]) or not leaves[n].isdisjoint(stepped) for n in used)


def parameters_above(tensors: Iterable[torch.Tensor]) -> set[int]:
    """What the graphs of tensors lead to, by identity; nothing if that is also something other than parameters."""
    found: set[int] = set()
    nodes: list[Any] = [tensor.grad_fn for tensor in tensors]
    seen: dict[int, object] = {}
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        variable = getattr(node, "variable", None)
        if variable is not None:
            if not isinstance(variable, torch.nn.Parameter):
                return set()
            found.add(id(variable))
        nodes += [after for after, _ in node.next_functions if after is not None]
    return found


@contextlib.contextmanager
def batches_seen_by(look: Callable[[], None]) -> Iterator[None]:
    """Call `look` before every batch that a DataLoader hands out."""
    iterator: Any = dataloader._BaseDataLoaderIter
    original = iterator.__next__

    def probed(self: Any) -> Any:
        look()
        return original(self)

    iterator.__next__ = probed
    try:
        yield
    finally:
        iterator.__next__ = original


class _Files:
    """Imports the program's files from memory, under their own names."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self.names = {name.removesuffix(".py") for name in files}

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        loader: Any = self
        return importlib.util.spec_from_loader(name, loader) if name in self.names else None

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        self.execute(f"{module.__name__}.py", vars(module))

    def execute(self, name: str, scope: dict[str, Any]) -> None:
        exec(compile(self.files[name], name, "exec", dont_inherit=True), scope)


def run(files: Mapping[str, str], drive: str = "", seconds: int = 60) -> Measured:
    """Run the files as one program, in this process, and count."""
    measured = Measured()
    _ROLES.clear()  # it holds classes of the last program
    gc.collect()
    gc.freeze()  # what is alive now is not the program's
    measured.output, measured.error = executed(files, drive, probes(measured), seconds)
    return measured


def executed(
    files: Mapping[str, str], drive: str, around: contextlib.AbstractContextManager[None], seconds: int = 60
) -> tuple[str, str]:
    """Run the files as one program, in this process and with small sizes: what it printed, and what it raised."""
    small = {name: _SIZE.sub(lambda size: SIZES[size[0]], text) for name, text in files.items()}
    if drive:
        small["drive.py"] = _SIZE.sub(lambda size: SIZES[size[0]], drive)
    out, failed = io.StringIO(), ""
    try:
        with _set_aside(small), _in_time(seconds), _numbers_without_numpy(), _failures_of_threads() as failures:
            loader = _Files(small)
            sys.meta_path.insert(0, loader)
            try:
                with around, warnings.catch_warnings(), contextlib.redirect_stdout(out):
                    warnings.simplefilter("ignore")
                    loader.execute("drive.py" if drive else "main.py", {"__name__": "__main__", "__file__": "main.py"})
            finally:
                sys.meta_path.remove(loader)
            if failures:
                failed = failures[0]
    except Exception as error:  # noqa: BLE001 - the program's own, of whatever kind
        failed = f"{type(error).__name__}: {error}"
    return out.getvalue(), failed


@contextlib.contextmanager
def _set_aside(files: Mapping[str, str]) -> Iterator[None]:
    """Leave the process as it was: modules of the files' names, gradient mode, threads."""
    names = [name.removesuffix(".py") for name in files]
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    gradients, threads, interval = torch.is_grad_enabled(), torch.get_num_threads(), sys.getrecursionlimit()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(gradients)
        sys.setrecursionlimit(interval)
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(before)


@contextlib.contextmanager
def _in_time(seconds: int) -> Iterator[None]:
    """Stop what takes longer, in processor time or ten times that by the clock, where the system can.

    On a busy machine a program is as long as elsewhere.
    """
    if not hasattr(signal, "SIGPROF") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(number: int, frame: object) -> None:
        raise TimeoutError("too slow")

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds))
    before = {number: signal.signal(number, late) for number, _, _ in timers}
    for _, timer, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for number, timer, _ in timers:
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


@contextlib.contextmanager
def _numbers_without_numpy() -> Iterator[None]:
    """Let `Tensor.numpy` give numbers where numpy is not installed: it keeps as little of the graph."""
    if importlib.util.find_spec("numpy") is not None:
        yield
        return

    def numbers(self: torch.Tensor) -> Any:
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self.tolist()

    tensor: Any = torch.Tensor
    before = tensor.numpy
    tensor.numpy = numbers
    try:
        yield
    finally:
        tensor.numpy = before


@contextlib.contextmanager
def _failures_of_threads() -> Iterator[list[str]]:
    """What threads raised, as text: an exception would keep what its frames hold."""
    failures: list[str] = []
    before = threading.excepthook
    threading.excepthook = lambda failed: failures.append(f"{failed.exc_type.__name__}: {failed.exc_value}")
    try:
        yield failures
    finally:
        threading.excepthook = before


def growth(series: Sequence[int]) -> float:
    """The mean growth in the window of eight iterations that grows most, and to its end; 0 below one a time."""
    best = 0.0
    for start in range(2, len(series) - WINDOW + 1):
        window = series[start : start + WINDOW]
        middle = window[WINDOW // 2]
        if all(b >= a for a, b in pairwise(window)) and window[0] < middle < window[-1]:
            best = max(best, (window[-1] - window[0]) / (WINDOW - 1))
    return round(best, 2) if best >= 1 else 0.0


def labelled(measured: Measured, differentiates: bool, unseen: bool) -> Label:
    """What the measurement says; `differentiates` and `unseen` are known by construction."""
    nodes, saved = growth(measured.nodes), growth(measured.saved)
    wasted = measured.recorded - measured.used
    if nodes:
        truth = "deferred" if differentiates and wasted <= 2 else "leak"
    else:
        truth = "waste" if wasted >= WINDOW else "clean"
    return Label(
        truth,
        unseen,
        nodes > 0,
        saved > 0,
        nodes,
        growth(measured.bytes),
        measured.passes,
        measured.recorded,
        measured.used,
        tuple(measured.nodes),
    )


def confirmed(files: Mapping[str, str], drive: str, put: Sequence[Mark]) -> bool | None:
    """Whether nothing grows without these lines; None if it cannot be told, because the program then raises early."""
    without = dict(files)
    for file, row in put:
        lines = without[file].split("\n")
        line = lines[row - 1]
        lines[row - 1] = line[: len(line) - len(line.lstrip())] + "pass"
        without[file] = "\n".join(lines)
    measured = run(without, drive)
    return growth(measured.nodes) == 0 if len(measured.nodes) >= WINDOW + 2 else None

"""Running a fixture: under a seed, with what it is given, and with note taken of all it computes."""

from __future__ import annotations

import ast
import contextlib
import gc
import inspect
import io
import itertools
import multiprocessing
import random
import re
import sys
import types
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader

from tests.runtime.proving.images import Image, image_of
from tests.runtime.proving.world import LATER, Given, World
from torchmemlint.runtime import internals, track_memory

NAME = "fixture_under_proof"
GRAPH = re.compile(r",\s+(grad_fn=<\w+>|requires_grad=True)")  # in a printed tensor


@dataclass(frozen=True)
class Play:
    """What a fixture needs beyond the conventions: other arguments, modules to import, another way to be called."""

    given: Mapping[str, Given] = field(default_factory=dict)
    modules: Callable[[World], Mapping[str, types.ModuleType]] = lambda world: {}
    act: Callable[[Stage], Any] | None = None
    argv: tuple[str, ...] = ()


class Stage:
    """A loaded fixture and the world that its functions are called with."""

    def __init__(self, world: World, module: types.ModuleType, tree: ast.Module) -> None:
        self.world, self.module, self._tree = world, module, tree

    def feed(self, name: str) -> Any:
        return self.world.feed(name)

    def call(self, name: str) -> Any:
        """Call a function of the fixture, or make an object of its class."""
        return self.apply(getattr(self.module, name))

    def apply(self, function: Callable[..., Any]) -> Any:
        """Call something with what its parameters are named after."""
        found = inspect.signature(function).parameters.values()
        wanted = [one for one in found if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        arguments = {one.name: self._argument(one) for one in sorted(wanted, key=lambda one: one.name in LATER)}
        given = function(**arguments)
        return list(given) if isinstance(given, types.GeneratorType) else given

    def _argument(self, parameter: inspect.Parameter) -> Any:
        cls, name = parameter.annotation, parameter.name
        if isinstance(cls, type) and cls.__module__ == NAME and name not in self.world.made:
            self.world.made[name] = self.world.seeded(name, lambda _: self.apply(cls))
        return self.world.feed(name, parameter)

    def play(self) -> Any:
        """Call whatever nothing in the file calls, in its order."""
        used = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        results = []
        for node in self._tree.body:
            if isinstance(node, ast.FunctionDef) and node.name not in used:
                results.append(self.call(node.name))
            elif isinstance(node, ast.ClassDef) and node.name not in used:
                results.append(self._play_class(node))
        return results

    def _play_class(self, node: ast.ClassDef) -> Any:
        made = self.call(node.name)
        if isinstance(made, nn.Module):
            return [self.learn(made) for _ in range(2)]
        own = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
        methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
        called = [name for name in methods if not name.startswith("_") and name not in own]
        return made, [self.apply(getattr(made, name)) for name in called]

    def learn(self, made: nn.Module) -> Any:
        """One training step of a network of the fixture's, all its parameters in the optimizer."""
        self.world.made.setdefault("a network of the fixture's", made.to(self.world.device))
        optimizer = self.world.feed("optimizer")
        optimizer.zero_grad()
        outputs = self.apply(made.forward)
        first = outputs[0] if isinstance(outputs, tuple) else outputs
        first.float().square().mean().backward()
        optimizer.step()
        return outputs


@dataclass(frozen=True)
class Run:
    """What a run computed, by what it is; its peak in bytes; what it raised; the lines it reached, if it was traced."""

    seen: dict[str, Image]
    peak: int
    backend: str
    error: str
    reached: frozenset[int]

    @property
    def told(self) -> bool:
        """Whether there is anything to compare."""
        return bool(self.seen["losses"] or self.seen["printed"] or self.seen["saved"] or self.seen["has results"])


def run(path: Path, play: Play, seed: int, folder: Path, *, track: bool, trace: bool = False) -> Run:
    """Run a fixture. For a GPU's the backend is `simulated`; on the host memory is tracked, and lines, if asked for."""
    text = path.read_text(encoding="utf-8")
    simulated = "cuda" in text
    backend = "simulated" if simulated else "cpu" if track else ""
    world = World(text, seed, "cuda" if simulated else "cpu", folder, dict(play.given))
    printed, losses, parameters = io.StringIO(), list[Image](), dict[tuple[int, int], Image]()
    error, results, peak = "", None, 0
    module = types.ModuleType("__main__" if "__main__" in text else NAME)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_prepared(seed, play, world, module))
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(_noted(losses, parameters))
        memory = stack.enter_context(track_memory(backend)) if backend else None
        reached = stack.enter_context(_traced(str(path))) if trace else set()
        try:
            exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))
            stage = Stage(world, module, ast.parse(text))
            results = stage.play() if play.act is None else play.act(stage)
        except Exception as raised:  # noqa: BLE001 (whatever the fixture raises is compared, too)
            error = f"{type(raised).__name__}: {raised}"
        if memory is not None:
            peak = memory.peak
        left_out = _arguments(ast.parse(text))  # a fix may add to them, and import what it names
        kept = {
            name: value
            for name, value in vars(module).items()
            if not name.startswith("__") and not isinstance(value, types.ModuleType) and name not in left_out
        }
        seen = {
            "losses": losses,
            "printed": GRAPH.sub("", printed.getvalue()),
            "results": image_of(results, NAME),
            "has results": _has_values(results),
            "parameters": [parameters[key] for key in sorted(parameters)],
            "saved": image_of(world.saved, NAME) if world.saved else None,
            "given": image_of(world.made, NAME),
            "kept": image_of(kept, NAME),
            "random": torch.get_rng_state().tolist(),
        }
    return Run(seen, peak, backend, error, frozenset(reached))


def _arguments(tree: ast.Module) -> set[str]:
    """The dictionaries that do nothing but give calls their arguments: `f(**settings)`."""
    loads = Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    spread = (n.value for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg is None)
    given = Counter(value.id for value in spread if isinstance(value, ast.Name))
    return {name for name, number in given.items() if number == loads[name]}


def _has_values(results: Any) -> bool:
    if isinstance(results, list | tuple):
        return any(map(_has_values, results))
    return results is not None


@contextlib.contextmanager
def _prepared(seed: int, play: Play, world: World, module: types.ModuleType) -> Iterator[None]:
    random.seed(seed)
    torch.manual_seed(seed)
    mode = torch.is_grad_enabled()
    modules = {NAME: module, **play.modules(world)}
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    collecting = gc.isenabled()
    gc.disable()  # so that what lies in cycles is freed at the same moments
    try:
        with (
            mock.patch.object(sys, "argv", [NAME, *play.argv]),
            mock.patch.object(DataLoader, "__init__", _few_workers(DataLoader.__init__)),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        if collecting:
            gc.enable()
        torch.set_grad_enabled(mode)
        for key, old in before.items():
            if old is None:
                del sys.modules[key]
            else:
                sys.modules[key] = old


def _few_workers(make: Callable[..., None]) -> Callable[..., None]:
    def initialise(self: Any, *arguments: Any, num_workers: int = 0, **named: Any) -> None:
        if num_workers and "fork" in multiprocessing.get_all_start_methods():
            named["multiprocessing_context"] = "fork"
        make(self, *arguments, num_workers=min(num_workers, 1), **named)

    return initialise


@contextlib.contextmanager
def _noted(losses: list[Image], parameters: dict[tuple[int, int], Image]) -> Iterator[None]:
    numbers: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()
    count = itertools.count()
    original = torch.autograd.backward

    def backward(tensors: Any, *arguments: Any, **named: Any) -> None:
        with internals.unwatched():
            losses.append(image_of(tensors, NAME))
        original(tensors, *arguments, **named)

    def stepped(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if optimizer not in numbers:
            numbers[optimizer] = next(count)
        with internals.unwatched():
            owned = [one for group in optimizer.param_groups for one in group["params"]]
            parameters.update({(numbers[optimizer], place): image_of(one, NAME) for place, one in enumerate(owned)})

    handle = register_optimizer_step_post_hook(stepped)
    try:
        with mock.patch.object(torch.autograd, "backward", backward):
            yield
    finally:
        handle.remove()


@contextlib.contextmanager
def _traced(file: str) -> Iterator[set[int]]:
    """The lines of a file that are run meanwhile."""
    reached: set[int] = set()

    def on_line(frame: types.FrameType, event: str, argument: Any) -> Any:
        reached.add(frame.f_lineno)
        return on_line

    def on_call(frame: types.FrameType, event: str, argument: Any) -> Any:
        return on_line(frame, event, argument) if frame.f_code.co_filename == file else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield reached
    finally:
        sys.settrace(before)

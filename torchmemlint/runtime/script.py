"""The child's side of a measured run: a program is run as `__main__`, unmodified on the disk, and what it did is told.

`main` is given an `Order` and writes a `RunResult`. What keeps the run short is told in `loops.py`; what is kept
away from the user's files in `aside.py`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Protocol

import torch

from torchmemlint.measured import SIMULATED
from torchmemlint.runtime import backends, internals
from torchmemlint.runtime.aside import Aside
from torchmemlint.runtime.demands import Observer
from torchmemlint.runtime.evidence import Watch
from torchmemlint.runtime.failures import Failures
from torchmemlint.runtime.frameworks import Frameworks
from torchmemlint.runtime.groups import gloo_for_nccl
from torchmemlint.runtime.guard import Guard
from torchmemlint.runtime.host import heap_bytes
from torchmemlint.runtime.instrument import Instrumented
from torchmemlint.runtime.ledger import Ledger
from torchmemlint.runtime.loops import Entry, LoopWatch
from torchmemlint.runtime.memory import MemoryUse
from torchmemlint.runtime.order import PLAIN, Order, Program, ProjectFiles
from torchmemlint.runtime.outcome import outcome
from torchmemlint.runtime.results import RunResult
from torchmemlint.runtime.spawned import Following
from torchmemlint.runtime.steps import Steps
from torchmemlint.runtime.values import Values

_STARTED = time.monotonic()


class Analysis(Protocol):
    """Something that looks at a run while it goes on, in the child, and adds what it found to the result."""

    def turn(self, entry: Entry) -> None:
        """A turn of a loop begins. The program's frames live; what is done here is watched by the tracker."""

    def leave(self, entry: Entry) -> None:
        """A loop is left; its frame still lives."""

    def result(self) -> dict[str, Any]:
        """What is added, as JSON's types. The measurement has ended; the main module's names still live."""


class Run:
    """A run while it goes on. `memory` is None for one without the tracker."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.started = _STARTED
        self.module: ModuleType | None = None  # the program's `__main__`
        self.error: BaseException | None = None  # that ended it; its traceback keeps the frames alive
        self.exit_code: int | None = None
        self.backend = _backend(order) if order.tracked else None
        self.memory: MemoryUse | None = None
        self.watch: Watch | None = None
        ledger = self.ledger
        self.failures = Failures() if ledger is None else ledger.failures
        self.steps = Steps(self.failures)
        left = order.seconds - (time.monotonic() - _STARTED)
        now = (lambda: 0) if ledger is None else (lambda: ledger.now)
        self.loops = LoopWatch(order.steps, left, now, self.failures)
        self.instrumented = Instrumented(ProjectFiles(order.roots), self.loops, order.overlay, order.probes)
        self.aside = Aside(Path(order.folder), order.made_file)
        self.values = Values() if order.values else None
        self.times: dict[str, list[float]] = {}
        self.heaps: dict[str, list[int]] = {}
        self.analysis: Analysis | None = None
        own = [Path(one) for one in (order.folder, order.program.elsewhere) if one is not None]
        self.observer = Observer(own, order.writes_file) if order.observed else None
        self._backwards = 0
        self._told = 0.0
        self._own_time = 0.0  # seconds spent in these observers, taken out of the time per step
        self._entered = contextlib.ExitStack()
        self._observe()

    @property
    def ledger(self) -> Ledger | None:
        """What the tracker wrote down."""
        return None if self.backend is None else self.backend.ledger

    def _observe(self) -> None:
        steps = self.steps
        if self.values is not None:
            steps.after_step.append(self._apart(self.values.see_parameters))
            steps.on_backward.append(self._apart(self.values.see_losses))
        steps.on_backward.append(self._count_backward)
        steps.on_root_backward.append(lambda: steps.ended("backward", self))
        steps.on_call.append(self._called)
        steps.begin_pass = self._begin_pass
        if self.backend is not None:
            self.watch = Watch(self.backend.tracker, steps=steps)
        steps.on_step.append(self._step)
        if self.order.analysis is not None:
            module, _, name = self.order.analysis.partition(":")
            analysis: Analysis = getattr(importlib.import_module(module), name)(self)
            self.analysis = analysis
            self.loops.on_turn.append(analysis.turn)
            self.loops.on_leave.append(analysis.leave)

    def _apart(self, observer: Callable[[Any], None]) -> Callable[[Any], None]:
        def observe(value: Any) -> None:
            began = time.perf_counter()
            observer(value)
            self._own_time += time.perf_counter() - began

        return observe

    def _count_backward(self, roots: Any) -> None:
        self._backwards += 1

    def _called(self) -> None:
        if self.loops.calls_in_a_new_turn():
            self.steps.ended("call", self.loops)

    def _optimizer_steps(self) -> int:
        counts = self.loops.counts
        return max((count for series, count in counts.items() if series.startswith("optimizer")), default=0)

    def _begin_pass(self) -> Callable[[int], bool]:
        steps, backwards = self._optimizer_steps(), self._backwards

        def enough(batches: int) -> bool:
            return self.loops.enough_batches(batches, self._optimizer_steps() - steps, self._backwards - backwards)

        return enough

    def _step(self, series: str) -> None:
        now = time.perf_counter()
        with self.failures.noted():
            self._note_step(series, now)
        self._own_time += time.perf_counter() - now
        self.loops.step(series)

    def _note_step(self, series: str, now: float) -> None:
        self.times.setdefault(series, []).append(now - self._own_time)
        held = heap_bytes(collect=False)
        if held is not None:
            self.heaps.setdefault(series, []).append(held - self._tensors_and_columns())
        if now - self._told > 0.2:
            self._told = now
            self.order.progress_file.write_text(str(sum(self.loops.counts.values())), encoding="utf-8")

    def _tensors_and_columns(self) -> int:
        """What the tracker knows to be on the host's heap: tensors (a simulated device's, too), and its own notes."""
        if self.backend is None:
            return 0
        live, sites = self.backend.ledger.live, self.backend.tracker.sites
        there = sum(live.values()) if self.backend.name == SIMULATED else live.get(backends.HOST, 0)
        return there + self.backend.ledger.footprint + sites.footprint

    # --- running

    def run(self) -> RunResult:
        """Run the program, and tell what it did."""
        self.begin()
        try:
            self._program()
        except BaseException as error:  # noqa: BLE001 (whatever the program raises is part of the result)
            self.note(error)
        self.end()
        return outcome(self)

    def note(self, error: BaseException) -> None:
        """Keep what ended the program."""
        self.error = error
        if isinstance(error, SystemExit):
            self.exit_code = _exit_code(error)
            self.error = error if self.exit_code else None

    def begin(self) -> None:
        """Measure from now on what this thread does."""
        self.loops.when_swallowed = self._leave_at_once
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.aside.standing_in())
            stack.enter_context(Frameworks(self.aside, self.loops, self.order.fake))
            stack.enter_context(self.instrumented)
            if not self._on_real_gpus():
                stack.enter_context(gloo_for_nccl())
            if self.order.rank is None:
                stack.enter_context(Following(self))
            left = self.order.seconds - (time.monotonic() - _STARTED)
            stack.enter_context(_time_limit(self.loops, left))
            if self.backend is not None and self.watch is not None:
                stack.enter_context(self.watch)
                stack.enter_context(self.backend.running())
                self.memory = MemoryUse(self.backend, self.watch)
            else:
                stack.enter_context(self.steps)
            if self.observer is not None:
                self.observer.start()
            guard = Guard(self.order.leave_file, left, self._stop, self._leave_at_once)
            guard.start()
            stack.callback(guard.over)
            self._entered = stack.pop_all()

    def _on_real_gpus(self) -> bool:
        simulates = self.backend is not None and self.backend.name == SIMULATED
        return torch.cuda.is_available() and not simulates

    def end(self) -> None:
        """No longer."""
        self.loops.paused = True
        self._end_measurement()
        self.forsake()

    def forsake(self) -> None:
        """Put everything back, with nothing measured any more: also where a fork has brought a copy of this run."""
        self._entered.close()

    def _stop(self, why: str) -> None:
        """End the program at its next step, or sooner."""
        self.loops.stopped = self.loops.stopped or why
        if hasattr(signal, "SIGALRM"):
            os.kill(os.getpid(), signal.SIGALRM)

    def _end_measurement(self) -> None:
        if self.memory is not None and self.watch is not None:
            with self.failures.noted():
                self.watch.settle()
            self.memory.end()

    def _program(self) -> None:
        program = self.order.program
        main = self.module = ModuleType("__main__")
        if program.module:
            code = _module_code(main, program)
        else:
            script = program.script
            assert script is not None
            main.__file__ = str(script)
            sys.argv = [program.target if program.elsewhere is None else str(script)]
            sys.path.insert(0, str(script.resolve().parent))
            data = script.read_bytes()
            code = self.instrumented.code(str(script), data)
        main.__dict__["__builtins__"] = __builtins__
        sys.argv[1:] = program.arguments
        sys.modules["__main__"] = main
        exec(code, main.__dict__)

    def _leave_at_once(self) -> None:
        """The program does not let itself be stopped: tell what there is, and leave the process."""
        self.loops.paused = True
        with internals.unwatched():
            self._end_measurement()
            self.write(outcome(self))
        sys.stdout.flush()
        os._exit(0)

    def write(self, result: RunResult) -> None:
        """Write the result, and first what belongs to it."""
        if self.values is not None:
            self.values.write(self.order.values_file)
        result.write(self.order.result_file)


def _backend(order: Order) -> backends.Backend:
    options: dict[str, Any] = {"fake": True} if order.fake else {}
    if order.backend not in PLAIN:
        wanted = {name: getattr(order, name) for name in ("card", "memory", "limit", "devices")}
        options |= {name: value for name, value in wanted.items() if value is not None}
        simulates = order.backend == SIMULATED or options or not torch.cuda.is_available()
        if order.program.processes > 1 and simulates:
            options.setdefault("devices", order.program.processes)
    return backends.choose(order.backend, history=True, **options)


def _module_code(main: ModuleType, program: Program) -> Any:
    """The code that `python -m name` runs, with the main module made ready for it."""
    name = program.target
    sys.argv = ["-m"]
    sys.path.insert(0, str(Path(program.directory).absolute()))
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name = f"{name}.__main__"
        spec = importlib.util.find_spec(name)
    loader: Any = None if spec is None else spec.loader
    if spec is None or not hasattr(loader, "get_code"):
        raise ImportError(f"no module named {name}")
    main.__spec__, main.__loader__, main.__package__ = spec, loader, spec.parent
    if spec.origin is not None:
        main.__file__ = sys.argv[0] = spec.origin
    return loader.get_code(name)


@contextlib.contextmanager
def _time_limit(loops: LoopWatch, seconds: float) -> Iterator[None]:
    """Stop the program from within when its time is over, also where it makes no steps."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        loops.check()

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.1) + 0.1, 5.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _exit_code(leaving: SystemExit) -> int:
    code = leaving.code
    return 0 if code is None else code if isinstance(code, int) else 1


def seed_all(seed: int) -> None:
    """Set the seeds of random, torch and, where it is installed, numpy."""
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")  # torch imports it where it is installed
    if numpy is not None:
        numpy.random.seed(seed)


def _end_with(parent: int) -> None:
    """End this process and those that it began when its parent is gone, however that ended."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main(path: str) -> int:
    """Carry out the order in a file."""
    order = Order.read(Path(path))
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():  # a group of our own, as `launch` makes it
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    seed_all(order.seed)
    try:
        run = Run(order)
    except (RuntimeError, ValueError) as problem:  # no such backend here
        print(problem, file=sys.stderr)
        return 2
    gc.collect()
    result = run.run()
    run.write(result)
    return 0

"""The processes that a program begins itself (`mp.spawn`, `Process(target=train)`): each is measured as the program is.

Python's own `multiprocessing` begins them. A *followed* process is told its number in the data that prepares it, before
it imports anything of the program's, so that its files are instrumented and overlaid there, too; a forked one has them
already, with a copy of a run that is forsaken for one of its own. Loaders' workers, and what libraries begin, are none.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import multiprocessing.process
import multiprocessing.spawn
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from torchmemlint.runtime.loops import StopRun
from torchmemlint.runtime.order import Order

if TYPE_CHECKING:
    from torchmemlint.runtime.script import Run

_SPAWNING = "torch.multiprocessing.spawn"
_NUMBER = "_torchmemlint_number"
_CUT = "the process that began it was cut short"
_PATIENCE = 10.0
"""Seconds for which a process whose loops were cut waits for one that it began, and again when that is to stop."""
Process: Any = multiprocessing.process.BaseProcess
spawn: Any = multiprocessing.spawn


class Following(contextlib.ExitStack):
    """While entered, the processes that the program begins are followed."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run
        self._process = os.getpid()
        self._numbers = itertools.count()
        self._starting = threading.local()

    def __enter__(self) -> Following:
        """Stand where processes are begun."""
        self._replace(Process, "start", self._start)
        self._replace(Process, "_bootstrap", self._bootstrap)
        self._replace(Process, "join", self._join)
        self._replace(spawn, "get_preparation_data", self._preparation)
        return self

    def _replace(self, owner: Any, name: str, through: Callable[..., Any]) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def replacement(*arguments: Any, **keywords: Any) -> Any:
            return through(original, *arguments, **keywords)

        setattr(owner, name, replacement)
        self.callback(setattr, owner, name, original)

    def _start(self, original: Callable[..., Any], process: Any) -> Any:
        if self._is_followed(process):
            setattr(process, _NUMBER, next(self._numbers))
        self._starting.process = process
        try:
            return original(process)
        finally:
            self._starting.process = None

    def _join(self, original: Callable[..., Any], process: Any, timeout: float | None = None) -> Any:
        """Where loops were cut here, the other may wait for what nobody takes any more: it is told to stop."""
        number = getattr(process, _NUMBER, None)
        loops = self._run.loops
        was_cut = loops.cut_passes or any(loop.cuts for loop in loops.loops.values())
        if timeout is not None or number is None or not was_cut or os.getpid() != self._process:
            return original(process, timeout)
        original(process, _PATIENCE)
        if process.is_alive():
            self._run.order.of_process(number).leave_file.write_text(_CUT, encoding="utf-8")
            original(process, _PATIENCE)
        if process.is_alive():
            process.terminate()
        return original(process, None)

    def _is_followed(self, process: Any) -> bool:
        """Whether it runs code of the project, or what `torch.multiprocessing` spawns."""
        target = getattr(process, "_target", None) or type(process).run
        while isinstance(target, functools.partial):
            target = target.func
        module = getattr(target, "__module__", "")
        file = getattr(sys.modules.get(module), "__file__", None)
        return module == _SPAWNING or (file is not None and file in self._run.instrumented.files)

    def _preparation(self, original: Callable[..., Any], name: str) -> Any:
        """What a spawned process is given first: unpickling it begins the measurement there."""
        data = original(name)
        number = getattr(getattr(self._starting, "process", None), _NUMBER, None)
        return data if number is None else {"torchmemlint": _Begin(str(self._run.order.file), number), **data}

    def _bootstrap(self, original: Callable[..., Any], process: Any, *arguments: Any, **keywords: Any) -> Any:
        """Runs in the new process, if that was forked."""
        number = getattr(process, _NUMBER, None)
        if number is not None and os.getpid() != self._process:
            order = self._run.order
            self._run.forsake()
            _measure(order.of_process(number), process)
        return original(process, *arguments, **keywords)


class _Begin:
    def __init__(self, file: str, number: int) -> None:
        self._what = file, number

    def __reduce__(self) -> Any:
        return begin, self._what


def begin(file: str, number: int) -> None:
    """In a process that was spawned, before anything of the program's is imported."""
    from torchmemlint.runtime.script import seed_all

    order = Order.read(Path(file)).of_process(number)
    seed_all(order.seed)
    bootstrap = Process._bootstrap

    def bootstrapped(process: Any, *arguments: Any, **keywords: Any) -> Any:
        _wrap_run(run, process)
        return bootstrap(process, *arguments, **keywords)

    run = _begun(order)
    Process._bootstrap = bootstrapped
    spawn._fixup_main_from_path = functools.partial(_main_from_path, run)


def _begun(order: Order) -> Run:
    from torchmemlint.runtime.script import Run

    Path(order.folder).mkdir(exist_ok=True)
    run = Run(order)
    run.begin()
    return run


def _measure(order: Order, process: Any) -> None:
    _wrap_run(_begun(order), process)


def _main_from_path(run: Run, path: str) -> None:
    """As `multiprocessing.spawn` does it: the script is the main module, under another name. With ticks."""
    main = ModuleType("__mp_main__")
    main.__file__ = path
    main.__dict__["__builtins__"] = __builtins__
    spawn.old_main_modules.append(sys.modules["__main__"])
    run.module = sys.modules["__main__"] = sys.modules["__mp_main__"] = main
    data = Path(path).read_bytes()
    exec(run.instrumented.code(path, data), main.__dict__)


def _wrap_run(run: Run, process: Any) -> None:
    """Have a process tell what it did when its function returns. Being stopped is no error of the program's."""
    function = process.run
    spawning: Any = sys.modules.get(_SPAWNING)
    if spawning is not None and getattr(process, "_target", None) is spawning._wrap:  # which swallows errors
        called, *rest = process._args
        process._args = (functools.partial(_noting, run, called), *rest)

    def measured() -> None:
        from torchmemlint.runtime.outcome import outcome

        try:
            function()
        except StopRun as stop:
            run.note(stop)
        except BaseException as error:
            if run.error is None:
                run.note(error)
            raise
        finally:
            run.end()
            run.write(outcome(run))

    process.run = measured


def _noting(run: Run, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        run.note(error)
        raise

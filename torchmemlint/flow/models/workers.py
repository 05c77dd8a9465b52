"""Threads, processes and pools: what they run does not inherit the gradient mode of who starts it.

Sources: torch's documentation of `no_grad` ("This context manager is thread local; it will not affect computation in
other threads"); Python's of `threading`, `multiprocessing`, `concurrent.futures` and `asyncio` for where a function and
its arguments stand. `Process.start` (multiprocessing/process.py) and `Thread.run` (threading.py) delete both at last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Note
from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import Remark
from torchmemlint.flow.domain.refs import Object, Ref
from torchmemlint.flow.domain.values import PLAIN, UNKNOWN, Value, of
from torchmemlint.flow.ir.ops import Class
from torchmemlint.flow.models import containers

_Places = Mapping[str, tuple[int, str]]
_THREAD: _Places = {"function": (1, "target"), "args": (3, "args"), "kwargs": (4, "kwargs")}
_TIMER: _Places = {"function": (1, "function"), "args": (2, "args"), "kwargs": (3, "kwargs")}
_STARTED = {  # where the function stands that it runs when it is started, and the tuple and dict of its arguments
    "threading.Thread": _THREAD,
    "threading.Timer": _TIMER,
    "multiprocessing.Process": _THREAD,
    "multiprocessing.context.Process": _THREAD,
}
QUEUE = "multiprocessing.Queue"  # all those that lie between processes
_QUEUES = frozenset({"Queue", "SimpleQueue", "JoinableQueue"})
_CONTEXTS = ("multiprocessing.get_context", "multiprocessing.context.")
_POOLS = ("concurrent.futures.", "multiprocessing.pool.", "multiprocessing.dummy.", "multiprocessing.Pool", "joblib.")
_THREADS = ("threading.", "concurrent.futures.ThreadPool", "multiprocessing.pool.ThreadPool", "multiprocessing.dummy.")
_EAGER = frozenset({"map", "starmap", "map_async", "starmap_async"})
_LAZY = frozenset({"imap", "imap_unordered"})
_APPLIES = frozenset({"apply", "apply_async"})
_SPAWNS = (
    "torch.multiprocessing.spawn torch.multiprocessing.start_processes torch.multiprocessing.spawn.spawn "
    "torch_xla.distributed.xla_multiprocessing.spawn torch_xla.launch"
).split()


def _called(qualified: str) -> str:
    """Return Python's name of what torch wraps."""
    return qualified.removeprefix("torch.") if qualified.startswith("torch.multiprocessing.") else qualified


def _make(qualified: str) -> Callable[[CallSite], Value]:
    def make(site: CallSite) -> Value:
        made = containers.made(site, Kind.OPAQUE, qualified)
        for holder in made.each():
            _hold(site, holder, _STARTED[qualified])
        return made

    return make


def _queue(site: CallSite) -> Value:
    return containers.made(site, Kind.OPAQUE, QUEUE)


def _launch(site: CallSite) -> Value:
    """`accelerate.notebook_launcher(f, args)`."""
    return in_process(site, site.value(0, "function"), Arguments(star=site.arguments.get(1, "args")))


def _spawn(site: CallSite) -> Value:
    """`torch.multiprocessing.spawn(f, args)`: f is given its rank first."""
    return in_process(site, site.value(0, "fn"), Arguments([PLAIN], star=site.arguments.get(1, "args")))


def _to_thread(site: CallSite) -> Value:
    """`asyncio.to_thread(f, *args)`."""
    return in_thread(site, site.value(0, "func"), site.arguments.rest())


FUNCTIONS: dict[str, Callable[[CallSite], Value]] = {
    **{name: _make(_called(name)) for one in _STARTED for name in (one, one.replace("multi", "torch.multi"))},
    **{f"{module}.{name}": _queue for name in _QUEUES for module in ("multiprocessing", "torch.multiprocessing")},
    **dict.fromkeys(_SPAWNS, _spawn),
    **dict.fromkeys(("accelerate.notebook_launcher", "accelerate.debug_launcher"), _launch),
    "asyncio.to_thread": _to_thread,
}


def initialise(site: CallSite, receiver: Ref, cls: Class) -> None:
    """Let an object of a class that derives from a thread or process hold what its base is made with."""
    for base in site.machine.index.libraries(cls):
        if (places := _STARTED.get(_called(base))) is not None:
            _hold(site, receiver, places)


def _hold(site: CallSite, holder: Ref, places: _Places) -> None:
    for name, (index, keyword) in places.items():
        value = site.arguments.get(index, keyword)
        if value is not None:
            site.state.heap.put(holder, name, value)


def of_class(site: CallSite, target: Object, name: str) -> Value | None:
    """Return the value of `start` of an object whose class derives from a thread or process; None for others."""
    index, cls = site.machine.index, target.about.cls
    base = next((name for name in map(_called, index.libraries(cls)) if name in _STARTED), None)
    if name != "start" or base is None:
        return None
    if index.method(cls, "run") is None:
        return _started(site, target, base)
    run = site.machine.attribute(site.frame, site.state, of(target), "run", site.point)
    return _running(base)(site, run, Arguments())


def method(site: CallSite, target: Object, name: str) -> Value | None:
    """Return the value of a method of a pool, thread, process or what makes them; None for other objects."""
    about = _called(str(target.about))
    if about in _STARTED:
        if name == "join":
            _release(site, target, about)  # it has ended
        return _started(site, target, about) if name == "start" else None
    if about.startswith(_CONTEXTS):
        model = FUNCTIONS.get(f"multiprocessing.{name}")
        return None if model is None else model(site)
    if name == "run_in_executor" and len(site.arguments.positional) > 1:
        return in_thread(site, site.arguments.positional[1], site.arguments.rest().rest())
    if about.startswith(_POOLS):
        return _pooled(site, about, name)
    return None


def _pooled(site: CallSite, about: str, name: str) -> Value | None:
    """Return the value of a method of a pool."""
    given = site.arguments
    if name in _EAGER or name in _LAZY:
        where = "thread" if about.startswith(_THREADS) else "process"
        how = "starmap" if name.startswith("starmap") else "map"
        items = containers.lazy(site, f"{where} {how}", given.positional)
        if name in _LAZY:
            return items
        results = containers.made(site, Kind.LIST, name)
        site.consume(items, results)
        return results
    if name == "submit" and given.positional:
        return _running(about)(site, given.positional[0], given.rest())
    if name in _APPLIES and given.positional:
        spread = Arguments(star=given.get(1, "args"), stars=given.get(2, "kwds"))
        return _running(about)(site, given.positional[0], spread)
    return None


def _started(site: CallSite, target: Object, about: str) -> Value:
    held = site.state.heap
    arguments = Arguments(star=held.get(target, "args"), stars=held.get(target, "kwargs"))
    value = _running(about)(site, held.get(target, "function") or UNKNOWN, arguments)
    if not about.startswith(_THREADS):
        _release(site, target, about)
    return value


def _release(site: CallSite, target: Object, about: str) -> None:
    """Let go of what is run: a process does so when it has started, a thread when it ends."""
    for name in _STARTED[about]:
        site.state.heap.remove(target, name)


def _running(about: str) -> Callable[[CallSite, Value, Arguments], Value]:
    return in_thread if about.startswith(_THREADS) else in_process


def in_thread(site: CallSite, function: Value, arguments: Arguments) -> Value:
    """Call a function in another thread."""
    site.frame.log(Note(site.point, Remark.THREADED, mode=site.state.mode))
    return _with_gradients(site, function, arguments)


def _with_gradients(site: CallSite, function: Value, arguments: Arguments) -> Value:
    if not function.refs:
        return PLAIN
    saved, site.state.mode = site.state.mode, Mode.ON
    value = site.machine.call(site.frame, site.state, function, arguments, site.point)
    site.state.mode = saved
    return value


def in_process(site: CallSite, function: Value, arguments: Arguments) -> Value:
    """Call a function in another process: it works on copies, and no graph comes back."""
    _with_gradients(CallSite(site.frame, site.state.copy(), site.point, site.arguments), function, arguments)
    return UNKNOWN

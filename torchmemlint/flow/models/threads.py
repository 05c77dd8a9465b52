"""Threads and pools: what they run does not inherit the gradient mode of who starts it.

Source: torch's documentation of `no_grad` ("This context manager is thread local; it will not affect computation in
other threads").
"""

from __future__ import annotations

from torchmemlint.flow.domain.effects import Arguments
from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Object
from torchmemlint.flow.domain.values import PLAIN, UNKNOWN, Value
from torchmemlint.flow.models import containers

POOLS = ("concurrent.futures.", "multiprocessing.pool.", "multiprocessing.dummy.", "multiprocessing.Pool", "joblib.")
_MAPS = frozenset({"map", "imap", "imap_unordered", "starmap", "map_async"})
_CALLS = frozenset({"submit", "apply", "apply_async"})


def method(site: CallSite, target: Object, name: str) -> Value | None:
    """Return the value of a method of a pool or thread; None for other objects."""
    about = str(target.about)
    if about.startswith(POOLS):
        if name in _MAPS:
            how = "thread starmap" if name == "starmap" else "thread map"
            return containers.lazy(site, how, site.arguments.positional)
        if name in _CALLS and site.arguments.positional:
            return elsewhere(site, site.arguments.positional[0], site.arguments.rest())
        return None
    if about == "threading.Thread" and name == "start":
        heap = site.state.heap
        given = heap.get(target, "args")
        return elsewhere(site, heap.get(target, "target") or UNKNOWN, Arguments(star=given))
    return None


def thread(site: CallSite) -> Value:
    """`threading.Thread(target=f, args=(x,))`."""
    made = containers.made(site, Kind.OPAQUE, "threading.Thread")
    for holder in made.each():
        for name in ("target", "args"):
            value = site.arguments.named.get(name)
            if value is not None:
                site.state.heap.put(holder, name, value)
    return made


def elsewhere(site: CallSite, function: Value, arguments: Arguments) -> Value:
    """Call a function in another thread."""
    if not function.refs:
        return PLAIN
    saved, site.state.mode = site.state.mode, Mode.ON
    value = site.machine.call(site.frame, site.state, function, arguments, site.point)
    site.state.mode = saved
    return value

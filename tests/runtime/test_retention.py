"""Who keeps what: names of holders, their lines, bytes worked out by hand (float32); looking changes nothing."""

from __future__ import annotations

import functools
import gc
import inspect
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from torchmemlint.runtime import track_memory  # noqa: E402
from torchmemlint.runtime.holders import Holder  # noqa: E402
from torchmemlint.runtime.kinds import Kind  # noqa: E402

KEPT_BY_A_MODULE: list[torch.Tensor] = []


def holders_of(program: Callable[[Callable[[], None]], object], *, steps: int = 6) -> dict[str, Holder]:
    """The holders by name at the end of some steps of a program, which is given what ends a step."""
    found: dict[str, Holder] = {}
    with track_memory("cpu") as memory:
        done = 0

        def step() -> None:
            nonlocal done
            memory.step()
            done += 1
            if done == steps:
                found.update({holder.name: holder for holder in memory.retained_by().holders})

        program(step)
    return found


def text_of(holder: Holder) -> str:
    """The source of the line where a holder is filled first."""
    site = holder.filled[0]
    source = inspect.getsourcelines(inspect.getmodule(text_of))[0]  # type: ignore[arg-type]
    return source[site.line - 1].strip()


def test_a_list_of_a_function() -> None:
    def program(step: Callable[[], None]) -> None:
        rows: list[tuple[int, torch.Tensor]] = []
        for number in range(6):
            rows.append((number, torch.ones(64)))
            step()

    holder = holders_of(program)["rows"]
    assert (holder.kind, holder.type, holder.length) == ("local", "list", 6)
    assert (holder.storages, holder.nbytes) == (5, 5 * 256)  # but for what the first step made
    assert (holder.how, holder.graph) == ("direct", 0)
    assert text_of(holder) == "rows.append((number, torch.ones(64)))"


def test_an_attribute_of_an_object() -> None:
    class Meter:
        def __init__(self) -> None:
            self.total: torch.Tensor | float = 0.0
            self.history: dict[str, list[torch.Tensor]] = {"loss": [], "out": []}

        def update(self, loss: torch.Tensor) -> None:
            self.total += loss
            self.history["out"].append(loss.detach() + 1)
            self.history["loss"].append(torch.zeros(1))

    def program(step: Callable[[], None]) -> None:
        weight = nn.Parameter(torch.ones(32))
        meter = Meter()
        for _ in range(6):
            meter.update((torch.ones(32) * weight).sum())
            step()

    found = holders_of(program)
    total = found["meter.total"]
    assert (total.kind, total.of_type, total.how) == (
        "attribute",
        "test_an_attribute_of_an_object.<locals>.Meter",
        "graph",  # its own four bytes are the last step's
    )
    assert total.graph == 5 * 32 * 4  # what the multiplication saved, of each step
    assert text_of(total) == "self.total += loss"
    assert [inspect.getsourcelines(holders_of)[1] < site.line for site, _ in total.graph_lines] == [True]
    assert text_of(found["meter.history['out']"]) == 'self.history["out"].append(loss.detach() + 1)'
    assert text_of(found["meter.history['loss']"]) == 'self.history["loss"].append(torch.zeros(1))'


def test_a_global_a_default_and_a_closure() -> None:
    def remember(value: torch.Tensor, seen: list[torch.Tensor] = []) -> None:  # noqa: B006
        seen.append(value)

    def hook() -> Callable[[torch.Tensor], None]:
        collected: list[torch.Tensor] = []
        return lambda value: collected.append(value)

    def program(step: Callable[[], None]) -> None:
        save = hook()
        for _ in range(6):
            KEPT_BY_A_MODULE.append(torch.ones(1))
            remember(torch.ones(2))
            save(torch.ones(3))
            step()

    found = holders_of(program)
    KEPT_BY_A_MODULE.clear()
    assert {found[name].kind for name in ("KEPT_BY_A_MODULE", "seen", "collected")} == {"global", "default", "closure"}
    assert [found[name].nbytes for name in ("KEPT_BY_A_MODULE", "seen", "collected")] == [5 * 4, 5 * 8, 5 * 12]
    assert text_of(found["seen"]) == "seen.append(value)"


def test_bounds_are_told() -> None:
    @functools.lru_cache(maxsize=7)
    def table(size: int) -> torch.Tensor:
        return torch.ones(size)

    def program(step: Callable[[], None]) -> None:
        last: deque[torch.Tensor] = deque(maxlen=50)
        for number in range(6):
            last.append(torch.ones(5))
            table(number + 1)
            step()

    found = holders_of(program)
    assert (found["last"].type, found["last"].bound, found["last"].length) == ("deque(maxlen=50)", 50, 6)
    cache = next(holder for holder in found.values() if holder.kind == "cache")
    assert (cache.bound, cache.length) == (7, 6)
    assert text_of(cache) == "@functools.lru_cache(maxsize=7)"


def test_a_suspended_generator() -> None:
    def batches() -> Iterator[torch.Tensor]:
        earlier = []
        while True:
            earlier.append(torch.ones(16))
            yield earlier[-1]

    def program(step: Callable[[], None]) -> None:
        source = batches()
        for _ in range(6):
            next(source)
            step()

    holder = holders_of(program)["earlier"]
    assert (holder.kind, holder.nbytes) == ("generator", 5 * 64)
    assert text_of(holder) == "earlier.append(torch.ones(16))"


def test_a_reference_cycle() -> None:
    class Owner:
        def __init__(self, value: torch.Tensor) -> None:
            self.me = self
            self.value = value

    def program(step: Callable[[], None]) -> None:
        for _ in range(6):
            Owner(torch.ones(8))
            step()

    gc.disable()
    try:
        found = holders_of(program)
    finally:
        gc.enable()
    holder = next(holder for holder in found.values() if holder.kind == "cycle")
    assert holder.nbytes == 5 * 32
    assert holder.name.endswith("Owner.value")
    assert text_of(holder) == "self.value = value"


def test_checkpoints_are_not_computed_again() -> None:
    calls = 0

    def block(values: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return values.tanh().exp()

    def program(step: Callable[[], None]) -> None:
        scores = []
        for _ in range(6):
            values = torch.ones(16, requires_grad=True)
            result = checkpoint(block, values, use_reentrant=False, preserve_rng_state=False)
            scores.append(result.mean())
            step()

    found = holders_of(program)
    assert calls == 6
    # Of the five steps after the first: the block's input, held by its hooks, and the mean. (The last step's input is
    # also a local, and so is its result.)
    assert found["scores"].nbytes >= 4 * 64 + 5 * 4


def test_what_a_method_belongs_to() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.outputs: list[torch.Tensor] = []

        def hook(self, module: nn.Module, inputs: object, output: torch.Tensor) -> None:
            self.outputs.append(output)

    def program(step: Callable[[], None]) -> None:
        callbacks = [Recorder().hook]
        for _ in range(6):
            callbacks[0](nn.Identity(), (), torch.ones(64))
            step()

    holder = holders_of(program)["callbacks[0].__self__.outputs"]  # as the source could write it
    assert (holder.kind, holder.nbytes) == ("attribute", 5 * 256)
    assert text_of(holder) == "self.outputs.append(output)"


def test_what_a_graph_held_is_known_when_it_is_gone() -> None:
    def evaluate() -> float:
        weight = nn.Parameter(torch.ones(64, 64))
        total: torch.Tensor | float = 0.0
        for _ in range(10):
            total = total + (torch.ones(4, 64) @ weight).sum()
            memory.step()
        return float(total)

    with track_memory("cpu", holders=True) as memory:
        assert evaluate() == 10 * 4 * 64 * 64
    (leak,) = memory.leaks
    assert leak.bytes_per_turn == 4 * 64 * 4
    assert [kind for kind, _ in leak.kinds] == [Kind.SAVED]
    assert leak.holder is not None
    assert (leak.holder.name, leak.holder.how, leak.holder.carried) == ("total", "direct and graph", True)


def test_a_look_keeps_nothing_alive() -> None:
    gc.disable()
    try:
        with track_memory("cpu") as memory:
            for _ in range(4):
                value = torch.ones(8)
                alive = weakref.ref(value)
                memory.step()
                memory.retained_by()
                del value
                assert alive() is None
    finally:
        gc.enable()


def test_a_look_leaves_locals_as_they_are() -> None:
    with track_memory("cpu") as memory:
        space = locals()
        value = torch.ones(8)
        memory.step()
        memory.retained_by()
        assert "memory" in space  # the program's own dictionary of its locals is not emptied
        assert float(value.sum()) == 8.0


def test_the_limit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchmemlint.runtime import references

    monkeypatch.setattr(references, "LIMIT", 10)
    with track_memory("cpu") as memory:
        kept = []
        for _ in range(4):
            kept.append(torch.ones(8))
            memory.step()
        look = memory.retained_by()
    assert look.cut
    assert look.visited == 10
    assert look.unreached == 3 * 32


def test_other_threads_wait_while_somebody_looks() -> None:
    """Else what the look holds meanwhile, such as the gradients of many steps, would seem to be kept."""
    made: list[int] = []
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            made.append(torch.ones(4).numel())

    with track_memory("cpu") as memory:
        tracker = memory.backend.tracker
        worker = threading.Thread(target=lambda: _within(tracker, work))
        worker.start()
        while not made:
            time.sleep(0.001)
        with tracker.standstill.held():
            before = memory.ledger.now
            time.sleep(0.05)
            assert memory.ledger.now == before
        count = len(made)
        while len(made) < count + 2:
            time.sleep(0.001)
        stop.set()
        worker.join()
    assert memory.ledger.now > before


def _within(mode: Any, work: Callable[[], None]) -> None:
    with mode:
        work()


def test_a_storage_that_is_counted_anew_stays_known_beside_other_threads() -> None:
    began = threading.Event()

    with track_memory("cpu") as memory:
        tracker = memory.backend.tracker
        kept = torch.ones(4)

        def look() -> None:
            with tracker.standstill.held():
                began.set()
                time.sleep(0.05)

        worker = threading.Thread(target=look)
        worker.start()
        began.wait()
        tracker.place(kept, "cpu")  # while the other thread looks
        worker.join()
        torch.ones(4)  # writes off what has gone
        assert tracker.index_of(kept) is not None

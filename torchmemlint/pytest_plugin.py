"""A pytest plugin that keeps a memory leak from coming back.

    @pytest.mark.memory(max_peak="1GiB", max_growth_per_step="1KiB")
    def test_training():
        train(model, loader, epochs=1)

    def test_cache(memory):
        fill()
        assert memory.live < 4096

Limits may also stand in a file, by the tests' node ids (the option `memory_budget`; `runtime/budget.py`).

What is measured begins with the test's fixtures and ends with its body. torch is imported by the first test that
asks for a measurement, and by no other.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from torchmemlint.sizes import format_size, parse_size

if TYPE_CHECKING:
    from torchmemlint.runtime import MemoryUse
    from torchmemlint.runtime.budget import Budget
    from torchmemlint.runtime.ledger import Site

MARKER = "memory"
LIMITS = ("max_peak", "max_growth_per_step")
_LINES = 5
_MEASURED = pytest.StashKey["MemoryUse"]()
_BUDGETS = pytest.StashKey["Mapping[str, Budget]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of the backend."""
    described = "on what memory is measured: auto, cuda, cpu or simulated"
    parser.getgroup("torchmemlint").addoption("--memory-backend", metavar="NAME", help=described)
    parser.addini("memory_backend", described, default="auto")
    parser.addini("memory_budget", "a TOML file with the limits of tests, by their node ids", type="string", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "memory(max_peak=None, max_growth_per_step=None, backend=None): fail if the test takes more memory than "
        "this; sizes such as '1GiB', '64 KiB' or a number of bytes.",
    )
    config.stash[_BUDGETS] = _budgets(config)


def _budgets(config: pytest.Config) -> Mapping[str, Budget]:
    written = config.getini("memory_budget")
    if not written:
        return {}
    from torchmemlint.config.errors import ConfigError
    from torchmemlint.runtime.budget import read_budget

    try:
        return read_budget(config.rootpath / written)
    except ConfigError as error:
        raise pytest.UsageError(f"memory_budget: {error}") from None


def _budget(item: pytest.Item) -> Budget | None:
    """That of a test; of a parametrized one its own, or that of all its parameters."""
    budgets = item.config.stash[_BUDGETS]
    return budgets.get(item.nodeid) or budgets.get(item.nodeid.partition("[")[0])


def pytest_itemcollected(item: pytest.Item) -> None:
    """Measure a test that has limits from its first fixture on."""
    names = getattr(item, "fixturenames", None)
    limited = item.get_closest_marker(MARKER) is not None or _budget(item) is not None
    if names is not None and limited and MARKER not in names:
        names.insert(0, MARKER)


@pytest.fixture
def memory(request: pytest.FixtureRequest) -> Generator[MemoryUse, None, None]:
    """What the test does to memory: `memory.peak`, `memory.live`, `memory.growth_per_step`, `memory.by_line()`."""
    pytest.importorskip("torch", reason="measuring memory needs torch")
    from torchmemlint.runtime import track_memory

    marker = request.node.get_closest_marker(MARKER)
    chosen = (marker.kwargs.get("backend") if marker is not None else None) or request.config.getoption(
        "memory_backend"
    )
    with track_memory(chosen or request.config.getini("memory_backend")) as measured:
        request.node.stash[_MEASURED] = measured
        yield measured


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Compare what a marked test took with its limits, once its body has passed."""
    limits = _limits(item)
    outcome = yield
    measured = item.stash.get(_MEASURED, None)
    if limits:
        if measured is None:  # another fixture of that name took its place: a limit must not pass unmeasured
            pytest.fail("nothing was measured: the fixture `memory` is not torchmemlint's", pytrace=False)
        failure = exceeded(measured, **limits)
        if failure is not None:
            pytest.fail(failure, pytrace=False)
    return outcome


def _limits(item: pytest.Item) -> dict[str, int]:
    marker, budget = item.get_closest_marker(MARKER), _budget(item)
    held = {} if budget is None else {"max_peak": budget.peak, "max_growth_per_step": budget.growth}
    given = {name: limit for name, limit in held.items() if limit is not None}
    if marker is None:
        return given
    unknown = [name for name in marker.kwargs if name not in (*LIMITS, "backend")]
    if unknown or marker.args:
        raise pytest.UsageError(
            f"{item.nodeid}: the marker `memory` takes {', '.join(LIMITS)} and backend, "
            f"not {', '.join([*map(repr, marker.args), *unknown])}"
        )
    limits: dict[str, Any] = {name: marker.kwargs[name] for name in LIMITS if marker.kwargs.get(name) is not None}
    try:
        return given | {name: parse_size(written) for name, written in limits.items()}
    except ValueError as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from None


def exceeded(measured: MemoryUse, max_peak: int | None = None, max_growth_per_step: int | None = None) -> str | None:
    """What a test did beyond its limits (bytes), as a message; None where it stayed within them."""
    told: list[str] = []
    if max_peak is not None and measured.peak > max_peak:
        told.append(f"its peak was {format_size(measured.peak)}, more than {format_size(max_peak)}; then lived")
        told += [_line(use.nbytes, use.site) for use in measured.by_line()[:_LINES]]
    if max_growth_per_step is not None:
        grown = measured.growth
        if not grown.enough:
            told.append(f"only {measured.steps} steps ended: too few to tell growth (call `memory.step()` after each)")
        elif grown.certain and grown.bytes_per_step > max_growth_per_step:
            told.append(
                f"it grew by {format_size(grown.bytes_per_step)} per step over {grown.steps} steps, "
                f"more than {format_size(max_growth_per_step)}; per step grew"
            )
            lines = itertools.islice(measured.growth_by_line().items(), _LINES)
            told += [_line(growth.bytes_per_step, site) for site, growth in lines]
    if not told:
        return None
    return "\n".join([f"memory on {measured.device}, measured by {measured.backend.describe()}:", *told])


def _line(nbytes: float, site: Site) -> str:
    return f"  {format_size(nbytes):>10}  {site} in {site.function}"

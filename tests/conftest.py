"""What holds for all tests.

None uses results of earlier runs, or leaves any in the user's cache directory, but for those about that. In several
processes, one that has nothing left to do takes tests over: some take minutes, and others wait for processes. What
checks files is imported once in each, and not anew in each worker process of each run. Python keeps what it compiles,
also where it is told not to: hundreds of tests start the linter. Modules live to the end: the collector looks at what
came since, as many tests collect.
"""

import contextlib
import gc
import os
import sys
from typing import Any

import pytest

from torchmemlint.engine import garbage, pool
from torchmemlint.engine.pool import warm_up
from torchmemlint.rules.registry import all_rules
from torchmemlint.syntax import cst

os.environ["TORCHMEMLINT_NO_CACHE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of torch: the processes share the processors
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
garbage.set_aside = pool.set_aside = contextlib.nullcontext  # what is frozen for all tests stays so


def pytest_sessionstart(session: pytest.Session) -> None:
    if not session.config.getoption("numprocesses", None):  # the one that only hands out tests checks no files
        warm_up(frozenset(rule.code for rule in all_rules()))
        cst.load()


@pytest.fixture(scope="module", autouse=True)
def _little_to_look_through() -> None:
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`pytest -n auto` as with `--dist worksteal`, unless another way is asked for."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)

"""What holds for all tests.

None uses results of earlier runs, or leaves any in the user's cache directory, but for those about that. In several
processes, one that has nothing left to do takes tests over: some take minutes, and others wait for processes. What
checks files is imported once, and not anew in each worker process of each run.
"""

import os
from typing import Any

import pytest

from torchmemlint.engine.pool import warm_up
from torchmemlint.rules.registry import all_rules

os.environ["TORCHMEMLINT_NO_CACHE"] = "1"
warm_up(frozenset(rule.code for rule in all_rules()))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`pytest -n auto` as with `--dist worksteal`, unless another way is asked for."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)

"""What holds for all tests.

None uses results of earlier runs, or leaves any in the user's cache directory, but for those about that. In several
processes, one that has nothing left to do takes tests over: some take minutes, and others wait for processes.
"""

import os
from typing import Any

import pytest

os.environ["TORCHMEMLINT_NO_CACHE"] = "1"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`pytest -n auto` as with `--dist worksteal`, unless another way is asked for."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)

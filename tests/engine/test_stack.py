"""Deep recursion: that it may go deep, and does not have the system give and take memory on the way."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from torchmemlint.engine.stack import deep


def _at(depth: int, work: Callable[[], int]) -> int:
    return _at(depth - 1, work) if depth else work()


def _nothing() -> int:
    return 0


def _most_faults() -> int:
    """Page faults of 200 calls that do nothing, at the depth where they are most."""
    import resource

    def faults_of_calls() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(200):
            _nothing()
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    return max(_at(depth, faults_of_calls) for depth in range(300))


def test_goes_deeper_than_python_lets_it() -> None:
    limit = sys.getrecursionlimit()
    with pytest.raises(RecursionError):
        _at(3_000, _nothing)
    assert deep(lambda: _at(3_000, _nothing)) == 0
    assert sys.getrecursionlimit() == limit


def test_too_deep_is_an_error() -> None:
    limit = sys.getrecursionlimit()
    with pytest.raises(RecursionError):
        deep(lambda: _at(1_000_000, _nothing))
    assert sys.getrecursionlimit() == limit


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted otherwise elsewhere")
def test_calls_need_no_memory_of_the_system() -> None:
    assert deep(_most_faults) < 50


@pytest.mark.skipif(sys.platform != "linux" or sys.version_info < (3, 11), reason="frames lie elsewhere")
def test_calls_need_memory_of_the_system_without_it() -> None:
    """What it is for: should Python mend this, it may go."""
    assert _most_faults() >= 200

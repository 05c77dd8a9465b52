"""Which files are those of a test suite, by what they are called, where they lie and what they define."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_TESTS = frozenset({"tests", "test_utils"})
_TESTS_DEPTH = 6  # how far above a file such a folder still says what it is for
_DEFINES_TESTS = re.compile(rb"^(?:\s*(?:async\s+)?def test_|class Test)", re.MULTILINE)


def is_test(name: str, text: str | bytes) -> bool:
    """Is a file of this name, and with this text, one of tests? A script `test_net.py` runs a model on a test set."""
    if name == "conftest.py":
        return True
    if not (name.startswith("test_") or name.endswith("_test.py")):  # as pytest finds them
        return False
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return _DEFINES_TESTS.search(data) is not None


def within(path: Path, root: Path | None) -> Path:
    """Where a file lies in its project: what the folders above are called says nothing of it."""
    return path.relative_to(root) if root is not None and path.is_relative_to(root) else path


def is_of_tests(path: Path, text: str, imported: Iterable[str]) -> bool:
    """Is a file with this text, and these imports, one of tests, or does it lie among them?"""
    if is_test(path.name, text) or not _TESTS.isdisjoint(path.parts[-_TESTS_DEPTH:-1]):
        return True
    return any(name.split(".")[0] in ("pytest", "unittest") for name in imported)


def tests_live_here(path: Path) -> bool:
    """Is it a file of a test suite, by its name or by the folder it lies in?"""
    folders = {parent.name for parent in list(path.parents)[:2]}
    return path.stem == "conftest" or bool(folders & {"tests", "test", "testing", "test_utils"})

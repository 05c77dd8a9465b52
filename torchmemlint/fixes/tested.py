"""What a project's tests take the gradient of: they are not run, and yet say what callers may do with a result."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from torchmemlint.config.settings import DEFAULT_EXCLUDED_NAMES
from torchmemlint.flow.names.suites import is_test
from torchmemlint.source.decoding import UnreadableFile, decode, read
from torchmemlint.syntax import standard

_TAKING = frozenset({"backward", "grad", "gradcheck", "gradgradcheck"})
_LONGEST = 1_000_000  # bytes of a file
_MOST = 2_000  # files


def gradient_tests(root: Path) -> dict[str, str]:
    """Return the names in tests that take gradients, each with one of these tests, by its own name and its file's."""
    found: dict[str, str] = {}
    for path in islice(_files(root), _MOST):
        try:
            data = read(path, _LONGEST)
            tree = standard.parse(decode(data).text) if is_test(path.name, data) else ast.Module([], [])
        except (UnreadableFile, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
                names |= {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
                if not names.isdisjoint(_TAKING):
                    found.update(dict.fromkeys(names - found.keys(), f"{node.name} of {path.name}"))
    return found


def _files(root: Path) -> Iterator[Path]:
    """The files of a project that are named as tests are, in order."""
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(n for n in inner if not n.startswith(".") and n not in DEFAULT_EXCLUDED_NAMES)
        for name in sorted(names):
            if name.endswith("_test.py") or (name.startswith("test_") and name.endswith(".py")):
                yield Path(folder, name)

"""Runs a script in this process and says what grows: the scripts of `leaks/` are traced by it."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch

from torchmemlint.runtime import track_memory
from torchmemlint.runtime.leaks import Leak

_EXPECTED = re.compile(r"# leak: ([\d_]+) bytes per step")


class _Ticks(ast.NodeTransformer):
    """Marks a turn at the head of each loop."""

    def visit_For(self, node: ast.For) -> ast.For:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.While:
        return self._loop(node)

    def _loop(self, node):  # type: ignore[no-untyped-def]
        self.generic_visit(node)
        call = ast.Expr(ast.Call(ast.Name("__tick__", ast.Load()), [ast.Constant(node.lineno)], []))
        node.body.insert(0, ast.fix_missing_locations(ast.copy_location(call, node.body[0])))
        return node


@dataclass(frozen=True)
class Expected:
    """What a script's comment says: the line that leaks, and by how much."""

    line: int
    nbytes: int


def expected(path: Path) -> Expected | None:
    """The expectation of a script, None for one that leaks nothing."""
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = _EXPECTED.search(text)
        if found:
            return Expected(number, int(found[1].replace("_", "")))
    return None


def trace(path: Path) -> list[Leak]:
    """Run a script as a program, and give what grows."""
    code = compile(_Ticks().visit(ast.parse(path.read_text(encoding="utf-8"))), str(path), "exec")
    module = ModuleType("__main__")
    module.__file__ = str(path)
    before = sys.modules["__main__"]
    torch.manual_seed(0)
    try:
        sys.modules["__main__"] = module
        with track_memory("cpu", holders=True) as memory:
            module.__dict__["__tick__"] = lambda line: memory.ledger.mark(f"loop {path}:{line}")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, module.__dict__)
        return memory.leaks
    finally:
        sys.modules["__main__"] = before
        module.__dict__.clear()

"""Puts ticks into the project's own files as they are imported; the files on the disk stay as they are.

Each loop of the project becomes

    entry = enter(path, line)
    try:
        for … :
            if turn(entry): break
            …
    finally:
        leave(entry)

with every line number kept, so that tracebacks and allocations name the lines of the file. A file may be *overlaid*:
another text stands in for its own, under its own name. Knows nothing of torch.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import linecache
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

from torchmemlint.runtime.loops import LoopWatch
from torchmemlint.runtime.order import ProjectFiles

_ENTER, _TURN, _LEAVE, _REACHED = (f"__torchmemlint_{name}__" for name in ("enter", "turn", "leave", "reached"))
_BLOCKS = ("body", "orelse", "finalbody")


class Instrumented:
    """The project's files with ticks in them: a context in which imports and `code` give these."""

    def __init__(
        self,
        files: ProjectFiles,
        loops: LoopWatch,
        overlay: Mapping[str, str] | None = None,
        probes: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.files = files
        self.loops = loops
        self.reached: Counter[tuple[str, int]] = Counter()
        self.loop_ends: dict[tuple[str, int], int] = {}  # (path, line) -> its last line
        self.read: dict[str, str] = {}  # path -> text, of the project files that were run
        self._overlay = {str(Path(path).resolve()): text for path, text in (overlay or {}).items()}
        self._probes = {str(Path(path).resolve()): tuple(rows) for path, rows in (probes or {}).items()}
        self._finder = _Finder(self)

    def __enter__(self) -> Instrumented:
        """Make the ticks known to all modules, and watch imports."""
        names: dict[str, Callable[..., Any]] = {
            _ENTER: self.loops.enter,
            _TURN: self.loops.turn,
            _LEAVE: self.loops.leave,
            _REACHED: self._reach,
        }
        for name, function in names.items():
            setattr(builtins, name, function)
        sys.meta_path.insert(0, cast(Any, self._finder))
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop watching imports. The ticks stay: functions of the program may still be called."""
        sys.meta_path.remove(cast(Any, self._finder))

    def _reach(self, path: str, row: int) -> None:
        self.reached[path, row] += 1

    def text(self, path: str, data: bytes) -> str:
        """What a file of the project says in this run."""
        real = str(Path(path).resolve())
        overlaid = self._overlay.get(real)
        text = importlib.util.decode_source(data) if overlaid is None else overlaid
        if overlaid is not None:  # for tracebacks, `inspect` and what reads source with it
            linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        self.read[path] = text
        return text

    def code(self, path: str, data: bytes) -> CodeType:
        """A file of the project, compiled with ticks."""
        tree = ast.parse(self.text(path, data), path)
        probes = self._probes.get(str(Path(path).resolve()), ())
        ticks = _Ticks(path)
        tree = ticks.visit(tree)
        self.loop_ends |= ticks.ends
        for row in probes:
            _probe(tree, path, row)
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Ticks(ast.NodeTransformer):
    """Puts the calls around and into each loop."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._count = 0
        self.ends: dict[tuple[str, int], int] = {}

    def _loop(self, node: Any) -> Any:
        self.generic_visit(node)
        self._count += 1
        name = f"__torchmemlint_loop_{self._count}__"
        line = node.lineno
        self.ends[self._path, line] = node.end_lineno
        turn = ast.If(_call(_TURN, ast.Name(name, ast.Load())), [ast.Break()], [])
        node.body.insert(0, turn)
        enter = ast.Assign([ast.Name(name, ast.Store())], _call(_ENTER, ast.Constant(self._path), ast.Constant(line)))
        leave = ast.Expr(_call(_LEAVE, ast.Name(name, ast.Load())))
        for new in (enter, turn, leave):
            _place(new, line)
        whole = ast.Try([node], [], [], [leave])
        whole.lineno, whole.col_offset = line, node.col_offset
        whole.end_lineno, whole.end_col_offset = node.end_lineno, node.end_col_offset
        return [enter, whole]

    visit_For = _loop  # noqa: N815
    visit_AsyncFor = _loop  # noqa: N815
    visit_While = _loop  # noqa: N815


def _probe(tree: ast.Module, path: str, row: int) -> None:
    """Count how often the innermost statement that covers a row is reached; for a `def`, how often it is called."""
    block, place = _statement(tree.body, row)
    if block is None:
        return
    statement = block[place]
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        block = statement.body
        place = 1 if len(block) > 1 and ast.get_docstring(statement, clean=False) is not None else 0
    call = ast.Expr(_call(_REACHED, ast.Constant(path), ast.Constant(row)))
    _place(call, row)
    block.insert(place, call)


def _statement(block: list[ast.stmt], row: int) -> tuple[list[ast.stmt] | None, int]:
    """The list and the place in it of the innermost statement that covers a row."""
    for place, statement in enumerate(block):
        first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))])
        if not first <= row <= (statement.end_lineno or statement.lineno):
            continue
        inner = [getattr(statement, name, []) for name in _BLOCKS]
        inner += [one.body for one in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))]
        for one in inner:
            found = _statement(one, row)
            if found[0] is not None:
                return found
        return block, place
    return None, 0


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _place(node: ast.AST, line: int) -> None:
    for one in ast.walk(node):
        if isinstance(one, ast.expr | ast.stmt):
            one.lineno = one.end_lineno = line
            one.col_offset = one.end_col_offset = 0


class _Finder:
    """Finds the project's modules as the ordinary finder does, and gives them a loader of ours."""

    def __init__(self, instrumented: Instrumented) -> None:
        self._instrumented = instrumented

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a module of the project, None for all others."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin not in self._instrumented.files:
            return None
        spec.loader = _Loader(name, spec.loader.path, self._instrumented)
        return spec


class _Loader(SourceFileLoader):
    """Loads a module with ticks; neither reads nor writes compiled files."""

    def __init__(self, name: str, path: str, instrumented: Instrumented) -> None:
        super().__init__(name, path)
        self._instrumented = instrumented

    def get_code(self, fullname: str) -> CodeType:
        """The instrumented code."""
        return self._instrumented.code(self.path, self.get_data(self.path))

"""The rooms of the analysis core import only what stands below them, and without circles."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

import pytest

import torchmemlint.flow

FLOW = Path(torchmemlint.flow.__file__).parent
BELOW = {
    "ir": set(),
    "domain": {"ir", "names"},  # names only for what a run knows of its project
    "names": {"ir", "domain"},
    "models": {"ir", "domain"},
    "engine": {"ir", "domain", "names", "models"},
    "fact": {"ir", "domain", "names", "models", "engine"},
}
LONGEST = 400


def module(path: Path) -> str:
    """The name of a file's module."""
    return ".".join(("torchmemlint", "flow", *path.relative_to(FLOW).with_suffix("").parts)).removesuffix(".__init__")


FILES = {module(path): path for room in BELOW for path in sorted((FLOW / room).glob("*.py"))}
ROOMS = {name: path.parent.name for name, path in FILES.items()}


def imported(tree: ast.AST, package: str) -> Iterator[str]:
    """What a file imports when it runs: modules, or names that stand in them."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=base, names=names, level=level):
                above = package.split(".")[: package.count(".") + 2 - level] if level else []
                whole = ".".join([*above, *([base] if base else [])])
                yield from (f"{whole}.{alias.name}" for alias in names)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                pass
            case _:
                yield from imported(node, package)


@cache
def imports_of(name: str) -> frozenset[str]:
    """What a module of the core imports."""
    path = FILES[name]
    return frozenset(imported(ast.parse(path.read_text(encoding="utf-8")), f"torchmemlint.flow.{path.parent.name}"))


def imports_of_core(name: str) -> set[str]:
    """The modules of the core that one imports."""
    return {i if i in FILES else i.rpartition(".")[0] for i in imports_of(name)} & FILES.keys()


@pytest.mark.parametrize("room", BELOW)
def test_a_room_imports_only_what_stands_below(room: str) -> None:
    for name in (name for name in FILES if ROOMS[name] == room):
        for other in imports_of(name):
            parts = other.split(".")
            if parts[:2] == ["torchmemlint", "flow"]:
                assert parts[2] in BELOW[room] | {room}, f"{name} imports {other}"
            elif parts[0] == "torchmemlint":
                assert parts[1] in ("amounts", "closure", "doubts", "immutable", "knowledge"), f"{name} imports {other}"


def test_names_need_only_references_and_values() -> None:
    of_names = {other for name in FILES if ROOMS[name] == "names" for other in imports_of_core(name)}
    assert {other for other in of_names if ROOMS[other] == "domain"} <= {
        "torchmemlint.flow.domain.refs",
        "torchmemlint.flow.domain.values",
    }


def test_nothing_but_lowering_knows_syntax_trees() -> None:
    for name in FILES:
        if ROOMS[name] != "ir":
            assert not {other.partition(".")[0] for other in imports_of(name)} & {"ast", "libcst"}, name


def test_no_module_imports_itself_through_others() -> None:
    left = {name: imports_of_core(name) for name in FILES}
    while left:
        done = {name for name, others in left.items() if not others & left.keys()}
        assert done, f"these modules are in circles, or import some that are: {sorted(left)}"
        left = {name: others for name, others in left.items() if name not in done}


def test_each_module_can_be_imported_alone() -> None:
    program = """
import importlib, sys
kept = sys.argv[1].split(",")
for name in sys.argv[2:]:
    importlib.import_module(name)
    for other in list(sys.modules):
        if other.startswith("torchmemlint.flow") and other not in kept:
            del sys.modules[other]
"""
    leaves = ",".join(name for name in FILES if not imports_of_core(name))  # others cannot matter to them
    done = subprocess.run([sys.executable, "-c", program, leaves, *FILES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("folder", ["flow", "rules"])
def test_no_module_is_long(folder: str) -> None:
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in (FLOW.parent / folder).rglob("*.py")}
    assert not {path.name: count for path, count in lines.items() if count > LONGEST}


def lines_of_code(path: Path) -> int:
    """Rows with code, those of docstrings and comments aside."""
    text = path.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(iter(text.splitlines(keepends=True)).__next__)
    blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    rows = {row for one in tokens if one.type not in blank for row in range(one.start[0], one.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                rows -= {*range(node.lineno, (node.end_lineno or 0) + 1)}
    return len(rows)


def test_modules_of_rules_are_short() -> None:
    lines = {path.name: lines_of_code(path) for path in (FLOW.parent / "rules").rglob("tml*.py")}
    assert not {name: count for name, count in lines.items() if count > 80}
    assert median(lines.values()) <= 45


@pytest.mark.parametrize("family", ["graphs", "gradient_mode"])
def test_rules_about_graphs_know_no_syntax_trees(family: str) -> None:
    for path in sorted((FLOW.parent / "rules" / family).glob("*.py")):
        assert not re.search(r"\b(cst|ast)\.", path.read_text(encoding="utf-8")), path.name

"""Who binds which name, by the word of Python's own symbol tables."""

from __future__ import annotations

import ast
import symtable
import sys
import sysconfig
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.lower import lower
from torchmemlint.flow.ir.places import Scope

from .printing import names_of, walk

STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])
LEFT_OUT = {"site-packages", "lib2to3", "test_type_params.py", "test_type_aliases.py"}  # type parameters are ignored
FILES = [p for p in sorted(STANDARD_LIBRARY.rglob("*.py")) if not LEFT_OUT & {*p.parts}]


def tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """The functions of a file, lambdas too, as Python sees them."""
    for child in table.get_children():
        if child.get_type() == "function" and not comprehension(child):
            yield child
        yield from tables(child)


def comprehension(table: symtable.SymbolTable) -> bool:
    """Is it what Python up to 3.11 makes a function of its own of, other than generator expressions?"""
    return ".0" in table.get_identifiers() and table.get_name() != "genexpr"


def inlined(function: ops.Function) -> set[str]:
    """From Python 3.12 on, the names of most comprehensions are the function's, too."""
    if sys.version_info < (3, 12):
        return set()
    return {text.partition("@")[0] for text in function.bound if "@" in text}


def key_of(function: ops.Function) -> tuple[str, int]:
    return (function.name.strip("<>"), function.span[0])


def ours(function: ops.Function) -> frozenset[str]:
    """What the function binds; the names of comprehensions and class bodies are no names of Python's."""
    return frozenset(text for text in function.bound if "@" not in text)


def theirs(table: symtable.SymbolTable) -> frozenset[str]:
    return frozenset(s.get_name() for s in table.get_symbols() if s.is_local())


def plain(text: str) -> bool:
    """Not what Python itself puts in, or may write otherwise, as it does private names in classes."""
    return not text.startswith(("__", ".")) and not (text.startswith("_") and "__" in text)


def differences(text: str) -> list[str]:
    found: list[str] = []
    unit = lower(text, "example")
    top = symtable.symtable(text, "example.py", "exec")
    mine: dict[tuple[str, int], list[ops.Function]] = defaultdict(list)
    its: dict[tuple[str, int], list[symtable.SymbolTable]] = defaultdict(list)
    for function in unit.functions[1:]:
        mine[key_of(function)].append(function)
    for table in tables(top):
        its[(table.get_name(), table.get_lineno())].append(table)
    for key, functions in mine.items():
        besides = {text for function in functions for text in inlined(function)}
        bound = sorted(sorted(filter(plain, ours(f) - besides)) for f in functions)
        expected = sorted(sorted(filter(plain, theirs(t) - besides)) for t in its[key])
        if bound != expected:
            found.append(f"{key} binds {bound}, not {expected}")
        if len(functions) == len(its[key]) == 1:
            found += list(_scopes(functions[0], its[key][0]))
    return found


def _scopes(function: ops.Function, table: symtable.SymbolTable) -> Iterator[str]:
    inner = [child for child in table.get_children() if comprehension(child)]
    for op in walk(function.body):
        for name in names_of(op):
            if "@" in name.text or not plain(name.text):
                continue
            if name.text not in table.get_identifiers():  # only used in a comprehension, which knows it is global
                known = not inner or name.scope in (Scope.GLOBAL, Scope.BUILTIN)
            else:
                symbol = table.lookup(name.text)
                known = {
                    Scope.LOCAL: symbol.is_local(),
                    Scope.CELL: symbol.is_free() if name.hops else symbol.is_local(),
                    Scope.GLOBAL: symbol.is_global(),
                    Scope.BUILTIN: symbol.is_global(),
                }[name.scope]
            if not known:
                yield f"{function} {name.text} {name.scope} {name.hops}"


@pytest.mark.parametrize("part", [0, 1, *(pytest.param(part, marks=pytest.mark.slow) for part in range(2, 8))])
def test_scopes_are_pythons(part: int) -> None:
    checked = 0
    for path in FILES[part * 4 :: 32]:
        try:
            text = path.read_text(encoding="utf-8")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(text)
                found = differences(text)
        except (SyntaxError, UnicodeDecodeError, ValueError):  # files that tests of Python want broken
            continue
        assert not found, (path, found[:5])
        checked += 1
    assert checked > 20

"""What callers, in the whole project, keep of what a function returns.

Works on the standard parser's trees, as `flow.callers` does, and is asked only about what would be reported. A result
is followed through the names that it is bound to, through `return` and into methods of the caller's own object;
whatever else is done with it tells nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from torchmemlint.flow.call_sites import CallSite
from torchmemlint.flow.callers import Callers
from torchmemlint.flow.program import Function
from torchmemlint.immutable import immutable
from torchmemlint.syntax.outline import dotted

MAX_RETURNS = 4  # functions that hand the result on to their own callers
_CUTTING = frozenset({"detach", "detach_", "item", "data", "tolist", "numpy", "cpu", "float"})


@immutable()
class Kept:
    """An attribute of a caller's object that holds the result until the next one comes."""

    attribute: str  # "self.last_loss"
    function: Function  # whose statement it is


def on_object(callers: Callers, function: Function, index: int) -> Kept | None:
    """The attribute that a caller keeps a result in; `index`: which element of the returned tuple, -1 for the whole."""
    return _kept(callers, function, index, 0, set())


def _kept(
    callers: Callers, function: Function, index: int, depth: int, seen: set[tuple[Path, str, int]]
) -> Kept | None:
    key = (function.program.source.path, function.qualname, index)
    if depth > MAX_RETURNS or key in seen:
        return None
    seen.add(key)
    for site in callers.calls(function):
        if site.syntax is None or site.function is None:
            continue
        for name in bound_names(site, site.syntax, index):
            found = _attribute(site.syntax, site.function, name) or _handed(site.syntax, site.function, name)
            if found is not None:
                return found
            for place in places_returned(site.syntax, name):
                found = _kept(callers, site.function, place, depth + 1, seen)
                if found is not None:
                    return found
        if any(_is_call(node.value, site) for node in ast.walk(site.syntax) if isinstance(node, ast.Return)):
            found = _kept(callers, site.function, index, depth + 1, seen)
            if found is not None:
                return found
    return None


def _is_call(node: ast.AST | None, site: CallSite) -> bool:
    return isinstance(node, ast.Call) and node.func is site.node


def bound_names(site: CallSite, syntax: ast.AST, index: int) -> Iterator[str]:
    """The local names that the result of a call is bound to."""
    for node in ast.walk(syntax):
        if not isinstance(node, ast.Assign) or not _is_call(node.value, site):
            continue
        for target in node.targets:
            match target:
                case ast.Name(id=name) if index < 0 and not _is_cut(syntax, name):
                    yield name
                case ast.Tuple(elts=elements) if 0 <= index < len(elements):
                    element = elements[index]
                    plain = not any(isinstance(one, ast.Starred) for one in elements)
                    if plain and isinstance(element, ast.Name) and not _is_cut(syntax, element.id):
                        yield element.id


def _is_cut(syntax: ast.AST, name: str) -> bool:
    """Is the name bound to something without a graph as well?"""
    return any(
        isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        and any(isinstance(below, ast.Attribute) and below.attr in _CUTTING for below in ast.walk(node.value))
        for node in ast.walk(syntax)
    )


def _attribute(syntax: ast.AST, function: Function, name: str) -> Kept | None:
    """`self.last = name`."""
    for node in ast.walk(syntax):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == name:
            for target in node.targets:
                path = dotted(target) if isinstance(target, ast.Attribute) else ""
                if path.startswith("self."):
                    return Kept(path, function)
    return None


def _handed(syntax: ast.AST, function: Function, name: str) -> Kept | None:
    """`self.remember(name)`, where that method keeps it."""
    if function.cls is None:
        return None
    for node in ast.walk(syntax):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=method), args=arguments):
                callee = function.cls.method(method)
                if callee is None or callee.syntax is None or callee.syntax.args.posonlyargs:
                    continue
                parameters = [parameter.arg for parameter in callee.syntax.args.args[1:]]
                for parameter, argument in zip(parameters, arguments, strict=False):
                    if isinstance(argument, ast.Starred):
                        break
                    given = isinstance(argument, ast.Name) and argument.id == name
                    if given and not _is_cut(callee.syntax, parameter):
                        found = _attribute(callee.syntax, callee, parameter)
                        if found is not None:
                            return found
    return None


def places_returned(syntax: ast.AST, name: str) -> Iterator[int]:
    """Where a name stands in what a function returns: -1 for the whole."""
    for node in ast.walk(syntax):
        match node:
            case ast.Return(value=ast.Name(id=returned)) if returned == name:
                yield -1
            case ast.Return(value=ast.Tuple(elts=elements)):
                yield from (i for i, e in enumerate(elements) if isinstance(e, ast.Name) and e.id == name)

"""Loaders of which the project takes nothing but single batches: `next(iter(loader))`.

Workers that are started for one batch cost more than they prepare. Told from the standard parser's trees; a loader that
is returned is looked for where callers, in the whole project, get it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from torchmemlint.flow import bindings
from torchmemlint.flow.call_sites import CallSite
from torchmemlint.flow.callers import Callers
from torchmemlint.flow.facts import FileFacts, Loader
from torchmemlint.flow.program import Function, Program

MAX_RETURNS = 3  # functions that hand the loader on to their own callers
_ASKED = frozenset({"dataset", "batch_size", "sampler"})


def only(facts: FileFacts, loader: Loader) -> bool:
    """Is all that is done with a loader to take single batches of it, as far as the project shows?"""
    function, call = loader.scope.function, bindings.expression_of(loader.site.node)
    if facts.callers is None or call is None:
        return False
    roots = _roots(facts.program, function)
    wanted = ast.dump(call)
    names = {
        target.id
        for node in _nodes(roots)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.dump(node.value) == wanted
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return bool(_sum(_taken(facts.callers, name, roots, function, 0) for name in sorted(names)))


def _taken(callers: Callers, name: str, roots: Sequence[ast.AST], function: Function | None, depth: int) -> int | None:
    """How often a batch is taken of what a variable holds; None where more is done with it, or may be.

    `roots`: the code that sees the variable.
    """
    above = {id(child): node for node in _nodes(roots) for child in ast.iter_child_nodes(node)}
    number = 0
    for node in _nodes(roots):
        if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Load):
            continue
        if _takes_one(node, above, roots):
            number += 1
        elif not (_is_returned(node, above) or _is_asked(node, above)):
            return None
    places = sorted({place for root in roots for place in _places_returned(root, name)})
    if not places:
        return number
    if function is None or depth >= MAX_RETURNS:
        return None
    elsewhere = _sum(_by_caller(callers, site, place, depth) for site in callers.calls(function) for place in places)
    return None if elsewhere is None else number + elsewhere


def _by_caller(callers: Callers, site: CallSite, place: int, depth: int) -> int | None:
    roots = [site.syntax] if site.syntax is not None else _roots(site.program, None)
    names = {name for root in roots for name in _bound_names(site, root, place)}
    return _sum(_taken(callers, name, roots, site.function, depth + 1) for name in sorted(names)) if names else None


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total


def _roots(program: Program, function: Function | None) -> list[ast.AST]:
    """The code that sees the variables of a function, or of the module level."""
    if function is not None:
        outermost = [function, *function.parents()][-1]
        return [outermost.syntax] if outermost.syntax is not None else []
    return [piece.outline for piece in program.source.pieces if piece.outline is not None]


def _nodes(roots: Sequence[ast.AST]) -> Iterator[ast.AST]:
    return (node for root in roots for node in ast.walk(root))


def _takes_one(node: ast.AST, above: dict[int, ast.AST], roots: Sequence[ast.AST]) -> bool:
    """`next(iter(loader))`, `batches = iter(loader)` of which only `next(batches)` is seen, or a loop of one turn."""
    made = above.get(id(node))
    loop = above.get(id(made)) if _is_call_of("enumerate", made) else made
    if isinstance(loop, ast.For) and loop.iter in (node, made):
        return isinstance(loop.body[-1], ast.Break)
    if not _is_call_of("iter", made):
        return False
    user = above.get(id(made))
    if _is_call_of("next", user):
        return True
    match user:
        case ast.Assign(targets=[ast.Name(id=iterator)]):
            uses = [n for n in _nodes(roots) if isinstance(n, ast.Name) and n.id == iterator]
            read = [use for use in uses if isinstance(use.ctx, ast.Load)]
            return bool(read) and all(_is_call_of("next", above.get(id(use))) for use in read)
    return False


def _is_returned(node: ast.AST, above: dict[int, ast.AST]) -> bool:
    user = above.get(id(node))
    return isinstance(above.get(id(user)) if isinstance(user, ast.Tuple) else user, ast.Return)


def _is_asked(node: ast.AST, above: dict[int, ast.AST]) -> bool:
    """`len(loader)`, `loader.dataset`: nothing is loaded."""
    user = above.get(id(node))
    return _is_call_of("len", user) or (isinstance(user, ast.Attribute) and user.attr in _ASKED)


def _is_call_of(name: str, node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _is_call(node: ast.AST | None, site: CallSite) -> bool:
    return isinstance(node, ast.Call) and node.func is site.node


def _bound_names(site: CallSite, syntax: ast.AST, index: int) -> Iterator[str]:
    """The local names that the result of a call is bound to."""
    for node in ast.walk(syntax):
        if not isinstance(node, ast.Assign) or not _is_call(node.value, site):
            continue
        for target in node.targets:
            match target:
                case ast.Name(id=name) if index < 0:
                    yield name
                case ast.Tuple(elts=elements) if 0 <= index < len(elements):
                    element = elements[index]
                    plain = not any(isinstance(one, ast.Starred) for one in elements)
                    if plain and isinstance(element, ast.Name):
                        yield element.id


def _places_returned(syntax: ast.AST, name: str) -> Iterator[int]:
    """Where a name stands in what a function returns: -1 for the whole."""
    for node in ast.walk(syntax):
        match node:
            case ast.Return(value=ast.Name(id=returned)) if returned == name:
                yield -1
            case ast.Return(value=ast.Tuple(elts=elements)):
                yield from (i for i, e in enumerate(elements) if isinstance(e, ast.Name) and e.id == name)

"""What callers, in the whole project, give for a parameter, and whether they differentiate what they get back.

Works on the standard parser's trees, as `flow.callers` does, and is asked only where the answer decides: where a tensor
goes into a parameter that nothing in the file tells the class of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.flow import call_sites
from torchmemlint.flow.call_sites import CallSite
from torchmemlint.flow.callers import Callers
from torchmemlint.flow.keeping import bound_names
from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.flow.values import Mode
from torchmemlint.syntax.outline import defaults, dotted

MAX_DEPTH = 3  # callers that hand on what they were given themselves
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def lasting_class(callers: Callers, function: Function, parameter: str) -> ClassInfo | None:
    """The class of the object that stands for a parameter in call after call; None where callers differ or hide it."""
    given = _Given()
    if not given.ask(callers, function, parameter, 0) or len(given.classes) != 1:
        return None
    return next(iter(given.classes.values())) if given.lasts else None


class _Given:
    """What the calls of a function have for one parameter."""

    def __init__(self) -> None:
        self.classes: dict[tuple[str, str], ClassInfo] = {}
        self.lasts = False  # does one call after the other get the same object, with gradients on?

    def ask(self, callers: Callers, function: Function, parameter: str, depth: int) -> bool:
        """Look at all calls; False where one of them gives something that cannot be told."""
        return all(self._look(callers, site, function, parameter, depth) for site in callers.calls(function))

    def _look(self, callers: Callers, site: CallSite, function: Function, parameter: str, depth: int) -> bool:
        call = call_at(site)
        argument = argument_of(call, site, function, parameter) if call is not None else None
        if call is None or argument is None:
            return False
        if isinstance(argument, ast.Constant):
            return argument.value is None  # there, the function does without
        repeats = _stands_outside(argument, call, site)
        if isinstance(argument, ast.Name) and site.function is not None and _is_handed_on(argument.id, site):
            before = self.lasts
            known = depth < MAX_DEPTH and self.ask(callers, site.function, argument.id, depth + 1)
            self.lasts = before or self.lasts or (repeats and site.mode is not Mode.OFF)
            return known
        cls = call_sites.class_of(argument, site)
        if cls is None:
            return False
        self.classes[(str(cls.program.source.path), cls.name)] = cls
        self.lasts = self.lasts or (repeats and site.mode is not Mode.OFF)
        return True


def differentiating(callers: Callers, function: Function, index: int) -> CallSite | None:
    """A call of a function after which a backward runs through what it returned (`index`: -1 for the whole)."""
    for site in callers.calls(function):
        if site.syntax is None or site.mode is Mode.OFF:
            continue
        names = {name for name in bound_names(site, site.syntax, index) if not _is_something_else(name, site)}
        if names and any(_is_backward(node, names) for node in ast.walk(site.syntax)):
            return site
    return None


def _is_something_else(name: str, site: CallSite) -> bool:
    """Is the name also bound to what does not come from the call (`loss = loss / 4` does)?"""
    for node in ast.walk(site.syntax) if site.syntax is not None else ():
        if not isinstance(node, ast.Assign) or (isinstance(node.value, ast.Call) and node.value.func is site.node):
            continue
        bound = {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
        read = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
        if name in bound and name not in read:
            return True
    return False


def _is_backward(node: ast.AST, names: set[str]) -> bool:
    """`loss.backward()`, `scaler.scale(loss).backward()`, `accelerator.backward(loss)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="backward")) if name in names:
            return not _keeps_graph(node)
        case ast.Call(
            func=ast.Attribute(
                value=ast.Call(func=ast.Attribute(attr="scale"), args=[ast.Name(id=name)]), attr="backward"
            )
        ) if name in names:
            return not _keeps_graph(node)
        case ast.Call(func=ast.Attribute(attr="backward" | "manual_backward"), args=[ast.Name(id=name), *_]):
            return name in names and not _keeps_graph(node)
    return False


def _keeps_graph(call: ast.Call) -> bool:
    return any(keyword.arg in (None, "retain_graph", "create_graph") for keyword in call.keywords)


def call_at(site: CallSite) -> ast.Call | None:
    """The call whose function a mention is."""
    roots: list[ast.AST] = [site.syntax] if site.syntax is not None else []
    if site.syntax is None:
        roots = [piece.outline for piece in site.program.source.pieces if piece.outline is not None]
    calls = (node for root in roots for node in ast.walk(root) if isinstance(node, ast.Call))
    return next((call for call in calls if call.func is site.node), None)


def argument_of(
    call: ast.Call, site: CallSite, function: Function, parameter: str, *, skip_first: bool = False
) -> ast.expr | None:
    """The expression that a call has for a parameter, or the parameter's default; None where it cannot be told.

    `skip_first`: the call does not give the first parameter, as that of a class does not give its constructor `self`.
    """
    if function.syntax is None:
        return None
    given = function.syntax.args
    names = [one.arg for one in (*given.posonlyargs, *given.args)]
    is_bound = function.cls is not None and isinstance(site.node, ast.Attribute)
    if skip_first or (is_bound and "staticmethod" not in function.decorator_texts()):
        names = names[1:]
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    for name, value in zip(names, call.args, strict=False):
        if isinstance(value, ast.Starred):
            return None
        if name == parameter:
            return value
    return None if any(keyword.arg is None for keyword in call.keywords) else defaults(given).get(parameter)


def _is_handed_on(name: str, site: CallSite) -> bool:
    """Is it a parameter of the caller, neither annotated nor bound anew?"""
    syntax = site.syntax
    if syntax is None:
        return False
    given = syntax.args
    own = [one for one in (*given.posonlyargs, *given.args, *given.kwonlyargs) if one.arg == name]
    return bool(own) and own[0].annotation is None and not _assignments(name, syntax)


def _stands_outside(argument: ast.expr, call: ast.Call, site: CallSite) -> bool:
    """Is it the same object whenever this call runs again?"""
    path = dotted(argument)
    if not path:
        return False
    if site.syntax is None:
        around: ast.AST | None = next((root for root in _roots(site) if _holds(root, call)), None)
        loops = [around] if isinstance(around, _LOOPS) else []
    else:
        loops = [node for node in ast.walk(site.syntax) if isinstance(node, _LOOPS) and _holds(node, call)]
    if any(not _assignments(path, loop) for loop in loops):
        return True
    on_object = path.startswith("self.") or (isinstance(argument, ast.Name) and argument.id not in site.bound)
    return on_object and site.syntax is not None and not _assignments(path, site.syntax)


def _roots(site: CallSite) -> Iterator[ast.AST]:
    return (piece.outline for piece in site.program.source.pieces if piece.outline is not None)


def _holds(root: ast.AST, wanted: ast.AST) -> bool:
    return any(node is wanted for node in ast.walk(root))


def _assignments(path: str, root: ast.AST) -> bool:
    """Is the path, or what it begins with, given a value inside?"""
    parts = path.split(".")
    prefixes = {".".join(parts[: i + 1]) for i in range(len(parts))} - {"self"}
    return any(
        isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store) and dotted(node) in prefixes
        for node in ast.walk(root)
    )

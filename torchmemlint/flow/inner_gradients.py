"""Modules whose forward pass differentiates something itself: forces from an energy, a gradient that is matched.

Such a module needs gradients on, also where nothing is trained. Told from what functions call, by name, in this file
and in others: asked only of what would be reported.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

import libcst as cst

from torchmemlint.findings import Lead
from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.syntax.outline import Outline, dotted_text, outline
from torchmemlint.syntax.walking import inside

_GRADIENTS = frozenset({"torch.autograd.grad"})
_SPELLINGS: Collection[str] = ("autograd.grad", "autograd import grad")  # as the text of a file has it
_DEPTH = 3  # calls followed
_FUNCTIONS = 40  # looked at for one question
_FILES = 20  # parsed for one project


def in_forward(cls: ClassInfo, method: str = "forward") -> bool:
    """Does a forward pass of the class, or of a module that it builds, differentiate?"""
    forward = cls.method(method)
    if forward is not None and _differentiates(forward):
        return True
    built = (found for path in sorted(_called(cls)) if (found := _class(cls.program, path)) is not None)
    return any(
        part is not cls and part.is_module and (inner := part.method("forward")) is not None and _differentiates(inner)
        for part in built
    )


def differentiates(function: Function) -> bool:
    """Does the function differentiate, or one that it calls?"""
    return _differentiates(function)


def may_take(function: Function | None, program: Program) -> bool:
    """Does a function, or what it calls, take gradients: also in a method of an object that it makes?

    Wider than `differentiates`: asked before gradients are turned off for all that the function does. None stands for
    the statements of the file itself.
    """
    if function is not None:
        first: list[Function | ClassInfo] = [function]
    else:
        outlines = [program.outline_of(piece) for piece in program.source.pieces if piece.kind == "code"]
        paths = sorted(path for one in outlines for path in one.called)
        first = [found for path in paths if (found := _named(program, path)) is not None]
    return _reaches(first, _takes_any, _callees_and_made)


def of_some_model(program: Program) -> bool:
    """Has the file's package a module of which a forward pass differentiates? One of unknown class may be of this."""
    project = program.project
    if _of_local_model(program) or any(_is_model(cls) for cls in _modules(program)):
        return True
    if project is None:
        return False
    path = program.source.path
    package = project.package(path, path)
    if package is None:
        return False
    return package in project.once("packages with models that differentiate", path, lambda: _found_in(program))


def _of_local_model(program: Program) -> bool:
    """The same of a class within a function: its forward, or a function beside it that it calls, differentiates."""
    if "autograd" not in program.source.text:
        return False
    for piece in program.source.pieces:
        if piece.kind == "code" or not {"grad", "forward"} <= program.outline_of(piece).names:
            continue
        takes: set[str] = set()
        forwards: list[Outline] = []
        for node in program.outline_of(piece).nodes:
            if node is piece.outline:
                continue
            if isinstance(node, ast.FunctionDef) and node.name != "forward":
                called = outline(node).called
                takes |= {node.name} if any(program.qualify(path) in _GRADIENTS for path in called) else set()
            elif isinstance(node, ast.ClassDef):
                forwards += [outline(part) for part in node.body if _is_forward(part)]
        if any(not takes.isdisjoint(forward.called) for forward in forwards):
            return True
    return False


def _is_forward(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "forward"


def _found_in(program: Program) -> set[Path]:
    """The packages of the project around a file that have such a module."""
    project, by = program.project, program.source.path
    assert project is not None
    packages: set[Path] = set()
    helpers: set[str] = set()
    looked_at: set[Path] = set()
    for phrases in (_SPELLINGS, helpers):
        for phrase in sorted(phrases):
            for path in sorted(project.mentioning(phrase, by) or ()):
                if path in looked_at or len(looked_at) >= _FILES:
                    continue
                looked_at.add(path)
                found = project.program(path, Lead.CALLER, phrase, by)
                if found is None or found.is_test:
                    continue
                package = project.package(path, by)
                if package is not None and any(_is_model(cls) for cls in _modules(found)):
                    packages.add(package)
                if phrases is _SPELLINGS:
                    helpers |= {function.name for function in _functions(found) if _takes_own_gradient(function)}
    return packages


def _is_model(cls: ClassInfo) -> bool:
    forward = cls.methods.get("forward")
    return forward is not None and cls.is_module and _differentiates(forward, _takes_own_gradient)


def _modules(program: Program) -> Iterator[ClassInfo]:
    for piece in program.source.pieces:
        if piece.kind == "class" and (cls := program.find_class(piece.name)) is not None and "forward" in cls.methods:
            yield cls


def _functions(program: Program) -> Iterator[Function]:
    for piece in program.source.pieces:
        if piece.kind == "def" and (function := program.find_function(piece.name)) is not None:
            yield function


def _takes_gradient(function: Function) -> bool:
    return any(function.program.qualify(path) in _GRADIENTS for path in _called(function))


def _takes_any(function: Function) -> bool:
    called = _called(function)
    return _takes_gradient(function) or any(path.rpartition(".")[2] == "backward" for path in called)


def _takes_own_gradient(function: Function) -> bool:
    """The same, unless it is of a function that it is given, as in a penalty or a solver."""
    if not _takes_gradient(function):
        return False
    parameters = function.node.params
    given = {p.name.value for p in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)}
    return given.isdisjoint(_called(function))


def _differentiates(function: Function, takes: Callable[[Function], bool] = _takes_gradient) -> bool:
    """Does the function take a gradient, or one that it calls?"""
    return _reaches([function], takes, _callees)


def _reaches(
    first: Sequence[Function | ClassInfo],
    takes: Callable[[Function], bool],
    callees: Callable[[Function], Iterable[Function | ClassInfo]],
) -> bool:
    """Does one of these take a gradient, or what they call? A class stands for all methods of its objects."""
    seen: set[Function | ClassInfo] = set()
    level = list(first)
    for _ in range(_DEPTH):
        below: list[Function | ClassInfo] = []
        for one in level:
            if one in seen or len(seen) > _FUNCTIONS:
                continue
            seen.add(one)
            for part in [one] if isinstance(one, Function) else _methods(one):
                if takes(part):
                    return True
                below += callees(part)
        level = below
    return False


def _methods(cls: ClassInfo) -> list[Function]:
    return [method for ancestor in cls.ancestors() for method in ancestor.methods.values()]


def _callees_and_made(function: Function) -> Iterator[Function | ClassInfo]:
    """What a function calls, and the classes of the objects that it makes."""
    yield from _callees(function)
    yield from (cls for path in sorted(_called(function)) if (cls := _class(function.program, path)) is not None)


def _callees(function: Function) -> Iterator[Function]:
    for path in sorted(_called(function)):
        owner, _, name = path.rpartition(".")
        found: Function | ClassInfo | None = None
        if owner == "self" and function.cls is not None:
            found = function.cls.method(name)
        elif not owner:
            found = _beside(function, name) or function.program.find_function(name)
        if found is None and owner != "self":
            found = function.program.resolve(function.program.qualify(path))
        if isinstance(found, Function):
            yield found


def _called(owner: Function | ClassInfo) -> set[str]:
    """The dotted paths that are called; of what stands within a function only libcst has a tree."""
    if owner.outline.nodes or owner.outline.names:
        return owner.outline.called
    tree = owner.local if isinstance(owner, ClassInfo) else owner.node
    calls = inside(tree) if tree is not None else ()
    return {text for node in calls if isinstance(node, cst.Call) and (text := dotted_text(node.func))}


def _beside(function: Function, name: str) -> Function | None:
    """A function of this name within the same function or method, for what is defined there, too."""
    if function.syntax is not None:
        return None
    around = function.piece.definition()
    for node in inside(around) if around is not None else ():
        if isinstance(node, cst.FunctionDef) and node.name.value == name and node is not around:
            return Function(name, function.piece, function.program, None, function.parent, _node=node)
    return None


def _named(program: Program, path: str) -> Function | ClassInfo | None:
    return program.find_function(path) or program.find_class(path) or program.resolve(program.qualify(path))


def _class(program: Program, path: str) -> ClassInfo | None:
    return program.find_class(path) or program.resolve_class(program.qualify(path))

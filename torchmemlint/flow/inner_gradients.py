"""Modules whose forward pass differentiates something itself: forces from an energy, a gradient that is matched.

Such a module needs gradients on, also where nothing is trained. Told from what functions call, by name, in this file
and in others: asked only of what would be reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from torchmemlint.findings import Lead
from torchmemlint.flow.program import BUILTINS, ClassInfo, Function, Program
from torchmemlint.immutable import immutable
from torchmemlint.syntax.outline import Outline, dotted, dotted_text, outline
from torchmemlint.syntax.source_module import Piece
from torchmemlint.syntax.walking import inside

if TYPE_CHECKING:
    from torchmemlint.flow.project import Project

_GRADIENTS = frozenset({"torch.autograd.grad"})
_SPELLINGS: Collection[str] = ("autograd.grad", "autograd import grad")  # as the text of a file has it
_DERIVED = re.compile(r"\[[\"'](forces|stress|virial|hessian)[\"']\]")  # entries of what a model returns
_DEPTH = 3  # calls followed
_FUNCTIONS = 40  # looked at for one question
_FILES = 20  # parsed for one package
# Functions that train: they take gradients of whatever they are given, and a forward pass does not mean them.
_TRAINING = frozenset("__init__ backward fit grad main run step train training_step update".split())


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
        outlines = _of_statements(program)
        paths = sorted(path for one in outlines for path in one.called)
        first = [found for path in paths if (found := _named(program, path)) is not None]
    return _reaches(first, _takes_any, _callees_and_made)


def hands_out(function: Function | None, program: Program, model: str) -> bool:
    """Is a module, as the text names it, given to code out of view: a library's explainer, which may differentiate it?

    Asked of the function, or of its whole class, which may have done so in the constructor; of the file's statements
    where it is None. torch itself differentiates nothing that it is given in this way.
    """
    if function is None:
        outlines = _of_statements(program)
    else:
        beside = _methods(function.cls) if function.cls is not None else []
        outlines = [function.outline, *(method.outline for method in beside)]
    calls = [node for one in outlines for node in one.nodes if isinstance(node, ast.Call)]
    return any(
        any(dotted(given) == model for given in (*call.args, *(keyword.value for keyword in call.keywords)))
        and _is_out_of_view(dotted(call.func), program)
        for call in calls
    )


def _of_statements(program: Program) -> list[Outline]:
    """The statements of the file itself."""
    return [program.outline_of(piece) for piece in program.source.pieces if piece.kind == "code"]


def _is_out_of_view(path: str, program: Program) -> bool:
    """Is it another package's function or class, of which nothing is known, or a function that was handed in?"""
    first = path.partition(".")[0]
    if first in program.imported:
        root = program.imported[first].split(".")[0]
        return root not in ("torch", *program.contracts.packages) and _named(program, path) is None
    return path.isidentifier() and path not in BUILTINS and _named(program, path) is None


def of_some_model(program: Program, model: str = "") -> bool:
    """Has the file's package a module of which a forward pass differentiates? One of unknown class may be of this.

    A file of no package has for one the folder above its own, which scripts put on the path, where the class of the
    model (as the text names it) is looked up by a name that stands elsewhere: `class_of(options["model"])(...)`.
    Told by names alone, through any number of functions and classes, also those within functions; and where results
    are read that physicists take from an energy by differentiating it.
    """
    if _DERIVED.search(program.source.text) is not None:
        return True
    if "autograd" in program.source.text and _reaches_forward([*_definitions(program)]):
        return True
    project, path = program.project, program.source.path
    if project is None:
        return False
    package = project.package(path, path)
    if package is None and _is_looked_up(program, model):
        package = path.parent if path.parent == project.root else path.parent.parent
    if package is None:
        return False
    return project.once(f"a model that differentiates in {package}", path, lambda: _is_found_in(package, project, path))


def _is_looked_up(program: Program, model: str) -> bool:
    """Is what a call returned called once more to make the model?"""
    outlines = [program.outline_of(piece) for piece in program.source.pieces]
    return any(
        any(dotted(target) == model for target in node.targets) and isinstance(node.value.func, ast.Call)
        for one in outlines
        for node in one.nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    )


def holds_given(cls: ClassInfo) -> bool:
    """Does its forward pass call what its constructor was given: a model of whatever class?"""
    held: set[str] = set()
    for ancestor in cls.ancestors():
        constructor = ancestor.methods.get("__init__")
        if constructor is None or constructor.syntax is None:
            continue
        arguments = constructor.syntax.args
        given = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        for node in constructor.outline.nodes:
            if isinstance(node, ast.Assign) and isinstance(value := _owner(node.value), ast.Name) and value.id in given:
                held.update(dotted(_owner(target)) for target in node.targets)
    forward = cls.method("forward")
    if forward is None or not held:
        return False
    return any(isinstance(node, ast.Call) and dotted(_owner(node.func)) in held for node in forward.outline.nodes)


def _owner(node: ast.expr) -> ast.expr:
    """`self.models` of `self.models[key]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


@immutable()
class _Definition:
    """A function or method at any depth."""

    name: str
    is_forward: bool  # of a module
    takes: bool  # a gradient, itself
    calls: Set[str]  # last names


def _definitions(program: Program) -> Iterator[_Definition]:
    for piece in program.source.pieces:
        nodes = program.outline_of(piece).nodes
        classes = [node for node in nodes if isinstance(node, ast.ClassDef) and _may_be_module(program, piece, node)]
        methods = {id(one) for cls in classes for one in cls.body}
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                one = outline(node)
                arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                # Of a function that it is given, as in a penalty or a solver, the gradient is not the module's own.
                takes = one.called.isdisjoint(argument.arg for argument in arguments) and any(
                    program.qualify(path) in _GRADIENTS for path in one.called
                )
                yield _Definition(node.name, node.name == "forward" and id(node) in methods, takes, one.calls)


def _may_be_module(program: Program, piece: Piece, node: ast.ClassDef) -> bool:
    """Is a class a module? One within a function may be, or one whose base a function made, if it has any base."""
    if piece.outline is not node:
        return bool(node.bases)
    cls = program.find_class(node.name)
    if cls is None or cls.is_module:
        return cls is not None
    return any(_is_variable(program, base.id) for base in node.bases if isinstance(base, ast.Name))


def _is_variable(program: Program, name: str) -> bool:
    return not (program.defines(name) or name in program.imported or name in BUILTINS)


def _takers(definitions: Sequence[_Definition]) -> set[str]:
    """The names of those that take a gradient, or call one that does, but for those that train."""
    names: set[str] = set()
    pending = [one for one in definitions if one.name not in _TRAINING]
    while True:
        found = [one for one in pending if one.takes or not names.isdisjoint(one.calls)]
        if not found:
            return names
        names.update(one.name for one in found)
        pending = [one for one in pending if one.name not in names]


def _reaches_forward(definitions: Sequence[_Definition]) -> bool:
    names = _takers(definitions) - {"forward"}
    return any(one.is_forward and (one.takes or not names.isdisjoint(one.calls)) for one in definitions)


def _is_found_in(package: Path, project: Project, by: Path) -> bool:
    """Has a package such a module? The files that speak of gradients are read, then those that name what takes them."""
    definitions: list[_Definition] = []
    looked_at: set[Path] = set()
    asked: set[str] = set()
    phrases: Collection[str] = _SPELLINGS
    while phrases:
        asked.update(phrases)
        for phrase in sorted(phrases):
            for path in sorted(project.mentioning(phrase, by) or ()):
                if path in looked_at or len(looked_at) >= _FILES or not path.is_relative_to(package):
                    continue
                looked_at.add(path)
                found = project.program(path, Lead.CALLER, phrase, by)
                if found is not None and not found.is_test:
                    definitions += _definitions(found)
        if _reaches_forward(definitions):
            return True
        phrases = _takers(definitions) - asked
    return False


def _takes_gradient(function: Function) -> bool:
    return any(function.program.qualify(path) in _GRADIENTS for path in _called(function))


def _takes_any(function: Function) -> bool:
    called = _called(function)
    return _takes_gradient(function) or any(path.rpartition(".")[2] == "backward" for path in called)


def _differentiates(function: Function) -> bool:
    """Does the function take a gradient, or one that it calls?"""
    return _reaches([function], _takes_gradient, _callees)


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

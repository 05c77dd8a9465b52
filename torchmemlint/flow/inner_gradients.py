"""Code that differentiates something itself: forces from an energy, a gradient that is matched.

It needs gradients on, also where nothing is trained. Told from what functions call, by name, in this file and in
others: asked only of what would be reported.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchmemlint.flow.program import BUILTINS, ClassInfo, Function, Program
from torchmemlint.syntax.outline import Outline, dotted, dotted_text
from torchmemlint.syntax.walking import inside

if TYPE_CHECKING:
    pass

_GRADIENTS = frozenset({"torch.autograd.grad"})
_DEPTH = 3  # calls followed
_FUNCTIONS = 40  # looked at for one question


def may_take(function: Function | None, program: Program) -> bool:
    """Does a function, or what it calls, take gradients: also in a method of an object that it makes?

    Asked before gradients are turned off for all that the function does. None stands for the statements of the file
    itself.
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


def _takes_gradient(function: Function) -> bool:
    return any(function.program.qualify(path) in _GRADIENTS for path in _called(function))


def _takes_any(function: Function) -> bool:
    called = _called(function)
    return _takes_gradient(function) or any(path.rpartition(".")[2] == "backward" for path in called)


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

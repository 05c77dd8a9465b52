"""The calls of a file, by what they call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase

from torchmemlint.findings import Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.immutable import immutable
from torchmemlint.rules.separating import place_of
from torchmemlint.syntax.outline import dotted, imports


@immutable(eq=False)
class Call:
    """A call, by the qualified name of what is called."""

    name: str  # qualified: "torch.save" where the file has `from torch import save`; that which was asked for
    node: ast.Call
    span: Span
    around: tuple[ast.stmt, ...]  # the statements around it, the outermost first

    @property
    def in_loop(self) -> bool:
        """Whether the call is in the body of a loop of its own function."""
        for statement in reversed(self.around):
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                return False
            if isinstance(statement, ast.For | ast.AsyncFor | ast.While):
                return True
        return False

    def argument(self, name: str, position: int | None = None) -> ast.expr | None:
        """The argument of this name, or at this position (from 0) if one is given.

        None if the call has no such argument. None, too, if `*arguments` come before it, since its position is not
        known then.
        """
        for keyword in self.node.keywords:
            if keyword.arg == name:
                return keyword.value
        if position is None or any(isinstance(one, ast.Starred) for one in self.node.args[: position + 1]):
            return None
        return self.node.args[position] if position < len(self.node.args) else None


def calls(facts: FileFacts, *names: str) -> Iterator[Call]:
    """The calls in the file of functions, classes and methods with these qualified names, in the order of the text.

    `"acme.Engine.step"` also finds `engine.step()` and `self.engine.step()`, if the file shows that this may be an
    `Engine`. It follows what a call of `acme.Engine` returns, annotations of parameters, and attributes of classes.
    It also follows variables of the file and `self` of a subclass. The result of `acme.load(...)` has the name
    `acme.load`.

    A name may hold `*` and `?`, as in `"acme.ops.*"`. A call through an unknown variable has the name as it is
    written (`"model.half"`, `"*.half"`). Such a name does not show what the object is.
    """
    asking = facts.asking()
    for piece in facts.source.pieces:
        if piece.outline is None:  # written for a newer Python than this one
            continue
        for node, around in _calls_in(piece.outline, ()):
            written = _qualified(dotted(node.func), around, facts)
            known = sorted(asking.callees(place_of(node))) if asking is not None else []
            found = (name for name in (*known, written) if name and any(fnmatchcase(name, one) for one in names))
            if (name := next(found, None)) is not None:
                yield Call(name, node, span_of(facts, node), around)


def span_of(facts: FileFacts, node: ast.expr | ast.stmt) -> Span:
    """The span of a node of a call. The node is an argument, or a statement around the call."""
    return facts.source.span_of(place_of(node))


def _calls_in(node: ast.AST, around: tuple[ast.stmt, ...]) -> Iterator[tuple[ast.Call, tuple[ast.stmt, ...]]]:
    """Calls with the statements around them, from left to right and from the outside in."""
    if isinstance(node, ast.Call):
        yield node, around
    if isinstance(node, ast.stmt):
        around = (*around, node)
    for child in ast.iter_child_nodes(node):
        yield from _calls_in(child, around)


def _qualified(written: str, around: tuple[ast.stmt, ...], facts: FileFacts) -> str:
    """A dotted name with its first part replaced by what it was imported as, in a function around or in the file."""
    first, dot, rest = written.partition(".")
    for statement in reversed(around):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            meant = dict(imports(statement.body)).get(first)
            if meant is not None:
                return meant + dot + rest
    return facts.program.qualify(written) if written else ""

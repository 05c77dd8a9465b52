"""Where the source puts something into a holder: the statements that fill a list, or assign a name. Pure syntax.

The holder was seen at run time (its type, and the name by which the program gets at it), so the syntax is only asked
for the lines. Which methods of a container keep what they are given is learned from the container types themselves.
"""

from __future__ import annotations

import ast
import builtins
import collections
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

from torchmemlint.immutable import immutable

_BUILT_IN: tuple[Callable[[], object], ...] = (
    list,
    dict,
    set,
    collections.deque,
    collections.OrderedDict,
    functools.partial(collections.defaultdict, list),
)


class _Probe:
    """Something that can be put anywhere."""

    def __iter__(self) -> Iterator[object]:
        yield self

    def keys(self) -> list[object]:
        return [self]

    def __getitem__(self, key: object) -> object:
        return self


@functools.cache
def keeping_methods() -> frozenset[str]:
    """The methods of the built-in containers that keep an argument: found by giving them one."""
    kept = set()
    for make in _BUILT_IN:
        for name in dir(make()):
            if name.startswith("__"):
                continue
            for arguments in (1, 2):
                container, probe = make(), _Probe()
                given = (probe,) if arguments == 1 else (0, probe)
                try:
                    getattr(container, name)(*given)
                except (TypeError, ValueError, KeyError, IndexError, AttributeError):
                    continue
                values = container.values() if isinstance(container, dict) else container
                if any(one is probe for one in values):  # type: ignore[attr-defined]
                    kept.add(name)
    return frozenset(kept)


@immutable()
class Fill:
    """A statement that puts something into a holder."""

    line: int
    function: str  # the innermost, by its simple name; `<module>` outside
    carried: bool  # it makes the new value from the old one: `total += loss`, `h = cell(x, h)`
    is_name: bool = False  # it assigns a name, and not an attribute


@immutable()
class _Question:
    names: set[str]
    contents: bool
    key: str | None
    any_method: bool

    def means(self, node: ast.expr) -> bool:
        """Whether an expression is the container asked for, or an element of it."""
        base = node
        first: ast.expr | None = None
        while isinstance(base, ast.Subscript):
            first = base.slice
            base = base.value
        if _called(base) not in self.names:
            return False
        return self.key is None or not isinstance(first, ast.Constant) or repr(first.value) == self.key


def _mentions(value: ast.expr, target: ast.expr) -> bool:
    """Whether a value is made from what it is assigned to."""
    text = ast.unparse(target)
    return any(isinstance(one, ast.Name | ast.Attribute) and ast.unparse(one) == text for one in ast.walk(value))


def _holds_nothing(value: ast.expr) -> bool:
    """Whether a value cannot have a tensor: a constant, an empty container."""
    match value:
        case ast.Constant() | ast.Tuple(elts=[]) | ast.List(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
            return name in vars(builtins)
    return False


class Source:
    """A file's syntax tree, asked for statements."""

    def __init__(self, text: str) -> None:
        self._tree = ast.parse(text)
        self._function_of: dict[ast.AST, str] = {}
        self._place(self._tree, "<module>")
        self.statements = [node for node in ast.walk(self._tree) if isinstance(node, ast.stmt)]

    def _place(self, node: ast.AST, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            self._function_of[child] = function
            inner = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            self._place(child, inner)

    def fills(self, leaf: str, *, contents: bool, key: str | None = None, any_method: bool = False) -> list[Fill]:
        """The statements that fill what is called `leaf` (a name or an attribute), in the order of their lines.

        With `contents`, a container is meant: what is put into it; without, the value itself: what is assigned.
        Where a container is only filled under another name (`rows = self.rows`, a function's parameter), there.
        With a `key` (as source), that element of the container is meant, and what names another one does not count.
        With `any_method`, the container is inside of an object called `leaf`, whose methods are not known.
        """
        names = self._aliases(leaf) if contents else {leaf}
        ask = _Question(names, contents, key, any_method)
        found: dict[int, Fill] = {}
        for statement in self.statements:
            for fill in self._fills_of(statement, ask):
                found.setdefault(fill.line, fill)
        if not found and contents:  # built anew each time: `rows = [*rows, row]`, `rows = [f(x) for x in data]`
            return self.fills(leaf, contents=False)
        return [found[line] for line in sorted(found)]

    def _fills_of(self, statement: ast.stmt, ask: _Question) -> Iterator[Fill]:
        function = self._function_of.get(statement, "<module>")
        names, contents = ask.names, ask.contents
        match statement:
            case ast.AugAssign(target=target):
                if _called(target) in names or (contents and ask.means(target)):
                    yield Fill(statement.lineno, function, True)
            case ast.Assign() | ast.AnnAssign():
                value = statement.value
                if value is None or _holds_nothing(value):
                    return
                for assigned in _targets(statement):
                    if contents and isinstance(assigned, ast.Subscript) and ask.means(assigned):
                        again = any(_called(one) in names for one in ast.walk(value))
                        yield Fill(statement.lineno, function, again)
                    elif _called(assigned) in names:
                        carried = _mentions(value, assigned)
                        if not contents or carried:
                            yield Fill(statement.lineno, function, carried, isinstance(assigned, ast.Name))
        if contents:
            for call in _own_calls(statement):
                method = call.func
                if (
                    isinstance(method, ast.Attribute)
                    and (ask.any_method or method.attr in keeping_methods())
                    and ask.means(method.value)
                    and any(not _holds_nothing(one) for one in (*call.args, *(word.value for word in call.keywords)))
                ) or (_is_setattr(call) and isinstance(call.args[1], ast.Constant) and call.args[1].value in names):
                    yield Fill(call.lineno, function, False)
        for named in _own_expressions(statement, ast.NamedExpr):
            if isinstance(named, ast.NamedExpr) and not contents and named.target.id in names:
                yield Fill(named.lineno, function, _mentions(named.value, named.target))

    def _aliases(self, leaf: str) -> set[str]:
        """The names under which the file knows what is called `leaf`."""
        names = {leaf}
        functions = {
            one.name: one for one in self.statements if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        while True:
            before = len(names)
            for statement in self.statements:
                if isinstance(statement, ast.Assign) and _called(statement.value) in names:
                    names |= {name for target in _targets(statement) if (name := _called(target))}
                for call in _own_calls(statement):
                    callee = functions.get(_called(call.func) or "")
                    if callee is not None:
                        names |= set(_given_to(call, callee, names))
            if len(names) == before:
                return names

    def is_carried(self, leaf: str) -> bool:
        """Whether a loop's turn reads what is called `leaf` before it assigns it: the value of the turn before.

        For an attribute a function's body counts as a turn, because the object outlives the call.
        """
        for node in ast.walk(self._tree):
            is_turn = isinstance(node, ast.For | ast.AsyncFor | ast.While)
            if is_turn or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                uses = list(_uses(getattr(node, "body", []), leaf, attributes_only=not is_turn))
                if uses and uses[0] == "read" and "written" in uses:
                    return True
        return False


@functools.lru_cache(maxsize=256)
def source_of(path: str) -> Source | None:
    """The source of a file; None where it cannot be read."""
    try:
        return Source(Path(path).read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _called(node: ast.AST) -> str | None:
    """The name by which an expression gets at an object: its own, or its attribute's."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case ast.Starred(value=value):
            return _called(value)
    return None


def _targets(statement: ast.Assign | ast.AnnAssign) -> Iterator[ast.expr]:
    waiting: list[ast.expr] = list(statement.targets) if isinstance(statement, ast.Assign) else [statement.target]
    while waiting:
        target = waiting.pop()
        if isinstance(target, ast.Tuple | ast.List):
            waiting.extend(target.elts)
        else:
            yield target


def _own_expressions(statement: ast.stmt, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of the statements in it."""
    waiting = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, kinds):
            yield node
        waiting.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt))


def _own_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    for one in _own_expressions(statement, ast.Call):
        if isinstance(one, ast.Call):
            yield one


def _is_setattr(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(call.args) == 3


def _given_to(call: ast.Call, callee: ast.FunctionDef | ast.AsyncFunctionDef, names: set[str]) -> Iterator[str]:
    """The parameters of a function that a call fills with one of some names."""
    parameters = [one.arg for one in (*callee.args.posonlyargs, *callee.args.args)]
    if isinstance(call.func, ast.Attribute) and parameters[:1] == ["self"]:
        parameters = parameters[1:]
    for parameter, given in zip(parameters, call.args, strict=False):
        if _called(given) in names:
            yield parameter
    for keyword in call.keywords:
        if keyword.arg is not None and _called(keyword.value) in names:
            yield keyword.arg


def _uses(body: list[ast.stmt], leaf: str, *, attributes_only: bool) -> Iterator[str]:
    """`read` and `written`, as a body does them in turn: a value before the target that it is assigned to."""

    def visit(node: ast.AST) -> Iterator[str]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                return
            case ast.AugAssign(target=target, value=value):
                yield from visit(value)
                if _called(target) == leaf and (isinstance(target, ast.Attribute) or not attributes_only):
                    yield "read"
                    yield "written"
                return
            case ast.Assign(targets=targets, value=value):
                yield from visit(value)
                for target in targets:
                    yield from visit(target)
                return
            case ast.AnnAssign(target=target, value=given) if given is not None:
                yield from visit(given)
                yield from visit(target)
                return
            case ast.For(target=target, iter=iterable, body=inner, orelse=other):
                yield from visit(iterable)
                yield from visit(target)
                for one in (*inner, *other):
                    yield from visit(one)
                return
            case ast.Name(id=name, ctx=context) if name == leaf and not attributes_only:
                yield "written" if isinstance(context, ast.Store) else "read"
            case ast.Attribute(attr=name, ctx=context) if name == leaf:
                yield "written" if isinstance(context, ast.Store) else "read"
        for child in ast.iter_child_nodes(node):
            yield from visit(child)

    for statement in body:
        yield from visit(statement)

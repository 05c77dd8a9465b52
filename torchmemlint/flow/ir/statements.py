"""From statements to operations. Definitions and `match` have modules of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module

from .building import EXPRESSIONS, Builder, span, statement, where
from .conditions import TESTS, is_often
from .control import Break, Check, Continue, Enter, For, Handler, If, Raise, Return, Try, While, With
from .expressions import OPERATORS
from .keys import key_of
from .narrowing import mark_arguments, mark_tested, narrowings
from .ops import Bind, Call, CallMethod, GetAttribute, GetItem, Import, Op, Operate, Remove, Span, Unbind
from .places import NO_TEMP, AttributePlace, ConstantKey, ItemPlace, Place, Scope, Temp
from .targets import assign
from .texts import annotation_name, dotted

_LEAVING = (Return, Raise, Break, Continue)
_NO_NAMES: frozenset[str] = frozenset()
_OF_PYTHON = frozenset("collections contextlib copy functools itertools operator threading".split())  # what is followed


@statement("Expr")
def evaluate(b: Builder, node: ast.Expr) -> None:
    """An expression for its effects."""
    value = node.value
    if value.__class__ is not ast.Constant:
        src = EXPRESSIONS[value.__class__](b, value)
        last = b.block[-1] if b.block else None
        if isinstance(last, Call | CallMethod) and last.dst == src:
            last.dropped = True


@statement("Pass")
def skip(b: Builder, node: ast.Pass) -> None:
    """Nothing."""


@statement("Assign")
def assign_value(b: Builder, node: ast.Assign) -> None:
    """`x = y = z`."""
    value = node.value
    src = EXPRESSIONS[value.__class__](b, value)
    for target in node.targets:
        if target.__class__ is ast.Name:
            b.block.append(Bind(b.function, where(target.__dict__), b.target(target.id), src))
            if value.__class__ in TESTS:
                b.frame.assigned[target.id] = value
        else:
            assign(b, target, src)
            if target.__class__ is ast.Attribute and target.attr == "requires_grad":  # as good as a test
                mark_tested(b, value)


@statement("AnnAssign")
def assign_annotated(b: Builder, node: ast.AnnAssign) -> None:
    """`x: T = y`, `x: T`."""
    if node.value is not None:
        src = b.expression(node.value)
        assign(b, node.target, src)
    if isinstance(node.target, ast.Name):
        text = node.target.id
        scope = b.class_scope
        if scope is not None:
            if text not in scope.cls.annotations:
                scope.cls.fields.append((text, node.value is not None))
            scope.cls.annotations[text] = annotation_name(node.annotation, b.aliases)
        elif node.simple:
            b.frame.annotated |= {text}
            if node.value is not None and node.value.__class__ in TESTS:
                b.frame.assigned[text] = node.value


@statement("AugAssign")
def change(b: Builder, node: ast.AugAssign) -> None:
    """`x += y`: the operation itself writes its result back."""
    target = node.target
    place: Place
    if isinstance(target, ast.Name):
        old = b.expression(target)
        place = b.target(target.id)
    elif isinstance(target, ast.Attribute):
        base = b.expression(target.value)
        b.mentions.add(target.attr)
        old = b.make(GetAttribute, span(target), base, target.attr)
        b.stores(target.attr)
        place = AttributePlace(base, target.attr)
    else:
        base = b.expression(target.value)
        key = key_of(b, target.slice)
        old = b.make(GetItem, span(target), base, key)
        place = ItemPlace(base, key)
    value = b.expression(node.value)
    b.make(Operate, span(node), OPERATORS[node.op.__class__], (old, value), place)


@statement("Delete")
def delete(b: Builder, node: ast.Delete) -> None:
    """`del x, y.a, z[0]`."""
    for target in node.targets:
        _delete(b, target)


def _delete(b: Builder, target: ast.expr) -> None:
    if isinstance(target, ast.Name):
        _unbind(b, target.id, span(target))
    elif isinstance(target, ast.Attribute):
        base = b.expression(target.value)
        b.mentions.add(target.attr)
        b.block.append(Remove(b.function, span(target), base, ConstantKey(target.attr), True))
    elif isinstance(target, ast.Subscript):
        base = b.expression(target.value)
        key = key_of(b, target.slice)
        b.block.append(Remove(b.function, span(target), base, key, False))
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            _delete(b, element)


def _unbind(b: Builder, text: str, place: Span) -> None:
    b.block.append(Unbind(b.function, place, b.target(text, member=False)))
    if b.class_scope is not None:
        b.class_scope.removed(text)


# Names.


@statement("Global")
def declare_global(b: Builder, node: ast.Global) -> None:
    """`global x`."""
    if b.class_scope is not None:
        b.scopes.globals.update(node.names)
        for text in node.names:
            b.class_scope.declare(text, Scope.GLOBAL)
    else:
        b.frame.globals |= {*node.names}
    b.unit.stored.update(node.names)


@statement("Nonlocal")
def declare_nonlocal(b: Builder, node: ast.Nonlocal) -> None:
    """`nonlocal x`."""
    if b.class_scope is not None:
        for text in node.names:
            b.class_scope.declare(text, Scope.CELL)
    else:
        b.frame.nonlocals |= {*node.names}


@statement("Import")
def import_modules(b: Builder, node: ast.Import) -> None:
    """`import a.b`, `import a.b as c`."""
    for alias in node.names:
        name = alias.name
        if "." in name:
            b.mentions.update(name.split("."))
        if alias.asname is None:
            head = name.partition(".")[0]
            _import(b, head, head, head, 0, node)
        else:
            b.mentions.add(name)
            _import(b, alias.asname, name, name, 0, node)


@statement("ImportFrom")
def import_names(b: Builder, node: ast.ImportFrom) -> None:
    """`from a import b`, `from . import c`, `from m import *`."""
    module = node.module or ""
    level = node.level or 0
    mentions = b.mentions
    mentions.update(module.split("."))
    dots = "." * level
    prefix = module + "." if module else ""
    for alias in node.names:
        name = alias.name
        if name == "*" and not level and module in _OF_PYTHON:
            for each in _public(module):
                mentions.add(each)
                _import(b, each, prefix + each, prefix + each, 0, node)
        elif name == "*":
            b.unit.stars.append(dots + module)
        else:
            mentions.add(name)
            qualified = prefix + name
            _import(b, alias.asname or name, qualified, dots + qualified, level, node)


def _public(module: str) -> Iterable[str]:
    """Return what `import *` brings of a module of Python: what it lists, or all names without an underscore."""
    found = import_module(module)
    listed: Iterable[str] | None = getattr(found, "__all__", None)
    return [name for name in dir(found) if not name.startswith("_")] if listed is None else listed


def _import(b: Builder, text: str, qualified: str, with_dots: str, relative: int, node: ast.stmt) -> None:
    place = span(node)
    dst = b.make(Import, place, qualified, relative)
    b.bind(text, dst, place)
    b.aliases.setdefault(text, with_dots)
    if b.at_module_level:
        b.unit.imports.setdefault(text, with_dots)


@statement("TypeAlias")
def name_type(b: Builder, node: ast.AST) -> None:
    """`type X = Y`, of Python 3.12 on."""
    name, value = node.name, node.value  # type: ignore[attr-defined]
    src = b.expression(value)
    assign(b, name, src)


# Branches and loops.


@statement("If")
def branch(b: Builder, node: ast.If) -> None:
    """`if`, with all its `elif`."""
    outer = b.block
    while True:
        test = node.test
        value = EXPRESSIONS[test.__class__](b, test)
        mark_tested(b, test)
        op = If(b.function, span(node), value, [], [], narrowings(b, test), is_often(test))
        b.block.append(op)
        b.into(op.then, node.body)
        rest = node.orelse
        b.block = op.orelse
        if len(rest) == 1 and isinstance(rest[0], ast.If):
            node = rest[0]
        else:
            break
    b.statements(rest)
    b.block = outer


@statement("For", "AsyncFor")
def loop(b: Builder, node: ast.For | ast.AsyncFor) -> None:
    """`for x in y`."""
    source = b.expression(node.iter)
    item = b.temp()
    op = For(b.function, span(node), source, item, [], [], _NO_NAMES, False)
    with _rounds(b, op, node.orelse):
        b.block = op.body
        assign(b, node.target, item)
        b.statements(node.body)


@statement("While")
def loop_while(b: Builder, node: ast.While) -> None:
    """`while x`."""
    op = While(b.function, span(node), [], NO_TEMP, [], [], _NO_NAMES)
    with _rounds(b, op, node.orelse):
        b.block = op.head
        op.test = b.expression(node.test)
        mark_tested(b, node.test)
        b.block = op.body
        b.statements(node.body)


@contextmanager
def _rounds(b: Builder, op: For | While, orelse: list[ast.stmt]) -> Iterator[None]:
    """Add a loop: what is done within makes its rounds, and what they bind is taken down."""
    outer, binds, touched = b.block, b.binds, b.frame.touched
    first, first_touched = len(binds), len(touched)
    outer.append(op)
    yield
    b.scopes.loops.append((op, binds[first:] + touched[first_touched:]))
    b.block = op.orelse
    b.statements(orelse)
    b.block = outer


@statement("Break")
def leave_loop(b: Builder, node: ast.Break) -> None:
    """`break`."""
    b.block.append(Break(b.function, span(node)))


@statement("Continue")
def next_round(b: Builder, node: ast.Continue) -> None:
    """`continue`."""
    b.block.append(Continue(b.function, span(node)))


# Leaving, failing, contexts.


@statement("Return")
def give_back(b: Builder, node: ast.Return) -> None:
    """`return x`."""
    src = NO_TEMP if node.value is None else b.expression(node.value)
    b.block.append(Return(b.function, span(node), src))


@statement("Raise")
def fail(b: Builder, node: ast.Raise) -> None:
    """`raise X from Y`."""
    src = NO_TEMP if node.exc is None else b.expression(node.exc)
    if node.cause is not None:
        b.expression(node.cause)
    made = b.block[-1] if isinstance(node.exc, ast.Call) else None
    carried = tuple(one.temp for one in made.arguments) if isinstance(made, Call | CallMethod) else ()
    b.block.append(Raise(b.function, span(node), src, (src, *carried) if src is not NO_TEMP else ()))


@statement("Assert")
def check(b: Builder, node: ast.Assert) -> None:
    """`assert x, message`: the message is made only where the test fails."""
    test = b.expression(node.test)
    mark_tested(b, node.test)
    place = span(node)
    if node.msg is not None and node.msg.__class__ is not ast.Constant:
        op = If(b.function, place, test, [], [], ())
        outer = b.block
        outer.append(op)
        b.block = op.orelse
        src = b.expression(node.msg)
        b.block.append(Raise(b.function, place, src))
        b.block = outer
    b.block.append(Check(b.function, place, test, narrowings(b, node.test)))


@statement("Try", "TryStar")
def attempt(b: Builder, node: ast.Try) -> None:
    """`try`, with `except` or `except*`."""
    op = Try(b.function, span(node), [], [], [], [])
    b.block.append(op)
    b.into(op.body, node.body)
    for handler in node.handlers:
        op.handlers.append(_handler(b, handler))
    if any(handler.types != ("StopIteration",) for handler in op.handlers):
        b.function.handles = True
    b.into(op.orelse, node.orelse)
    b.into(op.final, node.finalbody)


def _handler(b: Builder, node: ast.ExceptHandler) -> Handler:
    """One `except`. Its name is gone at its end."""
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type] if node.type is not None else []
    types = tuple([dotted(kind) for kind in kinds])
    for text in types:
        b.mentions.update(text.split("."))
    caught: Temp = b.temp()
    body: list[Op] = []
    handler = Handler(body, None, types, caught)
    outer = b.block
    b.block = body
    if node.name is not None:
        place = span(node)
        b.bind(node.name, caught, place)
        handler.name = body[0].name  # type: ignore[attr-defined]
        b.statements(node.body)
        if not isinstance(body[-1], _LEAVING):
            _unbind(b, node.name, place)
    else:
        b.statements(node.body)
    b.block = outer
    return handler


@statement("With", "AsyncWith")
def within(b: Builder, node: ast.With | ast.AsyncWith) -> None:
    """`with a as x, b as y`: each context is made within the one before."""
    outer = b.block
    for item in node.items:
        manager = item.context_expr
        context = b.expression(manager)
        if isinstance(manager, ast.Call):
            mark_arguments(b, manager)
        op = With(b.function, span(node), (context,), [])
        b.block.append(op)
        b.block = op.body
        dst = b.make(Enter, span(manager), context)
        if item.optional_vars is not None:
            assign(b, item.optional_vars, dst)
    b.statements(node.body)
    b.block = outer

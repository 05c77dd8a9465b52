"""Functions, classes and their decorators."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .building import Builder, expression, given_plainly, span, statement
from .control import Return
from .ops import Bind, Call, Class, Decorator, Define, DefineClass, Function, Load, Parameter, Passing, Span
from .places import Temp
from .scopes import ClassScope
from .texts import annotation_name, base_name, dotted, qualified

_MODES = frozenset("no_grad inference_mode enable_grad set_grad_enabled".split())
NEUTRAL = _MODES | frozenset(
    "staticmethod classmethod property cached_property abstractmethod abstractproperty overload override final "
    "lru_cache cache contextmanager asynccontextmanager wraps "
    "dataclass runtime_checkable compile setter getter deleter".split()
)
BUILT_IN = frozenset({"staticmethod", "classmethod", "property"})
_POSITIONAL = Passing.POSITIONAL
Defaults = tuple[tuple[str, Temp], ...]


@expression("Lambda")
def anonymous(b: Builder, node: ast.Lambda) -> Temp:
    """`lambda x: y`."""
    place = span(node)
    function = Function("<lambda>", place, b.unit, b.function, None)
    defaults = _parameters(b, function, node.args)
    b.enter(function)
    if b.frame.enclosed:
        _own_parameters(b)
    src = b.expression(node.body)
    b.block.append(Return(function, span(node.body), src))
    b.leave()
    b.function.nested.append(function)
    return b.make(Define, place, function, defaults)


@statement("FunctionDef", "AsyncFunctionDef")
def define(b: Builder, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """`def f(x): ...`, with its decorators."""
    place = span(node)
    decorators, applied = _decorators(b, node.decorator_list) if node.decorator_list else _UNDECORATED
    scope = b.class_scope
    function = Function(node.name, place, b.unit, b.function, None if scope is None else scope.cls, [], decorators)
    if node.__class__ is ast.AsyncFunctionDef:
        function.coroutine = True
    defaults = _parameters(b, function, node.args)
    b.function.nested.append(function)
    b.enter(function)
    b.statements(node.body)
    b.leave()
    dst = b.make(Define, place, function, defaults)
    if applied:
        dst = _apply(b, dst, applied)
    if scope is not None:
        _method(b, scope, function, dst, place)
    elif all(decorator.name.rpartition(".")[2] != "overload" for decorator in decorators):  # not for checkers alone
        b.bind(node.name, dst, place)
        if not applied and b.at_module_level:
            b.scopes.definitions.append((node.name, function))


def _own_parameters(b: Builder) -> None:
    """The parameters of a lambda in a comprehension are not the comprehension's variables."""
    for parameter in b.function.parameters:
        b.names[parameter.name]


def _method(b: Builder, scope: ClassScope, function: Function, dst: Temp, place: Span) -> None:
    """A function of a class: it is a member of its own only where a decorator made something else of it."""
    name, cls = function.name, scope.cls
    if not function.decorators:
        cls.methods[name] = function
        b.block.append(Bind(b.function, place, b.target(name, member=False), dst))
        return
    kinds = [decorator.name.rpartition(".")[2] for decorator in function.decorators]
    if "setter" in kinds:
        cls.setters[name] = function
    elif "deleter" not in kinds and "overload" not in kinds:
        cls.methods[name] = function
        if any(decorator.applied for decorator in function.decorators):
            b.bind(name, dst, place)
        else:
            b.block.append(Bind(b.function, place, b.target(name, member=False), dst))


def _parameters(b: Builder, function: Function, args: ast.arguments) -> Defaults:
    """Fill in the parameters; their defaults are evaluated where the function is defined."""
    parameters = function.parameters
    aliases = b.aliases
    defaults: list[tuple[str, Temp]] = []
    positional = args.posonlyargs + args.args if args.posonlyargs else args.args
    required = len(positional) - len(args.defaults)
    for arg in positional:
        annotation = annotation_name(arg.annotation, aliases) if arg.annotation is not None else ""
        parameters.append(Parameter(arg.arg, _POSITIONAL, annotation, required <= 0))
        if required <= 0:
            defaults.append((arg.arg, b.expression(args.defaults[-required])))
        required -= 1
    if args.vararg is not None:
        parameters.append(Parameter(args.vararg.arg, Passing.STAR, "", False))
    if args.kwonlyargs:
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            annotation = annotation_name(arg.annotation, aliases)
            parameters.append(Parameter(arg.arg, Passing.ONLY_NAMED, annotation, default is not None))
            if default is not None:
                defaults.append((arg.arg, b.expression(default)))
    if args.kwarg is not None:
        parameters.append(Parameter(args.kwarg.arg, Passing.STARS, "", False))
    function.bound.update([parameter.name for parameter in parameters])
    function.mentions.update(function.bound)
    return tuple(defaults)


Applied = list[tuple[Temp, Span]]
_UNDECORATED: tuple[tuple[Decorator, ...], Applied] = ((), [])


def _decorators(b: Builder, nodes: Sequence[ast.expr]) -> tuple[tuple[Decorator, ...], Applied]:
    """What stands above a definition; those that may change what is defined are evaluated."""
    decorators: list[Decorator] = []
    applied: Applied = []
    for node in nodes:
        called = isinstance(node, ast.Call)
        written = dotted(node.func if isinstance(node, ast.Call) else node)
        name = qualified(written, b.aliases)
        effective = not _is_neutral(b, name)
        decorators.append(Decorator(name, called, _constants(node), span(node), effective))
        if effective:
            applied.append((b.expression(node), span(node)))
    return tuple(decorators), applied


def _constants(node: ast.expr) -> tuple[object, ...]:
    if not isinstance(node, ast.Call):
        return ()
    given = [*node.args, *[keyword.value for keyword in node.keywords]]
    return tuple([value.value if isinstance(value, ast.Constant) else ... for value in given])


def _is_neutral(b: Builder, name: str) -> bool:
    """Does a decorator leave values as they are? One that the file defines itself may be called alike."""
    last = name.rpartition(".")[2]
    if last not in NEUTRAL and not name.startswith(("torch.jit.", "jit.")):
        return False
    return last in BUILT_IN or "." in name or all(text != name for text, _ in b.scopes.definitions)


def _apply(b: Builder, dst: Temp, applied: Applied) -> Temp:
    """Call the decorators, the innermost first."""
    for decorator, place in reversed(applied):
        dst = b.make(Call, place, decorator, (given_plainly[dst],))
    return dst


@statement("ClassDef")
def define_class(b: Builder, node: ast.ClassDef) -> None:
    """`class A(B): ...`. Its body runs where it stands."""
    place = span(node)
    decorators, applied = _decorators(b, node.decorator_list)
    outer = b.class_scope
    bases = tuple([base_name(base, b.aliases) for base in node.bases])
    _evaluate_bases(b, node)
    cls = Class(node.name, place, b.unit, b.function, outer.cls if outer is not None else None, bases, decorators)
    b.unit.classes.append(cls)
    number = b.temp()
    if outer is not None:
        outer.hide()
    scope = b.class_scope = ClassScope(cls, b.frame, number)
    b.statements(node.body)
    members = [(text, b.make(Load, place, scope.bound(text))) for text in scope.members]
    scope.hide()
    b.class_scope = outer
    if outer is not None:
        outer.reveal()
    cls.members = frozenset(name for name, _ in members)
    b.block.append(DefineClass(b.function, place, number, cls, tuple(members)))
    _modes(b, node.decorator_list, number)
    dst = _apply(b, number, applied)
    b.bind(node.name, dst, place)
    if not applied and b.at_module_level:
        b.scopes.definitions.append((node.name, cls))


def _modes(b: Builder, nodes: Sequence[ast.expr], cls: Temp) -> None:
    """Call the gradient modes above a class: they leave it as it is, but for what happens when an object is made."""
    for node in nodes:
        name = qualified(dotted(node.func if isinstance(node, ast.Call) else node), b.aliases)
        if name.rpartition(".")[2] in _MODES and _is_neutral(b, name):
            b.make(Call, span(node), b.expression(node), (given_plainly[cls],))


def _evaluate_bases(b: Builder, node: ast.ClassDef) -> None:
    """Base classes are told by name; only what is computed in their place is evaluated."""
    for base in node.bases:
        if not dotted(base) and not isinstance(base, ast.Subscript):
            b.expression(base.value if isinstance(base, ast.Starred) else base)
    for keyword in node.keywords:
        if not dotted(keyword.value):
            b.expression(keyword.value)

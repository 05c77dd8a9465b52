"""Failed steps: what runs, or keeps the exception, while a traceback still holds the frames that ran out of memory.

While an `except` clause runs, the interpreter's record of the exception keeps its traceback, named or not; that keeps
the frames of all that the `try` body called, and so every tensor in them, until the clause is left.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import libcst as cst

from torchmemlint.flow.attempts import Attempt, Handler, Work
from torchmemlint.flow.facts import FailureHeld
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import BUILTINS, Function, expression_name
from torchmemlint.flow.values import (
    ClassValue,
    Constant,
    Container,
    External,
    FunctionValue,
    Known,
    Method,
    Mode,
    Tensor,
    Unknown,
    Value,
)
from torchmemlint.knowledge import failures as knowledge
from torchmemlint.knowledge import operations
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import string_value, text_of
from torchmemlint.syntax.walking import inside

if TYPE_CHECKING:
    from torchmemlint.flow.arguments import Arguments

_ROLE = "exception"
_COLLECTING = frozenset("append appendleft add insert put put_nowait".split())
_WITHOUT_FRAMES = frozenset("torch numpy math time random os json".split())  # they compute in C, or hold no tensors


# -- the body --------------------------------------------------------------------------------------------------------


@contextmanager
def attempting(it: Interpreter) -> Iterator[Attempt]:
    """While the body of a `try` is walked, its calls are taken down."""
    outer = it.frame.attempt
    attempt = Attempt(outer)
    it.frame.attempt = attempt if it.recording else outer
    try:
        yield attempt
    finally:
        it.frame.attempt = outer


@contextmanager
def handling(it: Interpreter, node: cst.ExceptHandler | cst.ExceptStarHandler, attempt: Attempt) -> Iterator[None]:
    """While a handler is walked, the failed body's frames are alive."""
    outer = it.frame.handler
    name = node.name.name if node.name is not None else None
    site = it.site(node.type if node.type is not None else node)
    handler = Handler(site, attempt, outer, _catches(it, node.type), len(it.frame.tests))
    if isinstance(name, cst.Name):
        it.state.vars[name.value] = Known(_ROLE, it.oid("exception", node), made=site)
    it.frame.handler = handler if it.recording and attempt.calls else outer
    mode = it.state.mode
    if mode is Mode.ON and any(work.computes and work.guarded for work in attempt.calls):
        it.state.mode = Mode.UNKNOWN  # what fails without gradients may differentiate something itself
    try:
        yield
    finally:
        it.frame.handler = outer
        it.state.mode = mode if it.state.mode is Mode.UNKNOWN else it.state.mode
        if not handler.cleared and not handler.excluded:
            it.facts.failures += handler.stored


def _catches(it: Interpreter, caught: cst.BaseExpression | None) -> bool:
    """Does the clause (or the second argument of `isinstance`) name the error of memory that ran out?"""
    elements = [e.value for e in caught.elements] if isinstance(caught, cst.Tuple) else [caught] if caught else []
    return any(_names_it(it, element) for element in elements)


def _names_it(it: Interpreter, element: cst.BaseExpression) -> bool:
    """The class itself, or a function that gives it; calls are not made here, as `called` may be what asks."""
    if isinstance(element, cst.Call):
        return _is_predicate(it, element.func)
    value = it.evaluate(element) if isinstance(element, cst.Name | cst.Attribute) else None
    return isinstance(value, External) and value.qualified in knowledge.OUT_OF_MEMORY


# -- calls -----------------------------------------------------------------------------------------------------------


def called(it: Interpreter, node: cst.Call, callee: Value, arguments: Arguments, result: Value, computes: bool) -> None:
    """A call in the body of a `try`, or in a handler."""
    if not it.recording:
        return
    work = Work(it.site(node), text_of(node.func), _target(it), computes, it.state.mode is Mode.OFF)
    attempt = it.frame.attempt
    while attempt is not None:
        attempt.calls.append(work)
        attempt = attempt.outer
    handler = it.frame.handler
    while handler is not None:
        _called_in(it, handler, callee, arguments, result, work)
        handler = handler.outer


def _called_in(
    it: Interpreter, handler: Handler, callee: Value, arguments: Arguments, result: Value, work: Work
) -> None:
    if _clears(callee, arguments):
        handler.cleared = True
    elif _moves_to_host(work, arguments):
        handler.on_host = True
    elif work.callee.endswith("cuda.empty_cache") or work.callee == "empty_cache":
        handler.exhausted = True  # who frees memory here takes it to have run out
    elif isinstance(callee, Method) and isinstance(callee.owner, Unknown) and callee.name in _COLLECTING:
        if any(_holds_exception(it, value) for value in arguments.values):
            _keep(it, handler, work.site.node, work.callee.rpartition(".")[0])
    elif handler.cleared or handler.on_host or not _ran_out(it, handler):
        return
    else:
        failed = _retried(it, handler.attempt, callee, arguments, result, work)
        if failed is not None:
            it.facts.failures.append(FailureHeld(work.site, it.scope, "retry", work.callee, handler.site, failed))


def _retried(
    it: Interpreter, attempt: Attempt, callee: Value, arguments: Arguments, result: Value, work: Work
) -> Site | None:
    """The call in the `try` body that is made up for by this one, if the device has to work for it."""
    tried = attempt.calls
    same = [call for call in tried if call.callee == work.callee]
    ran = [call for call in tried if call.computes]
    if isinstance(callee, FunctionValue) and callee.function in _around(it.frame.function):
        return (ran or tried)[0].site
    if work.computes:
        return (same or ran or tried)[0].site
    if not arguments.items or not work.target or _is_plain(callee):
        return None
    if isinstance(callee, FunctionValue) and not _holds_tensor(it, result):
        return None
    return next((call.site for call in same if call.target == work.target), None)


def _around(function: Function | None) -> Iterator[Function]:
    while function is not None:
        yield function
        function = function.parent


def _is_plain(callee: Value) -> bool:
    """Is it code that holds no tensors in frames of its own: an operation of torch, a container's method, a builtin?"""
    match callee:
        case External(qualified=qualified):
            return qualified.partition(".")[0] in _WITHOUT_FRAMES
        case Method(owner=External() | Container() | Constant()):
            return True
        case ClassValue(cls=cls):
            return not cls.is_module  # an object that describes the failure
        case Method(name=name):
            return operations.method(name) is not None or hasattr(str, name) or hasattr(dict, name)
        case _:
            return isinstance(callee, Unknown) and callee.path in BUILTINS


def _holds_tensor(it: Interpreter, value: Value) -> bool:
    if isinstance(value, Container):
        return any(isinstance(element, Tensor) for element in (*(value.items or ()), *it.elements(value)))
    return isinstance(value, Tensor)


def _target(it: Interpreter) -> str:
    """Where the running statement puts its value."""
    statement = it.frame.statement
    match statement.node if statement is not None else None:
        case cst.Return():
            return "return"
        case cst.Assign(targets=[target]):
            return text_of(target.target)
        case cst.AugAssign(target=target) | cst.AnnAssign(target=target):
            return text_of(target)
        case _:
            return ""


def _clears(callee: Value, arguments: Arguments) -> bool:
    """`traceback.clear_frames(...)`, `e.with_traceback(None)`."""
    if isinstance(callee, External):
        return callee.qualified in knowledge.CLEARING
    named = isinstance(callee, Method) and callee.name == "with_traceback" and _is_exception(callee.owner)
    first = arguments.get("0", "tb")
    return named and isinstance(first, Constant) and first.known and first.value is None


def _moves_to_host(work: Work, arguments: Arguments) -> bool:
    """`x.cpu()`, `x.to("cpu")`, `run(x, device="cpu")`."""
    name = work.callee.rpartition(".")[2]
    if name == "cpu":
        return True
    places = [arguments.get("0", "device")] if name == "to" else []
    return any(_is_host(value) for value in (*places, arguments.get("device")))


def _is_host(value: Value | None) -> bool:
    match value:
        case Constant(known=True, value=str(text)):
            return text == "cpu"
        case Known(role="device", arguments=((_, given), *_)):
            return _is_host(given)
        case _:
            return False


# -- has memory run out? ---------------------------------------------------------------------------------------------


def _ran_out(it: Interpreter, handler: Handler) -> bool:
    """Is it known at this point that memory ran out?"""
    if handler.excluded:
        return False
    answers = [
        told if holds else not told
        for test, holds in it.frame.tests[handler.tests :]
        if (told := _tells(it, handler, test)) is not None
    ]
    return False not in answers and (handler.exhausted or True in answers)


def tested(it: Interpreter, test: cst.BaseExpression, ends: bool) -> None:
    """An `if` in a handler has been walked; `ends`: its body does not go on to what follows."""
    handler = it.frame.handler
    if handler is None or not ends:
        return
    told = _tells(it, handler, test)
    if told is True:
        handler.excluded = True
    elif told is False:
        handler.exhausted = True


def named(it: Interpreter, name: str, node: cst.BaseExpression | None, value: Value) -> None:
    """A name is assigned in a handler: it may hold the answer, or the exception."""
    handler = it.frame.handler
    if handler is None or not it.recording or node is None:
        return
    told = _tells(it, handler, node)
    if told is not None:
        handler.told[name] = told
    elif _is_exception(value) and it.state.vars.get(name) is not value:
        repeated = any(mark.node is not None for mark in it.frame.loops)
        if repeated and _ran_out(it, handler):
            _keep(it, handler, node, name)


def _tells(it: Interpreter, handler: Handler, test: cst.BaseExpression) -> bool | None:
    """Does the condition say that memory ran out (True), that it did not (False), or something else?"""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            told = _tells(it, handler, inner)
            return None if told is None else not told
        case cst.BooleanOperation(left=left, right=right):
            told = _tells(it, handler, left)
            return told if told is not None else _tells(it, handler, right)
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.NotIn())]):
            return False if _mentions(test) else None
        case cst.Name(value=name):
            return handler.told.get(name)
        case cst.Call(func=func) if _is_predicate(it, func):
            return True
        case cst.Call(func=cst.Name(value="isinstance"), args=[_, cst.Arg(value=kind)]):
            return True if _catches(it, kind) else None
        case _:
            return True if _mentions(test) else None


def _mentions(node: cst.CSTNode) -> bool:
    """Does a string within the expression speak of memory?"""
    texts = (string_value(string) for string in inside(node) if isinstance(string, cst.SimpleString))
    return any(isinstance(text, str) and knowledge.speaks_of_memory(text) for text in texts)


def _is_predicate(it: Interpreter, func: cst.BaseExpression) -> bool:
    """A function that looks at an exception's type or message for memory that ran out."""
    path = expression_name(func)
    qualified = it.program.qualify(path)
    if not path or qualified in knowledge.PREDICATES:
        return bool(path)
    function = it.program.find_function(path) or it.program.resolve(qualified)
    if function is None and path.startswith("self.") and it.frame.function is not None and it.frame.function.cls:
        function = it.frame.function.cls.method(path.removeprefix("self."))
    if not isinstance(function, Function) or function.syntax is None:
        return False
    return "OutOfMemoryError" in function.outline.names or any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and knowledge.speaks_of_memory(node.value)
        for node in ast.walk(function.syntax)
    )


# -- exceptions that are kept ----------------------------------------------------------------------------------------


def put(it: Interpreter, value: Value, node: cst.CSTNode, text: str) -> None:
    """A value goes where it outlives the handler: into an attribute, or a container made before."""
    handler = it.frame.handler
    if handler is not None and it.recording and _holds_exception(it, value):
        _keep(it, handler, node, text)


def attribute(it: Interpreter, owner: Value, name: str, value: Value) -> None:
    """`e.__traceback__ = None` lets go of the frames."""
    handler = it.frame.handler
    if handler is not None and name == "__traceback__" and _is_exception(owner):
        handler.cleared = True


def _keep(it: Interpreter, handler: Handler, node: cst.CSTNode, text: str) -> None:
    work = handler.attempt.calls
    ran = [call for call in work if call.computes]
    if ran or (work and _ran_out(it, handler)):
        fact = FailureHeld(it.site(node), it.scope, "kept", text, handler.site, (ran or work)[0].site)
        handler.stored.append(fact)


def _is_exception(value: Value) -> bool:
    return isinstance(value, Known) and value.role == _ROLE


def _holds_exception(it: Interpreter, value: Value) -> bool:
    if isinstance(value, Container):
        return any(_is_exception(element) for element in (*(value.items or ()), *it.elements(value)))
    return _is_exception(value)

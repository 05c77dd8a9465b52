"""Forward passes that only evaluation runs, those that need gradients, and those of a constructor."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from torchmemlint.flow import freezing, inner_gradients
from torchmemlint.flow.facts import FileFacts, ModuleCall, Scope
from torchmemlint.flow.program import Function
from torchmemlint.knowledge import torch_api
from torchmemlint.rules.graphs.lifetime import in_module
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.text import string_value
from torchmemlint.syntax.walking import inside

_EVALUATING = frozenset("eval evaluate evaluation val validate validation".split())
_PHASES = frozenset("dev eval evaluate evaluation test testing val valid validation infer inference predict".split())


def evaluates(tests: Sequence[tuple[cst.BaseExpression, bool]]) -> bool:
    """Does one of the conditions around a place say that the module is not being trained?

    `not self.training`, the else branch of `self.training`, or a phase that is compared with its names:
    `mode in ["dev", "test"]`.
    """
    return any(_says_so(test, holds) for test, holds in tests)


def in_training(tests: Sequence[tuple[cst.BaseExpression, bool]]) -> bool:
    """Does one of the conditions around a place say that something is being trained: `if self.training:`?"""
    return any(holds and isinstance(test, cst.Attribute) and test.attr.value == "training" for test, holds in tests)


def only_evaluation_calls(facts: FileFacts, function: Function | None) -> bool:
    """A method of its class alone that is called only where the module is not being trained: `_decode` of a parser."""
    if function is None or function.cls is None or not function.name.startswith("_"):
        return False
    places = facts.called_at.get(function, ())
    return bool(places) and all(evaluates(facts.tests.get(place, ())) for place in places)


def is_evaluation(scope: Scope) -> bool:
    """A method that says by its name that it evaluates: `_evaluate_postprocess`, `validation_loss`."""
    function = scope.function
    return function is not None and not _EVALUATING.isdisjoint(function.name.lower().split("_"))


def _says_so(test: cst.BaseExpression, holds: bool) -> bool:
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return _says_so(inner, not holds)
        case cst.Attribute():
            return dotted_text(test) == "self.training" and not holds
        case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
            return holds and (_says_so(left, True) or _says_so(right, True))
        case cst.BooleanOperation(left=left, operator=cst.Or(), right=right):
            return not holds and (_says_so(left, False) or _says_so(right, False))
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Equal() | cst.In(), comparator=named)]):
            texts = [_text(found) for found in inside(named) if isinstance(found, cst.SimpleString)]
            return holds and bool(texts) and all(_is_phase(text) for text in texts)
    return False


def _text(node: cst.SimpleString) -> str:
    value = string_value(node)
    return value if isinstance(value, str) else ""


def _is_phase(text: str) -> bool:
    """`"dev"`, and `"sws2013_eval"`."""
    return not _PHASES.isdisjoint(text.lower().replace("-", "_").split("_"))


def needs_gradients(facts: FileFacts, call: ModuleCall) -> bool:
    """Does what is called differentiate something itself (forces, a gradient that is matched, a penalty)?"""
    module, called = call.module, call.function
    if module is not None and module.cls is not None:
        called = module.cls.method(call.method or "forward")
        if inner_gradients.in_forward(module.cls, call.method or "forward"):
            return True
        given = (called is not None and called.is_abstract) or inner_gradients.holds_given(module.cls)
        if given and inner_gradients.of_some_model(facts.program):
            return True
    elif module is not None:
        return not module.qualified and inner_gradients.of_some_model(facts.program, call.callee)
    elif called is not None and (
        inner_gradients.differentiates(called) or inner_gradients.of_some_model(facts.program)
    ):
        return True
    return called is not None and not facts.effects.get(called, set()).isdisjoint(("backward", "input-gradient"))


_ASKING = frozenset({"enable_grad", "grad_fn"})


def asks_for_graph(scope: Scope) -> bool:
    """Does the function turn gradients on itself, or walk through the graph of what comes out (`out.grad_fn`)?"""
    return scope.function is not None and not scope.function.outline.names.isdisjoint(_ASKING)


def runs_once(scope: Scope) -> bool:
    """In a constructor (or in a method that it alone calls) and in no loop: gone when the program begins to work."""
    function = scope.function
    if function is None or _in_loop_statement(scope):
        return False
    if function.name == "__init__" or function.cls is None or not function.name.startswith("_"):
        return function.name == "__init__"
    calling = {name for name, method in function.cls.methods.items() if function.name in method.outline.calls}
    return calling == {"__init__"}


def only_constructor_calls(facts: FileFacts, scope: Scope) -> bool:
    """The same of a method that others could call, and nobody in the project does. To be asked last."""
    function = scope.function
    if function is None or function.cls is None or facts.callers is None:
        return False
    if _in_loop_statement(scope):
        return False
    calling = [site.function for site in facts.callers.calls(function)]
    return bool(calling) and all(caller is not None and caller.name == "__init__" for caller in calling)


_COMPARING = frozenset("allclose assert_close assert_allclose assert_almost_equal assert_array_almost_equal".split())


def compares_once(scope: Scope) -> bool:
    """In no loop of a function that compares results: a check that a conversion or an export went well."""
    function = scope.function
    if function is None or _in_loop_statement(scope):
        return False
    if not function.outline.calls.isdisjoint(_COMPARING):
        return True
    asserted = (node.test for node in function.outline.nodes if isinstance(node, ast.Assert))
    called = (node.func for test in asserted for node in ast.walk(test) if isinstance(node, ast.Call))
    return any(isinstance(func, ast.Attribute) and func.attr == "all" for func in called)


def _in_loop_statement(scope: Scope) -> bool:
    """In a `for` or `while` of its own or of a caller; comprehensions and repeated calls do not count."""
    return any(isinstance(mark.node, cst.For | cst.While) for mark in scope.loops)


def in_no_loop(scope: Scope) -> bool:
    """Neither in a loop nor in a comprehension."""
    return all(mark.node is None for mark in scope.loops)


def freezes_itself(call: ModuleCall) -> bool:
    """Does the module's own constructor freeze all that it is made of, or (asked of a part of a module) some of it?"""
    cls = call.module.cls if call.module is not None else None
    constructor = cls.method("__init__") if cls is not None else None
    if cls is None or constructor is None:
        return False
    some = not constructor.outline.names.isdisjoint(torch_api.ASKING_FOR_GRADIENTS)
    return (some and in_module(call.scope)) or freezing.freezes_itself(cls)


def _builds(function: Function, call: ModuleCall) -> bool:
    """Does a function make the module that it runs?"""
    made = call.module.made if call.module is not None else None
    return made is not None and function.piece.span(function.node).contains(made.span)


_TRAINED = frozenset("load load_state_dict from_pretrained load_from_checkpoint restore backward".split())
_MADE_UP = frozenset("rand randn randint ones zeros empty".split())


def is_smoke_test(call: ModuleCall) -> bool:
    """In a function that builds a network and shows what it makes of random numbers, once, and needs no arguments."""
    scope = call.scope
    function = scope.function
    if function is None or function.cls is not None or scope.loops[1:]:
        return False
    parameters = function.node.params
    given = [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]
    calls = function.outline.calls
    return (
        not any(one.default is None or not _builds(function, call) for one in given)
        and not calls.isdisjoint(_MADE_UP)
        and calls.isdisjoint(_TRAINED)
        and in_no_loop(scope)
    )

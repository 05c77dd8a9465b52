"""Roles: what a function is for, by its name in an API and by what it does."""

from __future__ import annotations

from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.ir.ops import Class, Function, Unit
from torchmemlint.knowledge.contracts import contracts

_INFERENCE = frozenset("inference infer predict generate sample decode embed transcribe synthesize forecast".split())
_EVALUATION = frozenset("eval evaluate evaluation validate validation val test testing".split())


def _words(function: Function) -> list[str]:
    return function.name.lower().strip("_").split("_")


def infers(engine: Engine, function: Function) -> bool:
    """Is it a method for inference of a network, or one that a framework calls for it: `inference`, `generate`?"""
    if function.cls is None:
        return False
    bases = engine.index.libraries(function.cls)
    known = contracts()
    if known.overrides("inference", function.name, bases):
        return True
    if any(known.is_pipeline(base) for base in bases):
        return function.name in known.names("pipeline-inference").plain
    return engine.index.may_be_network(function.cls) and predicts(function)


def is_of_forward(engine: Engine, function: Function) -> bool:
    """Is it the forward of a network, or a method that it calls, directly or through others?"""
    if function.cls is None or not engine.index.is_network(function.cls):
        return False
    order = engine.index.order(function.cls)
    todo, seen = ["forward"], {"forward"}
    while todo:
        method = engine.index.method(function.cls, todo.pop())
        for name in method.mentions - seen if method is not None else ():
            if any(name in cls.methods for cls in order):
                seen.add(name)
                todo.append(name)
    return function.name in seen


def predicts(function: Function) -> bool:
    """Does it give results to users, by its name: `predict`, `_embed_texts`?"""
    return _words(function)[0] in _INFERENCE


def evaluates(function: Function) -> bool:
    """Does it evaluate, by its name: `evaluate`, `validate_one_epoch`, `run_test`?"""
    words = _words(function)
    return bool(_EVALUATION & set(words[:2])) and "loss" not in words


def is_test(engine: Engine, function: Function) -> bool:
    """Is it a test, or in a file of tests, by the conventions of pytest and unittest?"""
    if function.cls is not None and is_test_case(engine, function.cls):
        return True
    *folders, file = function.unit.name.split(".")
    if file == "conftest" or "tests" in folders:
        return True
    if (file.startswith("test_") or file.endswith("_test")) and _is_collected(engine, function.unit):
        return True
    return function.name.startswith("test_") and not function.parameters


def _is_collected(engine: Engine, unit: Unit) -> bool:
    """Does a file have tests, by pytest's conventions, so that it is no program?"""
    return any(f.name.startswith("test_") and f.parent is unit.module for f in unit.functions) or any(
        cls.name.startswith("Test") or is_test_case(engine, cls) for cls in unit.classes
    )


def is_test_case(engine: Engine, cls: Class) -> bool:
    """Is it a class of tests, by the conventions of unittest?"""
    return any(name.endswith("TestCase") for name in engine.index.libraries(cls))

"""Roles: what a function is for, by its name in an API and by what it does."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchmemlint.flow.domain.refs import Point
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.ir.control import Return
from torchmemlint.flow.ir.ops import Class, Function, Op, Unit
from torchmemlint.flow.ir.places import NO_TEMP
from torchmemlint.knowledge import torch_api

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TURN = "optimizer_idx"
_EXPORTED = frozenset({"torch.jit.export", "torch.jit.script_method"})
_ENDING = torch_api.CUTS | torch_api.READERS | torch_api.DISCRETE | {"data"}


def _words(function: Function) -> list[str]:
    """Return the words of a name, however they are put together: `val_step`, `valStep`, `ValStep`."""
    return _CAPITAL.sub("_", function.name).lower().strip("_").split("_")


def is_called_to_infer(engine: Engine, function: Function) -> bool:
    """Does a framework say that this method is for inference, and leave it to the method to turn gradients off?"""
    if function.cls is None:
        return False
    known = engine.index.contracts
    if engine.index.is_pipeline(function.cls):
        return function.name in known.names("pipeline-inference").plain
    return known.overrides("inference", function.name, engine.index.libraries(function.cls))


def infers(engine: Engine, function: Function) -> bool:
    """Is it for inference: a method of a network, one that a framework calls for it, or a function of a file?"""
    if function.cls is None:
        return function.parent is function.unit.module and predicts(engine, function)
    if is_called_to_infer(engine, function):
        return True
    if not engine.index.may_be_network(function.cls) or not predicts(engine, function):
        return False
    return function not in engine.index.forward(function.cls)  # a part of what training runs, whatever its name


def outermost(engine: Engine, sites: Iterable[Op]) -> list[Op]:
    """Leave out, of calls, innermost first, those in what infers that stand in parts of a network which infers."""
    found = list(sites)
    while len(found) > 1 and all(site.owner.cls is not None and infers(engine, site.owner) for site in found[:2]):
        del found[0]
    return found


def is_given(entry: Function) -> bool:
    """Is an entry given something by callers that are not seen? They may run it again and again, for each input."""
    return entry.cls is not None or any(not parameter.has_default for parameter in entry.parameters)


def is_for_users(engine: Engine, function: Function) -> bool:
    """Does it infer or evaluate, by its name?"""
    return infers(engine, function) or evaluates(engine, function)


def is_called_by_name(engine: Engine, method: Function) -> bool:
    """Is it a method that others call by its name, other than forward? A base that is not seen may call it, too."""
    if method.cls is None or method.name.startswith("__") or method.name == "forward":
        return False
    return engine.index.may_be_network(method.cls) or not engine.index.is_open(method.cls)


def is_exported(function: Function) -> bool:
    """Is it compiled for callers that need not be Python, which turn gradients off by a guard of C++?"""
    return any(decorator.name in _EXPORTED for decorator in function.decorators)


def is_of_forward(engine: Engine, function: Function) -> bool:
    """Is it the forward of a network, a method that it calls, or another way of running it that training may take?

    A function within a function is a part of that.
    """
    function = function.method
    if function.cls is None or not engine.index.is_network(function.cls):
        return False
    if any(function.name == method.name for method in engine.index.forward(function.cls)):
        return True
    is_for_users = predicts(engine, function) or evaluates(engine, function)
    ends_graphs = "forward" not in function.mentions and not function.mentions.isdisjoint(_ENDING)
    if function.name.startswith("_") or is_for_users or ends_graphs:
        return False
    return any(type(op) is Return and op.src != NO_TEMP for op in function.body)


def head(engine: Engine, point: Point) -> tuple[Op, ...]:
    """Return the calls that lead to a network, innermost first, without what happens within it."""
    chain = point.chain()
    while len(chain) > 1 and is_of_forward(engine, chain[0].owner):
        del chain[0]
    return tuple(chain)


def takes_turns(engine: Engine, cls: Class) -> bool:
    """Does a framework switch off the gradients of all networks but of those whose turn it is?

    Before version 2, Lightning did so for each optimizer where the step takes an `optimizer_idx`; with
    `toggle_optimizer` a program asks for it. Source: pytorch_lightning 1.9, loops/optimization/optimizer_loop.py
    (`_run_optimization` calls `toggle_optimizer`).
    """
    if not _is_lightning(engine, cls):
        return False
    methods = [method for c in engine.index.order(cls) for method in c.methods.values()]
    return any(
        "toggle_optimizer" in m.mentions or (m.name == "training_step" and any(p.name == _TURN for p in m.parameters))
        for m in methods
    )


def _is_lightning(engine: Engine, cls: Class) -> bool:
    return any(name.endswith("LightningModule") for name in engine.index.libraries(cls))


def is_in_step_of_lightning(engine: Engine, sites: list[Op]) -> bool:
    """Do calls, innermost first, begin in a step of a LightningModule?"""
    first = _of_lightning(engine, sites)
    return first is not None and is_step(engine, first)


def repeats_in_lightning(engine: Engine, sites: list[Op]) -> bool:
    """Do calls, innermost first, begin in a method of a LightningModule that runs for every batch?"""
    first = _of_lightning(engine, sites)
    return first is not None and first.name != "forward" and is_called_for_batches(engine, first)


def _of_lightning(engine: Engine, sites: list[Op]) -> Function | None:
    """Return the method of a LightningModule in which calls begin, innermost first."""
    first = sites[-1].owner if sites else None
    return first if first is not None and first.cls is not None and _is_lightning(engine, first.cls) else None


def is_called_for_batches(engine: Engine, function: Function) -> bool:
    """Is it a network's forward, or a step that a framework runs for every batch?"""
    cls = function.cls
    if cls is None:
        return False
    if function.name == "forward":
        return engine.index.is_network(cls)
    overrides, bases = engine.index.contracts.overrides, engine.index.libraries(cls)
    terms = (
        ("called-with-gradients", "called-without-gradients", "inference") if function.name.endswith("_step") else ()
    )
    return any(overrides(term, function.name, bases) for term in ("called-per-batch", *terms))


def is_step(engine: Engine, function: Function) -> bool:
    """Does a framework differentiate what this method returns?"""
    return function.cls is not None and engine.index.contracts.overrides(
        "called-with-gradients", function.name, engine.index.libraries(function.cls)
    )


def makers_of_optimizers(engine: Engine, cls: Class, step: Function) -> list[str]:
    """Return the methods of a class that make the optimizers with which a framework trains what a step returns.

    None are known where an optimizer may be given more parameters later.
    """
    methods = [method for c in engine.index.order(cls) for method in c.methods.values()]
    if not is_step(engine, step) or any("add_param_group" in method.mentions for method in methods):
        return []
    names = engine.index.contracts.names("returns-optimizers")
    known = [name for name in sorted(names.last_parts) if engine.index.method(cls, name) is not None]
    return [name for name in known if names.has_method(name, engine.index.libraries(cls))]


def leaves_training(engine: Engine, cls: Class) -> bool:
    """Does a class leave it to a framework to make the optimizer, and to step it?"""
    trains, bases = engine.index.contracts.names("trains"), engine.index.libraries(cls)
    methods = {name for name in trains.last_parts if trains.has_method(name, bases)}
    own = [method for c in engine.index.order(cls) for method in c.methods.values()]
    return bool(methods) and not any(m.name in methods or "step" in m.mentions for m in own)


def predicts(engine: Engine, function: Function) -> bool:
    """Does it give results to users, by its name: `predict`, `_embed_texts`?"""
    return _words(function)[0] in engine.index.contracts.names("infers").plain


def evaluates(engine: Engine, function: Function) -> bool:
    """Does it evaluate, by its name: `evaluate`, `validate_one_epoch`, `run_test`?"""
    words = _words(function)
    return not engine.index.contracts.names("evaluates").plain.isdisjoint(words[:2]) and "loss" not in words


def is_test(engine: Engine, function: Function) -> bool:
    """Is it a test, or in a file of tests, by the conventions of pytest and unittest?"""
    if function.cls is not None and is_test_case(engine, function.cls):
        return True
    *folders, file = function.unit.name.split(".")
    if file == "conftest" or "tests" in folders:
        return True
    named = file.startswith("test_") or file.endswith("_test") or "pytest" in function.unit.imports.values()
    if named and _is_collected(engine, function.unit):
        return True
    return function.name.split("_")[0] == "test" and not function.parameters


def _is_collected(engine: Engine, unit: Unit) -> bool:
    """Does a file have tests, by pytest's conventions, so that it is no program?"""
    return any(f.name.startswith("test_") and f.parent is unit.module for f in unit.functions) or any(
        cls.name.startswith("Test") or is_test_case(engine, cls) for cls in unit.classes
    )


def is_test_case(engine: Engine, cls: Class) -> bool:
    """Is it a class of tests, by the conventions of unittest?"""
    return any(name.endswith("TestCase") for name in engine.index.libraries(cls))

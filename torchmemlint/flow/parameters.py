"""What only callers tell: what a parameter is, and what becomes of a result."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow import construction, given
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import Instance, Mode, Tensor, Unknown, Value


def lasting_object(it: Interpreter, owner: Value) -> Instance | None:
    """The object of a project class that all callers give for a parameter, the same one in call after call.

    To be asked where a tensor goes into the parameter: other files are looked at.
    """
    if not isinstance(owner, Unknown) or owner.made is None or not isinstance(owner.made.site.node, cst.Param):
        return None
    function = it.frame.function
    if function is None or it.callers is None or not it.follows_imports or it.state.mode is Mode.OFF:
        return None
    if not it.recording or function.program is not it.main:
        return None
    name = owner.made.site.node.name.value
    key = (function, name)
    if key not in it.given:
        cls = given.lasting_class(it.callers, function, name)
        it.given[key] = _made(it, key, cls) if cls is not None and not cls.is_module else None
    found = it.given[key]
    if found is not None:
        for slot, value in it.lasting_heap.items():
            if slot[0] == found.oid:
                it.state.heap.setdefault(slot, value)
    return found


def _made(it: Interpreter, key: tuple[Function, str], cls: ClassInfo) -> Instance:
    """The object, with what its constructor leaves on it."""
    if cls.program.source.path == it.main.source.path:
        cls = it.main.find_class(cls.name) or cls
    made = Instance(it.oid("given", *key), cls)
    it.foreign_objects.add(made.oid)
    constructor = cls.method("__init__")
    if constructor is None or constructor.node.params.star_arg is not cst.MaybeSentinel.DEFAULT:
        return made
    with construction.constructed(it, made, constructor):
        it.remember(it.state.heap, everything=False)
    return made


def returned(it: Interpreter, expression: cst.BaseExpression, value: Value, index: int) -> None:
    """A value that has also been put where it outlives the call is returned: do callers differentiate it?"""
    function = it.frame.function
    if not isinstance(value, Unknown | Tensor) or it.callers is None or value.made not in it.outliving:
        return
    if function is None or it.main.is_test or it.state.mode is Mode.OFF:
        return
    key = (function, index)
    if key not in it.differentiated_after:
        it.differentiated_after[key] = given.differentiating(it.callers, function, index)
    call = it.differentiated_after[key]
    if call is None:
        return
    site = it.site(expression)
    it.prove(replace(value, origins=frozenset()), site)
    it.facts.given_to_backward[site] = call
    for origin in value.origins:
        it.facts.spent.setdefault(origin, []).append((site, it.frame.loops))

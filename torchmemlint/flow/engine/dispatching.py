"""`functools.singledispatch`: which of the functions that are registered a call may run."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Code, Object
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.ir.ops import Function

_DISPATCHING = "singledispatch"
_TYPES = {Kind.LIST: "list", Kind.TUPLE: "tuple", Kind.DICT: "dict", Kind.TENSOR: "Tensor"}


def dispatched(callee: Value, arguments: Arguments) -> Value:
    """Return what a call may run in place of a function that chooses by the type of its first argument."""
    only = next(iter(callee.refs)) if len(callee.refs) == 1 else None
    if type(only) is not Code or not only.function.is_decorated(_DISPATCHING):
        return callee
    given = arguments.positional[0] if arguments.positional else None
    found = _implementations(only.function, _types(given) if given is not None else set())
    return callee._replace(refs=frozenset(Code.of(function, only.frame) for function in found))


def _types(given: Value) -> set[str]:
    """Return the types that a value is of one of; none if it may be something else."""
    kinds = {_TYPES.get(r.kind, "") if type(r) is Object else "" for r in given.refs}
    if not kinds and given.graph:
        kinds = {"Tensor"}
    return set() if given.open or "" in kinds else kinds


def _implementations(function: Function, types: set[str]) -> list[Function]:
    """Return what is registered, and the function itself unless that leaves all that it may be given to others."""
    name = f"{function.name}.register"
    registered = [f for f in function.unit.functions if any(d.name == name for d in f.decorators)]
    kinds = {f: f.parameters[0].annotation.rpartition(".")[2] if f.parameters else "" for f in registered}
    if types:
        chosen = [f for f, kind in kinds.items() if kind in types or not kind]
        return chosen if types <= set(kinds.values()) else [function, *chosen]
    return registered if {"", "Tensor"}.intersection(kinds.values()) else [function, *registered]

"""Sampling: whether there is work for a worker in making an item of a data set.

Work has to be seen: a data set of the project whose `__getitem__` opens, decodes or transforms, one of a library that
reads files, a transform that is handed over. What is out of view says nothing, nor does what lies in memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.flow.domain.heap import visible
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Behind, Object, Ref
from torchmemlint.flow.domain.values import NOTHING, Value, join_all
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.moving import places_on_device, reached
from torchmemlint.flow.fact.samples import is_iterable
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.defuse import DefUse, definitions
from torchmemlint.flow.ir.ops import Class, Function
from torchmemlint.flow.ir.places import Spread
from torchmemlint.knowledge import data_sets as known

_DEPTH = 6
_CALLS = ops.Call | ops.CallMethod


class Sampling:
    """What is seen of data sets in some runs."""

    def __init__(self, engine: Engine, runs: Iterable[Run]) -> None:
        self._engine, self._runs = engine, list(runs)

    def works(self, value: Value | None, depth: int = 0) -> bool:
        """Is work seen in an item of what a value may be?"""
        return value is not None and depth < _DEPTH and any(self._works(r, depth + 1) for r in value.each())

    def is_iterable(self, value: Value | None) -> bool:
        """May it be an iterable data set of the project?"""
        instances = [r for r in (value.refs if value is not None else ()) if type(r) is Object]
        return any(r.kind is Kind.INSTANCE and is_iterable(self._engine.index, r.about.cls) for r in instances)

    def _held(self, holder: Ref, key: object) -> Value:
        return join_all(held for run in self._runs if (held := run.state.heap.get(holder, key)) is not None)  # type: ignore[arg-type]

    def _works(self, data: Ref, depth: int) -> bool:
        if type(data) is Behind:
            held = self._held(data.base, data.key)
            return self.works(held, depth) if held is not NOTHING else self._works(data.base, depth)
        if type(data) is not Object:
            return False
        if data.kind is Kind.INSTANCE:
            return self._of_class(data, data.about.cls, depth)
        if data.kind in (Kind.LIST, Kind.TUPLE, Kind.DICT):
            return False
        about = str(data.about)
        if about in known.PARTS:
            given = self._held(data, "dataset")
            boxes = [r for r in given.refs if type(r) is Object and r.kind in (Kind.LIST, Kind.TUPLE)]
            inner = [v for run in self._runs for box in boxes for _, v in visible(run.state.heap.edges(box))]
            return self.works(join_all([given, *inner]), depth)
        return about.startswith(known.READING) or (data.kind is Kind.OPAQUE and _is_given_transform(data.site))

    def _of_class(self, data: Object, cls: Class, depth: int) -> bool:
        """Is there work in an item of an object of the project's?"""
        index = self._engine.index
        if is_iterable(index, cls) or self._has_helpers(cls):
            return False
        item = index.method(cls, "__getitem__")
        if item is None:
            return any(name.startswith(known.BASES) for name in index.libraries(cls))
        if any(map(places_on_device, reached([item]))):
            return False
        if not self._only_indexes(data, cls, item, depth):
            return True
        return any(self.works(self._held(data, name), depth) for name in sorted(_looked_up(item)))

    def _has_helpers(self, cls: Class) -> bool:
        """Does it prepare items ahead, by threads or processes of its own?"""
        methods = [m for c in self._engine.index.order(cls) for m in c.methods.values()]
        called = (definitions(m).called(op) for m in methods for op in operations(m.body) if isinstance(op, _CALLS))
        return any(name.startswith(known.HELPERS) for name in called)

    def _only_indexes(self, data: Object, cls: Class, method: Function, depth: int) -> bool:
        """Does a method no more than to take something out of what the object holds?"""
        if depth > _DEPTH:
            return False
        for function in (method, *method.nested):
            flow = definitions(function)
            for op in operations(function.body):
                if isinstance(op, _CALLS) and not self._is_free(data, cls, flow, op, depth):
                    return False
        return True

    def _is_free(self, data: Object, cls: Class, flow: DefUse, op: ops.Call | ops.CallMethod, depth: int) -> bool:
        name = flow.called(op)
        if name in known.TRIVIAL or name.endswith(known.EXCEPTIONS):
            return True
        if isinstance(op, ops.Call):
            return type(flow.made.get(op.callee)) is ops.Define  # a generator: its body is looked at by itself
        if flow.is_self(op.base):
            held = self._held(data, op.name)
            if held.known and held.constant is None:
                return True  # `self.transform(x)` of an object without one
            method = self._engine.index.method(cls, op.name)
            return method is not None and self._only_indexes(data, cls, method, depth + 1)
        if op.name == "decode":
            given = [flow.made.get(argument.temp) for argument in op.arguments]
            return all(type(made) is ops.Constant for made in given)
        return op.name in known.CONVERTING and not name


def _looked_up(item: Function) -> set[str]:
    """Return the attributes whose elements a method takes out."""
    flow = definitions(item)
    found = set()
    for op in operations(item.body):
        made = flow.made.get(op.base) if type(op) is ops.GetItem else None
        if type(made) is ops.GetAttribute and flow.is_self(made.base):
            found.add(made.name)
    return found


def _is_given_transform(site: object) -> bool:
    """Is a transform handed to a data set that is out of view?"""
    return isinstance(site, _CALLS) and any(
        argument.spread is Spread.NAMED
        and ("transform" in argument.name or "augment" in argument.name)
        and not (type(given := definitions(site.owner).made.get(argument.temp)) is ops.Constant and not given.value)
        for argument in site.arguments
    )

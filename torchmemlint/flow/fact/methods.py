"""Methods: what a method gives that is called on a tensor which only shows later to be one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torchmemlint.closure import closure
from torchmemlint.flow.domain.effects import InvokeMethod
from torchmemlint.flow.domain.refs import Source, first_key, root
from torchmemlint.knowledge import operations
from torchmemlint.knowledge.operations import Operation


class Methods:
    """The calls of methods on what is not known. `has_graph` says whether that turned out to be a tensor with one."""

    def __init__(self, has_graph: Callable[[Source], bool]) -> None:
        self._has_graph = has_graph
        self.values: set[Source] = set()  # numbers and the like, if the receiver is a tensor
        self._all: dict[Source, InvokeMethod] = {}
        self._calls: dict[Source, InvokeMethod] = {}  # of those, the ones that tensors have
        self._operations: dict[Source, Operation | None] = {}

    def add(self, call: InvokeMethod) -> None:
        """Note a call."""
        self._all[call.result] = call
        known = operations.method(call.name)
        if known is not None:
            self._calls[call.result] = call
            if known.result == "value":
                self.values.add(call.result)

    def operands(self, results: Iterable[Source]) -> set[Source]:
        """Return some tensors with those that operations made them from."""
        calls = self._calls
        return closure(results, lambda made: map(root, calls[made].receiver.refs) if made in calls else ())

    def passes_on(self, result: Source) -> bool:
        """Is it given by an operation of tensors, or by a method of what such an operation gave?

        That begins no graph. What it is called on may have one, if something else shows that.
        """
        calls = self._all
        given = closure([root(result)], lambda made: map(root, calls[made].receiver.refs) if made in calls else ())
        return not given.isdisjoint(self._calls)

    def operation(self, result: Source) -> Operation | None:
        """Return the operation of torch that gave a result, or the whole that it is a part of; None for others."""
        whole = root(result)
        if whole not in self._calls:
            return None
        if whole not in self._operations:
            self._operations[whole] = None  # where a loop leads back to it
            call = self._calls[whole]
            if any(self._has_graph(r) or self.operation(r) is not None for r in call.receiver.refs):
                self._operations[whole] = operations.method(call.name)
        return self._operations[whole]

    def keeps_graph(self, result: Source) -> bool:
        """Does the operation that gave (a part of) a result pass a graph on to it? So does what is not known."""
        known = self.operation(result)
        if known is None:
            return True
        if isinstance(known.graph, bool):
            return known.graph
        key = first_key(result)
        if type(key) is int and key < len(known.graph):
            return known.graph[key]
        return key != "indices"

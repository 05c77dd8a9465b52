"""Methods: what they give that are called on something which was not seen, and what they show of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from torchmemlint.closure import closure
from torchmemlint.flow.domain.effects import Invoke, InvokeMethod, Read
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.provenance import Numbers
from torchmemlint.flow.domain.refs import NO_PATH, Bare, Behind, Ref, Result, Source, first_key, root
from torchmemlint.flow.fact.logs import Run
from torchmemlint.knowledge import operations
from torchmemlint.knowledge.contracts import Contracts
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

    def forwards(self, tensors: set[Source], detached: set[Source], contracts: Contracts) -> Iterator[Ref]:
        """Yield networks, and their methods, as names show that mean to run one: `run_with_cache`.

        Others, such as `encode_image`, a tokenizer may have, too: they show it where the result is detached.
        """
        names = contracts.names("forward-methods")
        cut, given = self.operands(detached), self.operands(map(root, tensors))
        for result, call in self._all.items():
            is_one = call.name in names.last_parts if result in cut else result in given and call.name in names.methods
            if is_one:
                yield from call.receiver.refs
                yield from (Behind.of(r, call.name) for r in call.receiver.refs if r.depth < NO_PATH)

    def passes_on(self, result: Source) -> bool:
        """Is it given by an operation of tensors, or by a method of what such an operation gave?

        That begins no graph. What it is called on may have one, if something else shows that.
        """
        calls = self._all
        given = closure([root(result)], lambda made: map(root, calls[made].receiver.refs) if made in calls else ())
        return not given.isdisjoint(self._calls)

    def may_run(self, call: Invoke | InvokeMethod, made: set[Source], run: Run) -> bool:
        """May a call run a network? A method may with inputs, of no tensor, and of what lasts: no call gave it.

        `made` are calls that begin no pass. Its own methods a run follows, or was cut before.
        """
        if isinstance(call, Invoke):
            return True
        if call.result in made or self.passes_on(call.result) or run.receiver in call.receiver.refs:
            return False
        return all(type(root(r)) is not Result or root(r) in run.lasting() for r in call.receiver.refs)

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


def worlds(run: Run) -> set[Ref]:
    """Return what is both reset and stepped with an action: such a world gives observations, and no graph."""
    calls = [call for call in run.unseen() if isinstance(call, InvokeMethod)]
    stepped = {ref for call in calls if call.name == "step" and call.arguments.all() for ref in call.receiver.refs}
    return stepped & {ref for call in calls if call.name == "reset" for ref in call.receiver.refs}


def stripped(run: Run) -> set[Source]:
    """Return what arrays are made of after their graph was cut: what has none need not be detached for that."""
    reads = [read for read in run.effects(Read) if read.reading is Reading.ARRAY]
    bare = {source for read in reads for source in read.sources if type(source) is Bare}
    return {root(source) for source in run.provenance.ancestors(bare, numbers=Numbers.COPIED)}

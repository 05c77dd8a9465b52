"""Parts: what a backward pass shows of what is called, for the other calls of it.

Whether an argument or an attribute is a network, shows what differentiates its results; others only read them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.refs import Leaf, Ref, Source, root
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Call, CallMethod, Class

_Parts = frozenset[Hashable]  # what is called, by all that it is known by
_Chains = dict[Hashable, set[_Parts]]  # what begins a graph, with all that passes it on to a backward pass


def shared(engine: Engine, done: list[tuple[Run, Evidence]]) -> list[tuple[Run, Evidence]]:
    """Return some runs, each with what it shows once it is known what all of them show of the same parts."""
    chains: _Chains = {}
    for run, evidence in done:
        if not evidence.proven:
            continue
        found = _found(engine, run, evidence)
        after = [(run.provenance.ancestors((s,)), found.get(root(s), _Parts())) for s in evidence.passed]
        for begun in (s for s in evidence.proven if not _is_given_one(run, evidence, s)):
            further = {parts for above, parts in after if begun in above}
            for part in found.get(root(begun), ()):
                chains.setdefault(part, set()).update(further)
    return [(run, _with(engine, run, evidence, chains)) for run, evidence in done] if chains else done


def _with(engine: Engine, run: Run, evidence: Evidence, chains: _Chains) -> Evidence:
    """A part is a network where what it gives goes all the same way: the first on that may only prepare a batch."""
    found = _found(engine, run, evidence)
    known, networks, passing = {root(s) for s in evidence.proven}, set[Ref](), set[Ref]()
    for result in found.keys() - known:
        for further in (chains[part] for part in found[result] if part in chains):
            after = [s for s in found if s is not result and any(not found[s].isdisjoint(parts) for parts in further)]
            after = [s for s in after if result in run.provenance.ancestors((s,))]
            if all(any(not found[s].isdisjoint(parts) for s in after) for parts in further):
                networks |= evidence.callees[result]
                passing.update(*(evidence.callees[s] for s in after))
    networks = {callee for callee in networks - evidence.networks if callee.symbolic}
    return Evidence(engine, run, networks, passing) if networks else evidence


def _is_given_one(run: Run, evidence: Evidence, result: Source) -> bool:
    """Is what gave a result given a tensor that requires gradients? Then it need not be a network."""
    above = run.provenance.ancestors((result,))
    return any(type(source) is Leaf for source in above) or not above.isdisjoint(evidence.with_gradients)


def _found(engine: Engine, run: Run, evidence: Evidence) -> dict[Source, _Parts]:
    """Return by what other calls of what gave a result are known, asked for the same.

    Not what a subclass defines: that is no part of the object.
    """
    found: dict[Source, _Parts] = {}
    for call in run.unseen():
        callees = evidence.callees[call.result]
        attribute = _attribute(call)
        if len(callees) == 1 and not (attribute and engine.index.method(*attribute)):
            asked = tuple(_chosen(call))
            found[call.result] = frozenset((part, asked) for part in (*callees, attribute) if part is not None)
    return found


def _chosen(call: fx.Invoke | fx.InvokeMethod) -> Iterator[Hashable]:
    """Yield the arguments that choose what is given: `as_tensor=False`."""
    arguments = call.arguments
    for name, value in (*enumerate(arguments.positional), *sorted(arguments.named.items())):
        if value.known and isinstance(value.constant, bool | str):
            yield name, value.constant


def _attribute(call: fx.Invoke | fx.InvokeMethod) -> tuple[Class, str] | None:
    """Return the attribute, with its class, that a method of this calls by this name."""
    op = next(iter(call.point.chain()), None)
    if not isinstance(op, Call | CallMethod):
        return None
    flow = definitions(op.owner)
    path = flow.own_path(op.callee if isinstance(op, Call) else op.base)
    if path is None or flow.cls is None:
        return None
    return flow.cls, f"{path}.{op.name}".removeprefix(".") if isinstance(op, CallMethod) else path

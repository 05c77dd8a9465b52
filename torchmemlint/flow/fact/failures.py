"""Failures: what runs, or is kept, while an exception holds the frames of what failed, with all tensors in them.

Python holds an exception until its clause is left, whatever is deleted there. Source: the reference of `try`, and
PyTorch's FAQ: "My out of memory exception handler can't allocate memory".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.refs import Ref
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.clauses import Clause, clauses
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.ir.ops import Function, Op
from torchmemlint.immutable import immutable


@immutable()
class Failure:
    """What runs while an exception lives, or keeps it beyond its clause, and what may have failed."""

    at: Op
    failed: Op
    keeps: bool
    doubts: frozenset[Doubt]


class Failures:
    """The failures of some runs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._clauses: dict[Function, list[Clause]] = {}

    def of(self, run: Run, evidence: Evidence) -> Iterator[Failure]:
        """Yield the failures of one run."""
        calls = list(_computing(run, evidence))
        met = {op.owner for _, chain, _ in calls for op in chain}
        for function in sorted(met, key=lambda function: function.span):
            for clause in self._of(function):
                yield from _found(clause, calls, evidence.cut)

    def _of(self, function: Function) -> list[Clause]:
        if function not in self._clauses:
            self._clauses[function] = list(clauses(self._engine.index, function))
        return self._clauses[function]


_Call = tuple[bool, list[Op], Event]  # is it a pass, or something unknown, and the operations that lead to it


def _computing(run: Run, evidence: Evidence) -> Iterator[_Call]:
    for event in (*run.of(fx.Forward), *run.of(fx.Ran), *run.of(fx.Differentiate)):
        yield True, event.effect.point.chain(), event
    for event, call in run.calls():
        callees = evidence.callees.get(call.result, set())
        is_pass = not callees.isdisjoint(evidence.networks) or evidence.is_pass(call.result)
        yield is_pass, call.point.chain(), event


def _found(clause: Clause, calls: Iterable[_Call], cut: frozenset[Doubt]) -> Iterator[Failure]:
    body = [(is_pass, op, event) for is_pass, chain, event in calls for op in chain if op in clause.body]
    failed = [(op, event) for is_pass, op, event in body if is_pass]
    known = bool(failed)
    if not failed and len({op for _, op, _ in body}) == 1 and clause.out_of_memory:
        failed = [(op, event) for _, op, event in body]  # nothing else can have failed so
    if not failed:
        return
    first = min((op for op, _ in failed), key=lambda op: op.span)
    again = {callee for _, event in failed for callee in _callees(event)}
    retried = {
        op
        for is_pass, chain, event in calls
        for op in chain
        if op in clause.out_of_memory and (is_pass or not again.isdisjoint(_callees(event)))
    }
    if retried and not clause.on_host:
        yield Failure(min(retried, key=lambda op: op.span), first, False, cut)
    if known or clause.out_of_memory:
        yield from (Failure(op, first, True, cut) for op in clause.keeping)


def _callees(event: Event) -> set[tuple[Ref, str]]:
    """Return what is called there, if that is not known."""
    effect = event.effect
    if isinstance(effect, fx.Invoke):
        return {(r, "") for r in effect.callee.refs if effect.arguments.all()}
    if isinstance(effect, fx.InvokeMethod):
        return {(r, effect.name) for r in effect.receiver.refs if effect.arguments.all()}
    return set()

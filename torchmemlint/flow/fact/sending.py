"""Sending: tensors of an accelerator that are put into a queue between processes.

Their memory belongs to the process that puts them there, and stays until the other one has let go of it. Source:
torch's notes on multiprocessing ("Sharing CUDA tensors").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.refs import Object
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.defuse import DefUse, definitions
from torchmemlint.flow.ir.places import Temp
from torchmemlint.flow.ir.reaching import reaching
from torchmemlint.flow.models.workers import QUEUE
from torchmemlint.knowledge import torch_api

_PUTTING = frozenset({"put", "put_nowait"})
_TO_HOST = frozenset({"cpu", "numpy"})
_ALIKE = (torch_api.COPIES | torch_api.CUTS) - _TO_HOST


def sent(places: Places, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
    """Yield the calls that put tensors of an accelerator into queues between processes."""
    for run, evidence in done:
        for event, call in run.calls():
            queues = call.receiver.refs if isinstance(call, fx.InvokeMethod) and call.name in _PUTTING else frozenset()
            if any(type(one) is Object and one.about == QUEUE for one in queues) and call.point.chain():
                moves = {m.point.site: m for m in run.effects(fx.Move) if not (m.to_host or m.device.refs)}
                site = call.point.chain()[0]
                passes = {met.effect.point.site for met in (*run.of(fx.Forward), *run.of(fx.Infer))}
                flow = definitions(site.owner)
                moved = _moved(flow, site, moves, passes) if isinstance(site, ops.CallMethod) else None
                loop = event.loop()
                if moved is not None:
                    yield places.at(
                        call.point,
                        "TML806",
                        evidence.cut,
                        advice=loop is None,
                        loop=places.of(loop) if loop is not None else None,
                        moves=(places.of(moved),),
                    )


def _moved(flow: DefUse, site: ops.CallMethod, moves: Iterable[object], passes: Iterable[object]) -> ops.Op | None:
    """Return what brings to an accelerator what a call is given, a part of it, or what a network made that of."""
    todo: list[Temp] = [argument.temp for argument in site.arguments[:1]]
    known, ran, seen, reached = set(moves), set(passes), set[ops.Op](), reaching(site.owner)
    for temp in todo:
        op = flow.made.get(temp)
        if op in known:
            return op
        match op:
            case ops.Make(entries=entries):
                todo += [entry.temp for entry in entries]
            case ops.Load(name=name) if op not in seen:
                seen.add(op)
                bound = [d.src for d in reached.at.get(op, ()) if isinstance(d, ops.Bind)]
                todo += bound or (flow.bound.get(name.text, ()) if not reached.is_local(name) else ())
            case ops.CallMethod(base=base, name=name) if name in _ALIKE:
                todo.append(base)
            case ops.Call(arguments=given) | ops.CallMethod(arguments=given) if op in ran:
                todo += [argument.temp for argument in given]
            case ops.GetItem(base=base):
                todo.append(base)
    return None

"""Smallness: passes whose graph takes next to nothing of an accelerator's memory, for certain.

A layer that saves nothing but its input; one row of numbers through a network of linear layers; what runs on the host.
What is not known is not small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import reachable
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.provenance import Numbers
from torchmemlint.flow.domain.refs import Bare, Graph, Object, Ref, Source
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.passes import Passes
from torchmemlint.flow.fact.reasons import Pass
from torchmemlint.flow.fact.rows import given_one_row
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Call, Class, Load, Op, Unit
from torchmemlint.knowledge import modules

# Layers that save their input for the backward pass, which is there anyway, and their weights.
_SINGLE = frozenset({"torch.nn.Linear", "torch.nn.Bilinear", "torch.nn.Embedding"})

# Layers that keep a number or two for each unit of a row.
_LINEAR = frozenset({"torch.nn.Linear", "torch.nn.LazyLinear"})
_PLAIN = (
    _LINEAR
    | modules.CONTAINERS
    | frozenset(
        f"torch.nn.{name}"
        for name in "BatchNorm1d CELU Dropout ELU Flatten GELU Hardtanh Identity LayerNorm LeakyReLU LogSoftmax Mish "
        "ModuleDict ModuleList PReLU ParameterList ReLU ReLU6 SELU Sequential SiLU Sigmoid Softmax Softplus Softsign "
        "Tanh Unflatten".split()
    )
)
_WIDENING = frozenset("baddbmm bmm conv1d conv2d conv3d einsum interpolate matmul outer unfold".split())
_MOVING = frozenset("cuda device get_device hpu mps set_default_device set_default_tensor_type to xpu".split())
_MOVING_FRAMEWORKS = frozenset(
    "accelerate catalyst composer deepspeed fastai ignite lightning pytorch_lightning ray sentence_transformers skorch "
    "stable_baselines3 transformers".split()
)


def small(engine: Engine, seen: Iterable[Passes]) -> Iterator[Op]:
    """Yield the calls of networks whose graphs are small, wherever they are known to be."""
    rows: list[Pass] = []
    for passes in seen:
        graphs = _Graphs(engine, passes)
        for one in passes.all:
            if one.reason is None or not one.point.chain():
                continue
            if graphs.is_small(one):
                yield one.point.chain()[0]
            elif graphs.is_of_linear_layers(one) or passes.trains:  # a state beside the batches of training
                rows.append(one)
    yield from given_one_row([one.point.chain() for one in rows])


class _Graphs:
    """The graphs of one run."""

    def __init__(self, engine: Engine, passes: Passes) -> None:
        self._engine, self._index = engine, engine.index
        self._run, self._evidence = passes.run, passes.evidence

    def is_small(self, one: Pass) -> bool:
        """Does it keep next to nothing, or in the host's memory?"""
        return one.source in self._on_host or all(
            type(r) is Object and (r.about in _SINGLE if r.kind is Kind.MODULE else self._stays_on_host(r))
            for r in one.module
        )

    @cached_property
    def _on_host(self) -> set[Source]:
        """What became arrays without being brought to the host: numpy takes no tensor of an accelerator."""
        run = self._run
        arrays = {s for read in run.effects(fx.Read) if read.reading is Reading.ARRAY for s in read.sources}
        there = {s for s in arrays if type(s) is Bare and not s.host}
        if not there:
            return set()
        moved = {s for move in run.effects(fx.Move) if move.to_host for s in move.of.graph}
        return {
            source
            for source in run.provenance.ancestors(there, cut=moved, numbers=Numbers.COPIED)
            if type(source) is Graph and source not in run.provenance.ancestors(moved)
        }

    def _stays_on_host(self, network: Object) -> bool:
        """Is it a class of a script that runs by itself, and speaks of no device in any of its files?"""
        return network.kind is Kind.INSTANCE and network.about.cls.unit in self._files_on_host

    @cached_property
    def _files_on_host(self) -> set[Unit]:
        """The files of such a script."""
        script = self._run.entry.unit
        files = self._engine.imported([script]) if _runs_itself(script) else set()
        return files if all(map(_names_no_device, files)) else set()

    def is_of_linear_layers(self, one: Pass) -> bool:
        """Is its network made of linear layers, activations and the like, with nothing that was given to it?"""
        whole = reachable(self._run.state, one.module)
        parts = {r for r in whole if type(r) is Object and r.kind is Kind.MODULE}
        return any(r.about in _LINEAR for r in parts) and all(map(self._is_plain, whole))

    def _is_plain(self, part: Ref) -> bool:
        if type(part) is Object and part.kind is Kind.MODULE:
            return part.about in _PLAIN
        if type(part) is Object and part.kind is Kind.INSTANCE:
            cls: Class = part.about.cls
            bases = self._index.libraries(cls) - {"object", "abc.ABC"}
            return bases <= {"torch.nn.Module"} and all(
                _WIDENING.isdisjoint(f.mentions) for f in self._index.forward(cls)
            )
        return part not in self._evidence.called


def _names_no_device(unit: Unit) -> bool:
    """Does a file name no device, and no framework that may move what it is given?"""
    frameworks = {qualified.split(".")[0] for qualified in unit.imports.values()}
    return _MOVING.isdisjoint(unit.module.mentions) and frameworks.isdisjoint(_MOVING_FRAMEWORKS)


def _runs_itself(unit: Unit) -> bool:
    """Does a file go on to call what it defines, as scripts and notebooks do?"""
    if "__name__" in unit.module.mentions:
        return True
    names = definitions(unit.module)
    for op in operations(unit.module.body):
        callee = names.made.get(op.callee) if isinstance(op, Call) else None
        if isinstance(callee, Load) and callee.name.text in unit.once:
            return True
    return False

"""Smallness: passes whose graph takes next to nothing of an accelerator's memory, for certain.

A layer that saves nothing but its input; one row of numbers through a network of linear layers; what runs on the host.
What is not known is not small.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from torchmemlint.amounts import Amount, largest
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import reachable
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.provenance import Numbers as Means
from torchmemlint.flow.domain.refs import Bare, Graph, Object, Ref, Source
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.drawing import drawn_rows
from torchmemlint.flow.fact.numbers import Numbers, argument
from torchmemlint.flow.fact.passes import Passes
from torchmemlint.flow.fact.reasons import Pass
from torchmemlint.flow.fact.rows import given_one_row
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Call, CallMethod, Class, Load, Op, Unit
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


_OF_A_ROW = 3 * 4  # bytes for each unit of a linear layer: what it gives, and two float32 tensors made of that


def small(engine: Engine, seen: Iterable[Passes]) -> dict[Op, Amount | None]:
    """Return the calls of networks whose graphs are small, wherever they are known to be, and how small."""
    found: dict[Op, Amount | None] = {}
    for passes in seen:
        graphs = _Graphs(engine, passes)
        for one in passes.all:
            chain = one.point.chain()
            if one.reason is None or not chain:
                continue
            if graphs.is_small(one):
                found.setdefault(chain[0], None)
                continue
            linear, rows = graphs.linear_layers(one), None
            is_state = bool(linear or passes.trains) and any(given_one_row([chain]))  # beside batches of training
            if linear:
                others = engine.imported([chain[0].owner.unit])
                rows = 1 if is_state else drawn_rows(chain[0], chain[1:], others)
            amount = graphs.of_rows(linear, rows) if rows else None
            if not is_state and (amount is None or amount.is_much):
                continue
            found[chain[0]] = largest([found[chain[0]], amount]) if chain[0] in found else amount
    return found


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
            for source in run.provenance.ancestors(there, cut=moved, numbers=Means.COPIED)
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

    def linear_layers(self, one: Pass) -> list[Object]:
        """Return the linear layers of a network of these, activations and the like, to which nothing was given."""
        whole = reachable(self._run.state, one.module)
        linear = [r for r in whole if type(r) is Object and r.kind is Kind.MODULE and r.about in _LINEAR]
        return linear if all(map(self._is_plain, whole)) else []

    def of_rows(self, layers: list[Object], rows: int) -> Amount | None:
        """Return what linear layers keep of some rows, by their widths; one that is not known counts as the largest."""
        widths = list(map(self._width, layers))
        known = [width for width in widths if width is not None]
        whole = sum(known) + max(known, default=0) * widths.count(None)
        return Amount(_OF_A_ROW * rows * whole, f"batch of {rows}" if rows > 1 else "") if known else None

    def _width(self, layer: Object) -> int | None:
        made = layer.site
        if not isinstance(made, Call | CallMethod):
            return None
        numbers = Numbers(made.owner, calls=layer.context, others=self._engine.imported([made.owner.unit]))
        return numbers.at_most(argument(made, 1, "out_features"))

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

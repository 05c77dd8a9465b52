"""Weights: how many bytes the parameters of a network have, as far as its layers show."""

from __future__ import annotations

from typing import NamedTuple

from torchmemlint.amounts import FLOAT, ONCE
from torchmemlint.flow.domain.heap import State, reachable
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Object, is_outside
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.numbers import Numbers, argument
from torchmemlint.flow.fact.shapes import single
from torchmemlint.flow.ir.blocks import layout_of
from torchmemlint.flow.ir.ops import Call, CallMethod, Op

_OF_TORCH = "torch.nn."
_PLAIN = ("Linear", "LazyLinear", "Bilinear", "Embedding", "EmbeddingBag")
_CONVOLUTIONS = {f"{kind}{d}d": d for kind in ("Conv", "ConvTranspose", "LazyConv") for d in (1, 2, 3)}
_GATES = {"LSTM": 4, "LSTMCell": 4, "GRU": 3, "GRUCell": 3, "RNN": 1, "RNNCell": 1}
_ATTENTIONS = {  # how often the width, squared
    "MultiheadAttention": 4,
    "TransformerEncoderLayer": 8,
    "TransformerDecoderLayer": 12,
    "Transformer": 60,
}


class Weights(NamedTuple):
    """The bytes that a network has at least, and whether it may have more."""

    nbytes: int
    more: bool

    @property
    def are_small(self) -> bool:
        """Is it known that a copy which is soon dropped is not worth a change?"""
        return self.nbytes < ONCE and not self.more


def weights(engine: Engine, state: State, networks: Value) -> Weights:
    """Return how large a network is.

    A width that is not known counts as the other one of its layer. A layer without a known width counts as nothing, and
    the layers that a loop makes as one. Networks of libraries are large.
    """
    nbytes, more, some = 0, networks.open, False
    for part in reachable(state, networks.refs):
        if type(part) is not Object or part.kind is not Kind.MODULE:
            more |= is_outside(part)
            continue
        owner, _, name = str(part.about).partition(":")[0].rpartition(".")
        if f"{owner}.".startswith(_OF_TORCH):
            own = _numbers(engine, part, name)
            nbytes, some = nbytes + FLOAT * (own or 0), True
            more |= own is None or any(map(_is_repeated, (part.site, *part.context)))
        elif not owner.startswith("torch."):
            return Weights(ONCE, more=True)
    return Weights(nbytes, more or not some)


def _is_repeated(op: object) -> bool:
    return isinstance(op, Op) and any(True for _ in layout_of(op.owner).loops(op))


def _numbers(engine: Engine, layer: Object, name: str) -> int | None:
    """Return how many numbers the weights of one layer of torch have; None where no width is known."""
    made = layer.site
    if not isinstance(made, Call | CallMethod):
        return None
    numbers = Numbers(made.owner, calls=layer.context, others=engine.imported([made.owner.unit]))

    def given(position: int, *names: str) -> int | None:
        return single(numbers, argument(made, position, *names))

    if name in _CONVOLUTIONS:
        matrix = _matrix(given(0, "in_channels"), given(1, "out_channels"))
        window = (given(2, "kernel_size") or 1) ** _CONVOLUTIONS[name]
        return matrix and matrix * window // max(given(-1, "groups") or 1, 1)
    if name in _PLAIN:
        return _matrix(given(0, "in_features", "num_embeddings"), given(1, "out_features", "embedding_dim"))
    if name in _GATES:
        width, hidden = given(0, "input_size"), given(1, "hidden_size")
        first, others = _matrix(width, hidden), (2 * (given(2, "num_layers") or 1) - 1) * (hidden or 0) ** 2
        return first and _GATES[name] * (first + others)
    if name in _ATTENTIONS:
        width = given(0, "embed_dim", "d_model")
        return width and _ATTENTIONS[name] * width**2
    return 0


def _matrix(one: int | None, other: int | None) -> int | None:
    """Return the numbers of a matrix, of whose sizes one may be unknown."""
    return (one or other or 0) * (other or one or 0) or None

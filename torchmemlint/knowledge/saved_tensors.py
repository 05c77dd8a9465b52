"""Which of their own inputs and outputs operations keep for backward.

Overwriting a kept tensor makes backward raise. Read from `torch.json`, which is measured operation by operation; an
operation counts as keeping a tensor where every sample did, and as leaving it free where none did. Functions and
methods go by their last names, and where two of one name differ, nothing is said.
`tests/knowledge/test_saved_tensors.py` overwrites them and looks whether backward raises.

By hand: recurrent networks and attention, which keep their outputs on the GPU though not all of them do so on the CPU
where this was measured; what may return a view of its input in cases that the samples lack; and operators, which go by
their signs.
"""

from __future__ import annotations

from collections.abc import Callable

from torchmemlint.knowledge import operations
from torchmemlint.knowledge.operations import Operation

_RECURRENT = frozenset({"rnn", "transformer"})  # kinds of layers
_KEPT_ON_GPU = frozenset("GRU LSTM RNN MultiheadAttention scaled_dot_product_attention".split())
_MAY_ALIAS = frozenset(  # einsum of a mere permutation, a product of one matrix, dropout out of training
    "einsum tensordot multi_dot chain_matmul dropout native_dropout feature_dropout feature_alpha_dropout "
    "alpha_dropout".split()
)
_MOSTLY_NOTHING = frozenset(  # padding and interpolation in their usual modes, dropout in training
    "pad interpolate Upsample UpsamplingBilinear2d Dropout Dropout2d dropout dropout2d".split()
)
OPERATORS = frozenset("+ - * / @".split())
PRODUCTS = frozenset("* / mul div".split())  # they keep an operand where the other one has a graph


def _layers(chosen: Callable[[Operation], bool]) -> frozenset[str]:
    return frozenset(name for name, layer in operations.layers().items() if chosen(layer))


def _functions(chosen: Callable[[Operation], bool]) -> frozenset[str]:
    return frozenset(name for name, known in operations.by_last_name().items() if all(map(chosen, known)))


def _gives_graph(known: Operation) -> bool:
    return known.result in ("tensor", "varies") and (known.graph if isinstance(known.graph, bool) else known.graph[0])


def _leaves_output(known: Operation) -> bool:
    aliases = known.view or known.inplace == "argument"  # in place, the output is the input, and often kept
    return _gives_graph(known) and not aliases and "output" not in known.saves


def _keeps_output(known: Operation) -> bool:
    return _gives_graph(known) and known.unary and "output" in known.keeps


def _keeps_input(known: Operation) -> bool:
    return _gives_graph(known) and known.unary and "input" in known.keeps and not known.keeps_input_for_parameters


def _keeps_no_input(known: Operation) -> bool:
    return _gives_graph(known) and not known.view and known.saves.isdisjoint(("input", "operand"))


# Layers that make a fresh output and do not keep it: it may be overwritten.
FREE_OUTPUT_LAYERS = (
    _layers(lambda layer: _leaves_output(layer) and layer.kind not in _RECURRENT) - _KEPT_ON_GPU - _MAY_ALIAS
)
# The same of functions, tensor methods and operators.
FREE_OUTPUT_FUNCTIONS = (_functions(_leaves_output) - _KEPT_ON_GPU - _MAY_ALIAS) | OPERATORS

# Layers and functions that keep their own output.
OUTPUT_KEPT = _layers(_keeps_output) | _functions(_keeps_output) | _KEPT_ON_GPU

# Layers with weights: they keep their input as long as the weights are trained, whether or not it has a graph.
INPUT_KEPT_FOR_WEIGHTS = _layers(lambda layer: layer.keeps_input_for_parameters)
# These keep their input where it has a graph.
INPUT_KEPT = _layers(_keeps_input) | _functions(_keeps_input)
# These keep an operand where the other one has a graph.
OPERANDS_KEPT = frozenset("* @ mul matmul bmm mm multiply".split())

SCALED = "scaled"  # multiplied or divided by what has no graph

# What follows an activation and keeps nothing of it.
KEEPS_NOTHING = (
    (_layers(_keeps_no_input) | _functions(_keeps_no_input)) - _KEPT_ON_GPU
    | _MOSTLY_NOTHING
    | frozenset({SCALED, "+", "-"})
)


def short(producer: str) -> str:
    """The last part of a qualified name, without the mark of an in-place form."""
    return producer.rpartition(".")[2].rstrip("_")


def output_is_free(producer: str) -> bool:
    """Does the operation make a fresh output that its backward does not need?"""
    if producer.endswith("_"):
        return False  # in place: the output is the input
    name = short(producer)
    return name in FREE_OUTPUT_FUNCTIONS or (producer.startswith("torch.nn.") and name in FREE_OUTPUT_LAYERS)


def keeps_nothing(name: str) -> bool:
    """Does the operation keep nothing of its input?"""
    return short(name) in KEEPS_NOTHING


def output_is_kept(producer: str) -> bool:
    """Does the operation's backward need the operation's own output?"""
    return short(producer) in OUTPUT_KEPT

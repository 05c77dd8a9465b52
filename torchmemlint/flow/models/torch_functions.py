"""Functions of torch by their qualified names: what the generated data says, and the few that are special."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Evidence, Use
from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import Reading, Remark
from torchmemlint.flow.domain.memory import computed, differentiate, discrete, sources_of
from torchmemlint.flow.domain.refs import Bare, Leaf, Source
from torchmemlint.flow.domain.values import PLAIN, Value, join, one_tensor, with_graph
from torchmemlint.flow.models import containers, files, gradients, guards, tensors
from torchmemlint.knowledge import autograd, checkpoints, operations, torch_api

Model = Callable[[CallSite], Value]

_FROM_ARRAYS = frozenset({"from_numpy"})  # of a tensor with a graph they would raise
_INITIALISERS = "torch.nn.init."
_OF_CHECKPOINTS = autograd.names("checkpoint-options") | autograd.names("checkpoint-options-not-reentrant")
PACKED = "packed"  # sequences of different lengths in one tensor


def call(site: CallSite, qualified: str) -> Value | None:
    """Return the value of a function of torch; None where it is not one that computes on tensors."""
    if qualified.startswith(_INITIALISERS) and not qualified.endswith(".calculate_gain"):
        return site.value(0, "tensor")  # filled without gradients
    if qualified.startswith(torch_api.NOT_COMPUTING):
        return None
    name = qualified.rpartition(".")[2]
    given = sources_of(site.state, site.arguments.all())
    if name in torch_api.FACTORIES:
        return _created(site, name, given)
    if _takes_tensor_first(qualified, name):
        tensors.note_tensor(site, site.value(0, "input"))
    if name in torch_api.DISCRETE:
        site.frame.read(given, Reading.DISCRETE)
        return discrete(site.frame, site.state, given, site.point)
    if name in torch_api.NOT_OPERATIONS or name in torch_api.METADATA:
        return PLAIN
    if name[:1].isupper() and not qualified.startswith("torch.nn.functional."):
        return None
    if not (qualified.startswith(torch_api.COMPUTING) or qualified.startswith("torch.nn.")):
        return None
    if is_loss(name):
        note_loss(site)
    joins = name in torch_api.JOINERS
    if joins and name not in torch_api.STACKING:
        site.frame.read(given, Reading.JOINED)
    sums = tensors.sums(site.frame, name, sources_of(site.state, site.arguments.all()[1:]))
    result = Value(graph=computed(site.frame, site.state, given, site.point, joins=joins, sums=sums))
    if name.endswith("_") and site.arguments.positional:
        return join(site.arguments.positional[0], result)
    if tensors.ranks(site, name, 1):
        return tensors.with_indices(site, result)
    if tensors.cuts(site, name, 2):
        return tensors.pieces(site, result)
    known = operations.function(qualified)
    return one_tensor(result.graph) if known is not None and known.result == "tensor" else result


_NUMBER_FIRST = frozenset({"pow", "float_power", "remainder", "xlogy"})  # or a tensor


def _takes_tensor_first(qualified: str, name: str) -> bool:
    """Does a function raise if its first argument is no tensor? All that tensors have as methods, or that take one."""
    known = operations.function(qualified)
    if known is None or known.factory or name in _NUMBER_FIRST or name in torch_api.JOINERS:
        return False
    return known.unary or operations.method(name) is not None


_LOSSES = frozenset({"cross_entropy", "kl_div", "binary_cross_entropy", "binary_cross_entropy_with_logits"})


def is_loss(name: str) -> bool:
    """Is this the name of a loss function of torch.nn.functional?"""
    return name.endswith("_loss") or name in _LOSSES


def note_loss(site: CallSite) -> None:
    """Note that the first argument of a loss function is a prediction."""
    for s in site.value(0, "input").graph:
        if s.symbolic:
            site.frame.log(Use(site.point, s, Evidence.LOSS))


def _created(site: CallSite, name: str, given: frozenset[Source]) -> Value:
    """Return a new tensor; `requires_grad=True` makes it a leaf, `torch.tensor(x)` copies a value without its graph."""
    made = containers.made(site, Kind.TENSOR, name)
    tensors.note_device(site)
    if name in ("as_tensor", "asarray") and given:
        return Value(graph=given)
    if given and name not in ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"):
        site.frame.read(given, Reading.ARRAY if name in _FROM_ARRAYS else Reading.NUMBER)
    if site.constant(99, "requires_grad", False) is True:
        return with_graph(made, (Leaf.of(site.point.site, site.point.context),))
    return made


def applied(site: CallSite) -> Value:
    """`F.apply(...)` of a `torch.autograd.Function`: an operation like others; its `forward` records nothing."""
    given = sources_of(site.state, site.arguments.all())
    return Value(graph=computed(site.frame, site.state, given, site.point))


def _gradient(site: CallSite) -> Value:
    """`torch.autograd.grad(outputs, inputs, ..., create_graph)`: a backward pass whose results are values."""
    state = site.state
    gradients.use_of_all(site.frame, state, [site.value(1, "inputs")], site.point)
    ends = sources_of(state, [site.value(1, "inputs")])
    sources = ends | sources_of(state, [site.value(0, "outputs")])
    creates = tensors.run_backward(site, sources, 3, False, ends)
    box = containers.made(site, Kind.LIST, "gradients")
    if creates:
        graph = computed(site.frame, state, sources, site.point)
        for holder in box.each():
            site.state.heap.put(holder, 0, Value(graph=graph))
    return Value(box.refs, open=True)


def _derivative(position: int) -> Model:
    """`torch.autograd.functional.jacobian(f, inputs, create_graph)` and its like: numbers, unless a graph is wanted."""

    def model(site: CallSite) -> Value:
        inputs = sources_of(site.state, site.arguments.positional[1:])
        if site.constant(position, "create_graph", False) is False:
            site.frame.read(inputs, Reading.DETACHED)
            return Value(open=True)
        return Value(graph=computed(site.frame, site.state, inputs, site.point), open=True)

    return model


def _backward(site: CallSite) -> Value:
    """`torch.autograd.backward(tensors, ...)`."""
    sources = sources_of(site.state, [site.value(0, "tensors")])
    tensors.run_backward(site, sources, 2)
    return PLAIN


def _distributed_backward(site: CallSite) -> Value:
    """`torch.distributed.autograd.backward(context, roots)`."""
    differentiate(site.frame, site.state, sources_of(site.state, [site.value(1, "roots")]), site.point, False)
    return PLAIN


def _parameter(site: CallSite) -> Value:
    """`nn.Parameter(data)`: a leaf, which is what it is given."""
    given = sources_of(site.state, [site.value(0, "data")])
    site.frame.read(frozenset(s for s in given if type(s) is Bare), Reading.ADOPTED)
    if site.constant(1, "requires_grad", True) is False:
        return PLAIN
    made = containers.made(site, Kind.TENSOR, "parameter")
    return Value(made.refs, Leaf.of(site.point.site, site.point.context).alone)


def packed(site: CallSite, values: Value) -> Value:
    """Return a packed sequence: its `data` is a tensor with its graph."""
    others = dict.fromkeys(("batch_sizes", "sorted_indices", "unsorted_indices"), PLAIN)
    return containers.record(site, PACKED, {"data": values, **others})


def _pack(site: CallSite) -> Value:
    """`pack_padded_sequence(x, lengths)` and the like."""
    given = sources_of(site.state, site.arguments.all())
    return packed(site, Value(graph=computed(site.frame, site.state, given, site.point)))


def _checkpoint(site: CallSite) -> Value:
    """`checkpoint(function, *args)`: runs the function, and again where backward goes through what it gives."""
    arguments, function = site.arguments.rest(), site.value(0, "function")
    arguments.named = {k: v for k, v in arguments.named.items() if k not in _OF_CHECKPOINTS}
    given = site.machine.call(site.frame, site.state, function, arguments, site.point)
    site.frame.read(sources_of(site.state, [given]), Reading.RERUN)
    return given


def _data_parallel(site: CallSite) -> Value:
    """`data_parallel(module, inputs)`: runs copies of the module on parts of the inputs, and joins what they give."""
    arguments = Arguments([site.value(1, "inputs")])
    return site.machine.call(site.frame, site.state, site.value(0, "module"), arguments, site.point)


def _functional(site: CallSite) -> Value:
    """`functional_call(module, parameters, args)`: runs the module with these parameters in place of its own."""
    given = sources_of(site.state, [site.value(1, "parameter_and_buffer_dicts")])
    own = computed(site.frame, site.state, given, site.point)
    arguments = Arguments(star=site.value(2, "args"))
    return join(
        site.machine.call(site.frame, site.state, site.value(0, "module"), arguments, site.point), Value(graph=own)
    )


def _tensors_kept(site: CallSite) -> Value:
    """`clip_grad_norm_(parameters)`, `save`: numbers come out, and nothing is kept."""
    return PLAIN


def _variable(site: CallSite) -> Value:
    """`Variable(x)`: x itself. `volatile` has had no effect since torch 0.4."""
    value, given = site.value(0), site.arguments
    volatile = given.named.get("volatile")
    if volatile is None and given.stars is not None:
        volatile = site.item(given.stars, "volatile")
    if volatile is not None:
        guards.note(site.frame, Remark.VOLATILE, volatile, site.point)
    if site.constant(1, "requires_grad", False) is True:
        return with_graph(value, (Leaf.of(site.point.site, site.point.context),))
    return value


FUNCTIONS: dict[str, Model] = {
    "torch.autograd.grad": _gradient,
    "torch.autograd.backward": _backward,
    **{name: _derivative(place or 0) for name, place in autograd.places("derivatives-without-graph").items()},
    "torch.distributed.autograd.backward": _distributed_backward,
    "torch.nn.Parameter": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.nn.parallel.data_parallel": _data_parallel,
    **dict.fromkeys(autograd.names("functional-call"), _functional),
    **{name: partial(files.read, qualified=name) for name in checkpoints.LOADERS},
    "torch.save": _tensors_kept,
    "torch.nn.utils.clip_grad_norm_": _tensors_kept,
    "torch.nn.utils.clip_grad_value_": _tensors_kept,
    "torch.autograd.Variable": _variable,
    "torch.is_grad_enabled": guards.current,
    "torch.nn.utils.rnn.PackedSequence": _pack,
    "torch.nn.utils.rnn.pack_padded_sequence": _pack,
    "torch.nn.utils.rnn.pack_sequence": _pack,
}

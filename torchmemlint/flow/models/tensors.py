"""Methods of tensors, also of what may be one; what is written in place; `requires_grad`."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Evidence, Move, Note, Use
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import ELEMENT, Mode, State, graph_of, reached
from torchmemlint.flow.domain.kinds import PIECES, Kind
from torchmemlint.flow.domain.manners import Reading, Remark
from torchmemlint.flow.domain.memory import bare, changed_in_place, computed, differentiate, discrete, sources_of
from torchmemlint.flow.domain.refs import (
    Derived,
    External,
    Graph,
    Leaf,
    Object,
    Parameters,
    Part,
    Passed,
    Point,
    Ref,
    Result,
    Slot,
    Source,
    first_key,
    root,
    with_graphs,
)
from torchmemlint.flow.domain.values import NO_SOURCES, PLAIN, Value, beginnings, one_tensor, with_graph
from torchmemlint.flow.models import containers, files, gradients, optimizers
from torchmemlint.knowledge import autograd, modules, operations, torch_api

# Only tensors have these, among what training code handles.
METHODS = frozenset(
    "item backward detach tolist numpy argmax argmin softmax log_softmax mean clone detach_ squeeze unsqueeze "
    "reshape permute flatten retain_grad sigmoid relu tanh exp sqrt pow abs norm var std topk gather "
    "scatter_add_ masked_fill masked_fill_ matmul mm bmm transpose contiguous data_ptr add_ mul_ sub_ div_ "
    "clamp clamp_ expand expand_as repeat_interleave view_as dim numel chunk unbind cumsum cumprod logsumexp "
    "long int short addcmul_ addcdiv_ zero_ fill_ copy_ lerp_ index_select masked_select unfold narrow".split()
)
# Of these, NumPy's arrays have no methods of the same name.
SHOWING = METHODS - frozenset(
    "tolist argmax argmin mean squeeze reshape flatten std var transpose cumsum cumprod".split()
)
# A tensor, or a module.
MODULE_OR_TENSOR = frozenset("to cuda cpu half float double bfloat16 type share_memory".split())
NO_GRAPH_ATTRIBUTES = torch_api.METADATA_ATTRIBUTES | frozenset({"grad_fn", "data"})
MOVES = frozenset({"to", "cpu", "cuda"})
_PLAIN = frozenset({"contiguous", "float"})  # what most tensors are
_ASKING = autograd.names("tensor-hooks") | {"retain_grad"}  # for a gradient: they fail without a graph
_READERS = torch_api.READERS
_DISCRETE = torch_api.DISCRETE
# They return values, which have the graph, and indices, which have none; those of the second set with a `dim` only.
_RANKING = frozenset("topk sort mode kthvalue cummax cummin".split())
_RANKING_ALONG = frozenset("max min median nanmedian".split())
_NO_GRAPH = torch_api.METADATA | frozenset(
    {"size", "new_tensor", "new_zeros", "new_ones", "new_full", "new_empty", "any", "all"}
)


def without_graph(frame: Frame, state: State, base: Value, name: str, point: Point) -> Value:
    """Return an attribute of a tensor that has no graph; `data` are its numbers, as `detach()` gives them."""
    if name in ("requires_grad", "is_leaf") and base.graph:
        frame.log(Note(point, Remark.ASKED, mode=state.mode))
    return _detached(frame, base, graph_of(state, base), point) if name == "data" else PLAIN


def works_in_place(base: Value, name: str) -> bool:
    """Does a method of this name, which tensors have, change what it is called on?"""
    return name != "requires_grad_" and not any(
        type(r) is Object and r.kind in (Kind.INSTANCE, Kind.MODULE, Kind.OPTIMIZER) for r in base.refs
    )


def method(site: CallSite, base: Value, name: str) -> Value:
    """Return the value of a method of what may be a tensor."""
    frame, state = site.frame, site.state
    sources = graph_of(state, base)
    if name == "backward":
        run_backward(site, sources | sources_of(state, site.arguments.positional[:1]))
        return PLAIN
    if name == "requires_grad_":
        return _requires(site, base)
    if name == "load_state_dict":  # no tensor has it: nothing else is known of what has
        return files.restore(site, base)
    if name in modules.REGISTERING:  # nor this: what has it gives a handle
        return Value(open=True)
    if name in torch_api.CUTS:
        return _detached(frame, base, sources, site.point)
    if name in _READERS:
        frame.read(sources, Reading.ARRAY if name in ("numpy", "__array__") else Reading.NUMBER)
        return PLAIN
    if name in _DISCRETE or (name in ("to", "type", "view") and _is_discrete(site.arguments)):
        frame.read(sources, Reading.DISCRETE)
        return discrete(frame, state, sources, site.point)
    if name in _NO_GRAPH:
        note_device(site)
        return PLAIN
    if name in _ASKING:
        frame.read(sources, Reading.HOOKED)
        return PLAIN
    if name in ("zero_", "fill_", "random_", "normal_", "uniform_", "bernoulli_", "set_", "resize_"):
        return PLAIN
    goes = goes_to_host(site, name) if name in MOVES else None
    if goes is not None:
        _move(site, base, name, goes)
        for target in base.refs:
            files.moved(state, target, goes)
        if goes and sources and (state.mode is Mode.OFF or not with_graphs(sources)):
            return Value(base.refs, bare(frame, sources, site.point, True, True), open=base.open)
    if state.mode is Mode.OFF and (name in _PLAIN or goes is False) and any(map(_is_recorded, sources)):
        return base  # nothing to do: it is the same tensor, with its graph
    given = sources_of(state, site.arguments.all())
    if not base.refs and name in SHOWING and len(sources) == 1:  # nothing else can make a tensor of it
        _shown(frame, sources, Evidence.TENSOR, site.point)
    if name == "copy_":
        return Value(graph=computed(frame, state, given, site.point))
    copies = name in torch_api.COPIES
    result = Value(
        graph=computed(frame, state, sources | given, site.point, copies, sums=sums(frame, name, given)), open=base.open
    )
    if ranks(site, name, 0):
        return with_indices(site, result)
    if cuts(site, name, 1):
        return pieces(site, result)
    if _gives_one_tensor(name, site.arguments) and (frame.is_tensor(base) or not (base.refs or base.open)):
        return one_tensor(result.graph) if base.graph else result
    if name in ("cpu", "cuda", "to", "float", "half", "double", "bfloat16", "type") and base.refs:
        loaders = site.machine.index.contracts.names("loaders")
        data = frozenset(r for r in base.refs if type(begin := root(r)) is Object and str(begin.about) in loaders)
        return Value(base.refs - data, result.graph, open=base.open)  # a module, too, is what it was
    return result


def _is_recorded(source: Source) -> bool:
    """Is it a graph that was recorded in what was seen?"""
    return type(source) in (Derived, Graph, Passed, Result)


def _move(site: CallSite, base: Value, name: str, to_host: bool) -> None:
    given = site.arguments
    device = given.get(0, "device")
    alone = len(given.all()) == (device is not None)
    waits = alone and (name == "cuda" or device is not None)
    as_given = bool(base.refs) and (base.refs <= base.graph or not base.graph)
    at = Value(constant=name) if device is None or name != "to" else device
    site.frame.log(Move(site.point, base, to_host, at, waits, as_given))


def moved_object(site: CallSite, target: Ref, name: str) -> Value | None:
    """`to` and its like of an object whose base class is not seen: they give the object itself, as all libraries do."""
    return Value(target.alone) if name in MODULE_OR_TENSOR else None


def note_device(site: CallSite) -> None:
    """Note where a tensor is created, if that is told and is not the host."""
    device = site.arguments.named.get("device")
    if device is not None and is_host(device) is False:
        site.frame.log(Move(site.point, Value(), False, device))


def goes_to_host(site: CallSite, name: str) -> bool | None:
    """Is it the host that `cpu`, `cuda` or `to` brings a tensor to? None where it may be no device that is given."""
    if name != "to":
        return name == "cpu"
    given = site.arguments.get(0, "device")
    return None if given is None else is_host(given)


def is_host(device: Value) -> bool | None:
    """Is it the host that a device is? None where it may be no device."""
    if texts := beginnings(device):
        return all(text.startswith("cpu") for text in texts)
    if type(device.constant) is int:
        return False
    if not device.refs or any(type(r) is External or first_key(r) == "dtype" for r in device.refs):
        return None
    return False


def sums(frame: Frame, name: str, others: frozenset[Source]) -> bool:
    """Is what a function gives a weighted sum of its arguments, a quotient one of the first?"""
    if name in torch_api.QUOTIENTS:
        frame.bend(others)
    return name in torch_api.SUMS or name in torch_api.QUOTIENTS


def _detached(frame: Frame, base: Value, sources: frozenset[Source], point: Point) -> Value:
    """Return a tensor without its graph, which has these sources."""
    frame.read(sources, Reading.DETACHED)
    frame.log(Note(point, Remark.DETACHED, of=Value(graph=sources, open=base.open)))
    places = frozenset(r for r in base.refs if r.symbolic)
    _shown(frame, sources | places, Evidence.DETACHED, point)
    return Value(graph=bare(frame, sources, point, True) if sources else NO_SOURCES, open=base.open)


def note_tensor(site: CallSite, value: Value) -> None:
    """Note that a value is a tensor, as nothing else may be given there."""
    refs, sources = [r for r in value.refs if r.symbolic], graph_of(site.state, value)
    if len(value.refs) == len(refs) == 1:
        site.frame.log(Use(site.point, refs[0], Evidence.TENSOR))
    elif not value.refs and len(sources) == 1:
        _shown(site.frame, sources, Evidence.TENSOR, site.point)


def _shown(frame: Frame, sources: frozenset[Source], evidence: Evidence, point: Point) -> None:
    """Note what a use shows of sources that only a caller knows, or that code which is not seen gave."""
    for source in sources:
        is_said = type(source) is Graph and evidence is Evidence.DETACHED  # that what a pass gives has a graph
        if source.symbolic or type(source) in (Derived, Part) or is_said:
            frame.log(Use(point, source, evidence))


def _gives_one_tensor(name: str, arguments: Arguments) -> bool:
    known = operations.method(name)
    alone = name in _RANKING_ALONG and not arguments.all()
    return alone or (known is not None and known.result == "tensor")


def _is_discrete(arguments: Arguments) -> bool:
    """Is a type among the arguments that has no gradients?"""
    names = [r.qualified for value in arguments.all() for r in value.refs if type(r) is External]
    return any(name.rpartition(".")[2] in torch_api.DISCRETE_TYPES for name in names if name.startswith("torch."))


def ranks(site: CallSite, name: str, position: int) -> bool:
    """Does a function of this name return values and their indices? `dim` may be its argument at this position."""
    if name in _RANKING:
        return True
    return name in _RANKING_ALONG and type(site.constant(position, "dim", "")) is int


def cuts(site: CallSite, name: str, position: int) -> bool:
    """Does a function of this name cut a batch into smaller ones? `dim` may be its argument at this position."""
    return name in ("chunk", "split", "tensor_split") and site.constant(position, "dim", 0) == 0


def pieces(site: CallSite, piece: Value) -> Value:
    """Return what a batch is cut into."""
    box = containers.made(site, Kind.TUPLE, PIECES)
    for holder in box.each():
        site.state.heap.put(holder, ELEMENT, piece)
    return box


def with_indices(site: CallSite, values: Value) -> Value:
    """Return the pair of values and their indices, as `torch.return_types` have it."""
    site.frame.read(values.graph, Reading.DISCRETE)
    indices = discrete(site.frame, site.state, values.graph, site.point)
    return containers.record(site, "values and indices", {"values": values, "indices": indices})


def run_backward(
    site: CallSite,
    sources: frozenset[Source],
    first: int = 1,
    named: bool = True,
    ends: frozenset[Source] = frozenset(),
) -> bool:
    """A backward pass by `x.backward(...)` or one of `torch.autograd`. Return whether the gradients may have a graph.

    `retain_graph` is the argument `first`, `create_graph` the next. `named`, `ends`: see `Differentiate`.
    """
    creates = site.constant(first + 1, "create_graph", False)
    retains = site.constant(first, "retain_graph", creates)
    if retains is None:
        retains = creates
    asked = retains is True or creates is True
    options = retains is not False, creates is not False, asked, named, ends
    differentiate(site.frame, site.state, sources, site.point, *options)
    return creates is not False


def _requires(site: CallSite, base: Value) -> Value:
    flag = site.arguments.get(0, "requires_grad") or Value(constant=True)
    gradients.set_requires_grad(site.frame, site.state, base, flag, site.point)
    of_modules = any(type(r) is Parameters or (type(r) is Object and r.kind is not Kind.TENSOR) for r in base.refs)
    if of_modules:
        return base
    return asked(base, flag, site.point)


def asked(base: Value, flag: Value, point: Point) -> Value:
    """Return a tensor whose gradients are wanted from now on, or are not."""
    if flag.constant is False:
        return base._replace(graph=frozenset(s for s in base.graph if type(s) is not Leaf))
    return with_graph(base, (Leaf.of(point.site, point.context),))


def change_in_place(frame: Frame, state: State, base: Value, result: Value, name: str, point: Point) -> None:
    """Let the tensors that base may be hold what a method in place made of them."""
    if name == "detach_":
        return
    new = result.graph - base.graph
    if new:
        changed_in_place(frame, state, base, new, point)


def set_gradient(frame: Frame, state: State, base: Value, value: Value, point: Point) -> None:
    """`p.grad = g`: with a graph, the parameter holds what that graph was made from; None zeroes it."""
    if value.constant is None:
        optimizers.step(frame, base, "zero_grad", point)
    sources = reached(state, value)
    if not sources:
        return
    for holder in base.each():
        if holder.symbolic or type(holder) is Object:
            slot = Slot.of(holder, "grad")
            frame.provenance.derive(slot, sources)

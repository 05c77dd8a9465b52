"""What tensor methods and torch's functions do to values and their graphs."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow import (
    attributes,
    containers,
    statements,
)
from torchmemlint.flow.arguments import Arguments, flag
from torchmemlint.flow.graphs import proven, tensor_from, through
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import (
    NUMBER,
    Constant,
    Container,
    Device,
    External,
    Graph,
    Kind,
    Known,
    Mode,
    Step,
    Tensor,
    Unknown,
    Value,
    Via,
)
from torchmemlint.knowledge import activations, operations, torch_api

# In-place methods that end with an underscore but compute nothing from their arguments.
_FILLING = frozenset("zero_ fill_ normal_ uniform_ bernoulli_ random_ exponential_ set_ resize_ share_memory_".split())


def method(it: Interpreter, node: cst.Call, owner: Tensor, name: str, arguments: Arguments) -> Value:
    """`owner.name(...)` of a tensor."""
    made = it.site(node)
    if owner.producer in ("hook", "getitem") and not owner.exact and owner.made is not None and name in SHOWING:
        it.show_to_be_tensor(owner.made)
    if owner.producer == "distribution":
        return distribution_method(it, node, owner, name, arguments)
    if name in torch_api.READERS:
        return NUMBER
    if name in torch_api.CUTS:
        result = attributes.cut(it, node, owner)
        if name == "detach_" and isinstance(node.func, cst.Attribute):
            statements.rebind(it, node.func.value, result, node)
        return result
    if name in torch_api.METADATA:
        return NUMBER
    if name in torch_api.DISCRETE:
        return Tensor(Graph.NONE, kind=Kind.DISCRETE, device=owner.device, producer=name, made=made)
    if name in ("to", "cuda", "cpu", "type", "pin_memory"):
        return moved(it, node, owner, name, arguments)
    if name == "requires_grad_":
        return _requires_grad(it, node, owner, arguments)
    if name == "new" or (name in torch_api.FACTORIES and name.startswith("new_")):
        return factory(it, node, name, arguments, owner.device)
    if name in ("register_hook", "retain_grad", "register_post_accumulate_grad_hook"):
        if name == "retain_grad" or name == "register_hook":
            it.effect("gradient hook")
        return Constant(None, True)
    if name.endswith("_") and not name.endswith("__"):
        return _in_place(it, node, owner, name, arguments)
    if not owner.exact and name in _STRUCTURE:
        return replace(owner, made=made)  # `output.latent_dist.sample()` stays a structure of tensors
    if owner.exact and not owner.certain and name not in _COMMON | _STRUCTURE and operations.method(name) is None:
        return Unknown(made=it.origin(node))
    if not owner.exact and name not in _COMMON:
        return Unknown(owner.origins | {it.origin(node)}, it.origin(node))
    return operation(it, node, name, [owner, *arguments.values], arguments)


_PROVING = frozenset("detach detach_ numpy cpu norm numel dim svd amax amin tolist".split())
_STRUCTURE = frozenset("sample rsample mode values items get pop to_tuple copy keys detach_all".split())
_COMMON = frozenset(
    "mean sum add sub mul div pow sqrt exp log abs clamp clip max min softmax log_softmax sigmoid tanh relu matmul mm "
    "bmm size view reshape float half double cpu cuda to squeeze unsqueeze norm std var topk sort permute transpose t "
    "contiguous flatten split chunk gather masked_fill item clone expand repeat bfloat16 type view_as unbind".split()
)
SHOWING = _COMMON | _PROVING  # what a tuple does not have


def moved(it: Interpreter, node: cst.Call, owner: Value, name: str, arguments: Arguments) -> Value:
    """`.to(...)`, `.cuda()`, `.cpu()`: the graph goes along."""
    made = it.site(node)
    device = device_of(it, name, arguments, node)
    batch = isinstance(owner, Known) and owner.role == "batch" and owner.qualified in ("whole", "part")
    if isinstance(owner, Known):
        return replace(owner, qualified="computed") if batch else owner
    if not isinstance(owner, Tensor):
        return Unknown(it.deep_origins(owner), it.origin(node))
    result = tensor_from((owner,), producer=name, made=made)
    return replace(
        result,
        device=device if device is not Device.UNKNOWN else owner.device,
        exact=owner.exact,
        certain=owner.certain,
        kind=owner.kind if name in ("cpu", "cuda") else Kind.UNKNOWN if owner.kind is Kind.DISCRETE else owner.kind,
        parameter_of=owner.parameter_of,
    )


def device_of(it: Interpreter, name: str, arguments: Arguments, node: cst.Call) -> Device:
    """The device that a transfer goes to, as far as it can be told."""
    if name == "cuda":
        return Device.ACCELERATOR
    if name == "cpu":
        return Device.HOST
    value = arguments.get("device", "0")
    return device_of_value(value)


def device_of_value(value: Value | None) -> Device:
    """The device that a value names: "cuda", torch.device("cuda"), 0, ..."""
    match value:
        case Constant(known=True, value=str(text)):
            return Device.HOST if text.startswith("cpu") else _named_device(text)
        case Constant(known=True, value=bool()):
            return Device.UNKNOWN
        case Constant(known=True, value=int()):
            return Device.ACCELERATOR
        case Known(role="default", element=element):
            return device_of_value(element)
        case Known(role="device", arguments=given):
            return device_of_value(given[0][1] if given else None)
    return Device.UNKNOWN


def _named_device(text: str) -> Device:
    kind = text.split(":")[0]
    return Device.ACCELERATOR if kind in ("cuda", "xpu", "mps", "hip", "npu", "xla") else Device.UNKNOWN


def _requires_grad(it: Interpreter, node: cst.Call, owner: Tensor, arguments: Arguments) -> Value:
    on = arguments.get("0", "requires_grad")
    off = isinstance(on, Constant) and on.known and not on.value
    from torchmemlint.flow.values import Flag

    if owner.parameter_of:
        slot = (owner.parameter_of, "frozen")
        if off or (on is not None and not isinstance(on, Constant)):
            it.state.heap[slot] = Flag(True, it.site(node))
        elif on is None or isinstance(on, Constant):
            it.state.heap.pop(slot, None)
        return owner
    if off:
        return replace(owner, graph=Graph.NONE, origins=frozenset(), history=())
    it.effect("input-gradient")
    result = replace(
        owner,
        graph=Graph.LIVE,
        origins=owner.origins | {it.origin(node)},
        history=(Step(it.site(node), "made to require gradients"),),
        producer="requires_grad",
        made=it.site(node),
    )
    if isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Name):
        it.state.vars[node.func.value.value] = result
    return result


def _in_place(it: Interpreter, node: cst.Call, owner: Tensor, name: str, arguments: Arguments) -> Value:
    """`x.add_(y)`: x now hangs on y's graph as well."""
    target = node.func.value if isinstance(node.func, cst.Attribute) else None
    if name in _FILLING or name == "detach_" or owner.producer == "parameter":
        return owner  # a parameter is written under no_grad, or it raises
    recording = it.state.mode is not Mode.OFF
    result = tensor_from((owner, *arguments.values), producer=name, made=it.site(node))
    if name == "copy_" and recording:
        result = tensor_from(arguments.values, producer=name, made=it.site(node))
    if not recording:
        result = replace(result, graph=owner.graph, origins=owner.origins, carried=owner.carried)
    if result.carried:
        result = replace(result, carried=through(result, Via.ARITHMETIC))
    result = replace(result, exact=owner.exact, certain=owner.certain, device=owner.device)
    if owner.producer == "parameter":
        result = replace(result, producer=owner.producer, made=owner.made, parameter_of=owner.parameter_of)
    if target is not None:
        statements.rebind(it, target, result, node)
    return result


def operation(it: Interpreter, node: cst.CSTNode, name: str, values: list[Value], arguments: Arguments) -> Value:
    """A torch operation by its last name on these values."""
    made = it.site(node)
    if name in torch_api.DISCRETE:
        return Tensor(Graph.NONE, kind=Kind.DISCRETE, producer=name, made=made)
    if name in torch_api.JOINERS and values:
        _prove_elements(it, values[0])
        joined = containers.joined_tensor(it, node, values[0], name)
        return proven(it, _in_mode(it, joined), made)
    flat: list[Value] = []
    for value in values:
        if isinstance(value, Container):
            flat += list(it.elements(value))
        else:
            flat.append(value)
    result = tensor_from(flat, producer=name, made=made)
    if result.carried:
        via = Via.COPY if name in torch_api.COPIES else Via.ARITHMETIC
        result = replace(result, carried=through(result, via))
    first = values[0] if values else None
    kind = (
        first.kind if isinstance(first, Tensor) and first.kind is Kind.DISCRETE and name in _KEEPING else Kind.UNKNOWN
    )
    if isinstance(first, Tensor) and first.kind is Kind.DISCRETE and name in ("sum", "prod", "cumsum"):
        kind = Kind.DISCRETE
    result = replace(result, kind=kind)
    result = _in_mode(it, result)
    paired = name in operations.several() or arguments.get("dim") is not None
    if name in torch_api.VALUES_AND_INDICES and (len(values) > 1 or paired):
        return _values_and_indices(it, node, result, values)
    if name in torch_api.SPLITTERS or name in operations.several():
        return replace(result, exact=False)
    return proven(it, result, made)


def _prove_elements(it: Interpreter, value: Value) -> None:
    """What is concatenated are tensors, also where hooks put them there."""
    if isinstance(value, Container):
        for element in it.elements(value):
            if isinstance(element, Tensor) and element.producer == "hook" and element.made is not None:
                it.show_to_be_tensor(element.made)


_KEEPING = frozenset(
    "view reshape flatten squeeze unsqueeze transpose permute t expand clone contiguous cpu cuda sum "
    "index_select gather repeat narrow roll flip".split()
)


def distribution_method(it: Interpreter, node: cst.Call, owner: Tensor, name: str, arguments: Arguments) -> Value:
    """A method of a distribution: `sample` draws without a graph, everything else differentiates."""
    if name in ("sample", "sample_n", "has_rsample"):
        return Tensor(Graph.NONE, producer="sample", made=it.site(node))
    values = [owner, *arguments.values]
    result = operation(it, node, name, values, arguments)
    if not isinstance(result, Tensor):  # a tensor's method of that name gives a pair: `mode`
        result = tensor_from(values, producer=name, made=it.site(node))
    return replace(result, exact=True, certain=True)


def _in_mode(it: Interpreter, value: Tensor) -> Tensor:
    """With autograd off, results carry no graph."""
    if it.state.mode is Mode.OFF and value.graph is not Graph.NONE:
        return replace(value, graph=Graph.NONE, origins=frozenset(), history=(), carried=frozenset())
    return value


def _values_and_indices(it: Interpreter, node: cst.CSTNode, result: Tensor, values: list[Value]) -> Value:
    """`x.max(1)`: a pair; with two tensors or a keyword only, the caller's own reading decides."""
    if len(values) > 1 and isinstance(values[1], Tensor):
        return result
    indices = Tensor(Graph.NONE, kind=Kind.DISCRETE, producer="indices", made=it.site(node))
    container = containers.fresh(it, node, "tuple")
    for key, value in (("[0]", result), ("[1]", indices)):
        it.element_keys.setdefault(container.oid, set()).add(key)
        it.state.heap[(container.oid, key)] = value
        it.state.heap[(container.oid, "values" if key == "[0]" else "indices")] = value
    return replace(container, items=(result, indices))


def factory(it: Interpreter, node: cst.Call, name: str, arguments: Arguments, device: Device = Device.HOST) -> Value:
    """`torch.zeros(...)` and the like: a tensor without a graph unless it is asked for."""
    made = it.site(node)
    given = arguments.get("device")
    where = device_of_value(given) if given is not None else device
    kind = Kind.DISCRETE if name in torch_api.DISCRETE_FACTORIES else Kind.FLOAT
    dtype = arguments.get("dtype")
    if isinstance(dtype, External):
        last = dtype.qualified.rpartition(".")[2]
        kind = Kind.DISCRETE if last.startswith(("int", "uint", "long", "bool", "short")) else Kind.FLOAT
    elif dtype is not None or name in ("tensor", "as_tensor", "from_numpy", "full", "asarray", "Tensor"):
        kind = Kind.UNKNOWN
    requires = flag(arguments, "requires_grad")
    if requires is True:
        return Tensor(
            Graph.LIVE,
            frozenset({it.origin(node)}),
            (Step(made, "created with requires_grad=True"),),
            device=where,
            kind=Kind.FLOAT,
            producer="requires_grad",
            made=made,
        )
    return Tensor(Graph.NONE, device=where, kind=kind, producer=name, made=made)


def function(it: Interpreter, node: cst.Call, qualified: str, arguments: Arguments) -> Value:
    """A function of torch that computes on tensors."""
    name = qualified.rpartition(".")[2]
    if name in torch_api.FACTORIES and qualified.count(".") == 1:
        return factory(it, node, name, arguments)
    known = operations.function(qualified)
    if name == "is_tensor" or (known is not None and known.result == "value"):
        return NUMBER
    kind = activations.functional(qualified)
    if kind is not None and arguments.items:
        return operation(it, node, kind.rpartition(".")[2], [arguments.items[0].value], arguments)
    values = [a.value for a in arguments.items if a.name not in ("dim", "dtype", "device", "reduction")]
    return operation(it, node, name, values, arguments)

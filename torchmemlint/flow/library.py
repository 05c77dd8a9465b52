"""Calls out of the project: builtins, libraries, and objects of libraries that have a role."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from torchmemlint.flow import (
    attributes,
    calls,
    configurations,
    containers,
    contracted,
    differentiation,
    gradient_modes,
    iteration,
    loaders,
    modules,
    tensors,
)
from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.graphs import tensor_from
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import (
    NUMBER,
    Constant,
    Container,
    External,
    FunctionValue,
    GradMode,
    Graph,
    Known,
    Method,
    Mode,
    ModuleValue,
    Partial,
    Step,
    Tensor,
    Unknown,
    Value,
)
from torchmemlint.knowledge import torch_api


def call(it: Interpreter, node: cst.Call, qualified: str, arguments: Arguments) -> Value:
    """A call of something imported."""
    mode = gradient_modes.called(it, node, qualified, arguments)
    if mode is not None:
        return mode
    if qualified in iteration.TRANSPARENT and arguments.items:
        return _transparent(arguments)
    handler = _HANDLERS.get(qualified)
    if handler is not None:
        return handler(it, node, arguments)
    known = it.contracts.speaks_of(qualified)
    if known:
        promised = contracted.function(it, node, qualified, arguments)
        if promised is not None:
            return promised
        if qualified in it.contracts.names("loaders"):
            return loaders.build(it, node, qualified, arguments)
        if it.contracts.is_module_class(qualified) or it.contracts.is_module_factory(qualified):
            return modules.build(it, node, qualified, arguments)
        if it.contracts.is_wrapper(qualified) and arguments.items:
            return _wrapped(it, node, qualified, arguments)
    if qualified in ("torch.func.functional_call", "torch.nn.utils.stateless.functional_call") and arguments.items:
        first = arguments.items[0].value
        if isinstance(first, ModuleValue):
            return modules.call(it, node, first, Arguments(arguments.items[1:]))
    if qualified in configurations.NAMESPACES:
        return configurations.namespace(it, node, arguments)
    if qualified in containers.CONSTRUCTORS:
        return _container(it, node, qualified, arguments)
    if known and it.contracts.is_optimizer(qualified):
        return Known("optimizer", it.oid(node, it.frame.path), qualified, it.site(node), arguments.pairs())
    if qualified.startswith("torch.") and _computes(qualified):
        return tensors.function(it, node, qualified, arguments)
    if qualified.startswith("torch.distributions.") and qualified.rpartition(".")[2][:1].isupper():
        made = it.site(node)
        return replace(tensor_from(arguments.values, producer="distribution", made=made), exact=False)
    if qualified.endswith(".GradScaler"):
        return Known("scaler", it.oid(node, it.frame.path), qualified, it.site(node))
    if known and qualified in it.contracts.names("passes") and arguments.items:
        return tensors.operation(it, node, qualified.rpartition(".")[2], [arguments.items[0].value], arguments)
    if known and qualified in it.contracts.names("inference-objects"):
        return Known("guarded", it.oid(node, it.frame.path), qualified, it.site(node))
    reads = known and qualified in it.contracts.names("reads")
    neutral = known and qualified in it.contracts.neutral
    if neutral and (reads or not any(_holds_tensors(it, v) for v in arguments.values)):
        return Known("context", it.oid(node, it.frame.path), qualified, it.site(node))
    if reads:
        return NUMBER if qualified.startswith(("numpy.", "math.")) else Unknown()
    owner, _, last = qualified.rpartition(".")
    if owner == "torch" and last in torch_api.DESCRIBING:
        return NUMBER
    if qualified in calls.BUILTINS:
        return builtin(it, node, qualified, arguments)
    return calls.unknown_call(it, node, External(qualified), arguments)


def _computes(qualified: str) -> bool:
    if qualified.startswith(torch_api.NOT_COMPUTING):
        return False
    last = qualified.rpartition(".")[2]
    if last in torch_api.NOT_OPERATIONS and qualified.count(".") == 1:
        return False
    if last[:1].isupper() and last not in torch_api.FACTORIES:
        return False
    return qualified.startswith(torch_api.COMPUTING) and torch_api.is_known(qualified)


def _transparent(arguments: Arguments) -> Value:
    first = arguments.items[0].value
    if isinstance(first, Known) and first.role == "parameters":
        return replace(first, arguments=arguments.pairs()[1:])  # chain(a.parameters(), b.parameters())
    return first


def _holds_tensors(it: Interpreter, value: Value) -> bool:
    """No context manager is made from tensors: what takes them computes with them."""
    if isinstance(value, Container):
        return any(isinstance(element, Tensor) for element in it.elements(value))
    return isinstance(value, Tensor)


def _cast(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    """`typing.cast(Tensor, value)` is the value."""
    value = arguments.get("1", "val")
    return value if value is not None else Unknown()


def _wrapped(it: Interpreter, node: cst.Call, qualified: str, arguments: Arguments) -> Value:
    first = arguments.items[0].value
    if isinstance(first, ModuleValue) and qualified in _COPYING:
        return modules.copied(it, node, first)
    if isinstance(first, ModuleValue | FunctionValue | Tensor | Container | Known):
        return first
    return calls.unknown_call(it, node, Unknown(), arguments)


def _container(it: Interpreter, node: cst.Call, qualified: str, arguments: Arguments) -> Value:
    kind = containers.CONSTRUCTORS[qualified]
    bound = arguments.find("maxlen", "1" if kind == "deque" else "maxlen")
    bounded = bound is not None and not (isinstance(bound.value, Constant) and bound.value.value is None)
    first = arguments.get("0")
    if kind == "dict" and not bounded and not isinstance(first, Container | Unknown | Tensor | Known):
        pairs = [(a.name, a.node, a.value) for a in arguments.items if not a.name.isdigit()]
        return containers.dictionary(it, node, [("*" if n in ("*", "**") else n, v, w) for n, v, w in pairs], [], False)
    container = containers.fresh(it, node, kind, bounded=bounded)
    if kind == "defaultdict":
        made = containers.default_text(arguments.items[0].node) if arguments.items else ""
        it.state.heap[(container.oid, "default")] = Constant(made, True)
        return container
    if isinstance(first, Container):
        for key, value, site in list(containers.entries(it, first)):
            containers.store(it, container, key if kind == "dict" else "[]", value, site)
    elif first is not None and not isinstance(first, Constant):
        element = iteration.element_of(it, first, arguments.items[0].node)
        containers.store(it, container, "[]", element, it.site(arguments.items[0].node))
    return container


# -- builtins --------------------------------------------------------------------------------------------------------


def builtin(it: Interpreter, node: cst.Call, name: str, arguments: Arguments) -> Value:
    """A builtin function."""
    handler = _BUILTIN_HANDLERS.get(name)
    if handler is not None:
        return handler(it, node, arguments)
    if name in torch_api.INSPECTING_BUILTINS:
        return NUMBER
    if name in torch_api.READING_BUILTINS:
        return NUMBER
    if name in containers.CONSTRUCTORS:
        return _container(it, node, name, arguments)
    return Unknown()


def _enumerate(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    if not arguments.items:
        return Unknown()
    first = arguments.items[0]
    element = iteration.element_of(it, first.value, first.node)
    pair = containers.literal(it, node, "tuple", [(node.func, NUMBER), (first.node, element)], False)
    return Known("enumerate", element=pair, arguments=(("0", first.value),) if isinstance(first.value, Known) else ())


def _zip(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    values = [(a.node, iteration.element_of(it, a.value, a.node)) for a in arguments.items if a.name.isdigit()]
    starred = any(a.name == "*" for a in arguments.items)
    if starred:
        inner = arguments.items[0].value
        return Known("zip", element=inner if isinstance(inner, Container) else Unknown(it.deep_origins(inner)))
    return Known("zip", element=containers.literal(it, node, "tuple", values, False))


def _sum(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    if not arguments.items:
        return NUMBER
    value = arguments.items[0].value
    if isinstance(value, Container):
        parts = list(it.elements(value))
        if any(isinstance(p, Tensor) for p in parts):
            return replace(containers.joined_tensor(it, node, value, "sum"), certain=False)
        return NUMBER if all(isinstance(p, Constant) for p in parts) else Unknown(it.deep_origins(value))
    if isinstance(value, Tensor):
        return value
    return Unknown(it.deep_origins(value))


def _extreme(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    tensors_given = [v for v in arguments.values if isinstance(v, Tensor)]
    if tensors_given:
        return tensors_given[0]
    containers_given = [v for v in arguments.values if isinstance(v, Container)]
    if containers_given:
        return it.element(containers_given[0])
    return NUMBER if all(isinstance(v, Constant) for v in arguments.values) else Unknown()


def _map(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    if len(arguments.items) < 2:
        return Unknown()
    element = iteration.element_of(it, arguments.items[1].value, arguments.items[1].node)
    inner = Arguments([replace(arguments.items[1], name="0", value=element)])
    return Known("iterator", element=calls.apply(it, node, arguments.items[0].value, inner))


def _filter(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    return arguments.items[1].value if len(arguments.items) > 1 else Unknown()


def _getattr(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    owner, name = arguments.get("0"), arguments.get("1")
    if owner is not None and isinstance(name, Constant) and isinstance(name.value, str):
        if isinstance(owner, External):
            return External(f"{owner.qualified}.{name.value}")
        value = it.heap_value(owner, name.value)
        if value is not None:
            return value
    if isinstance(owner, ModuleValue) and len(node.args) > 1 and _names_backbone(node.args[1].value):
        return replace(owner, cls=None, qualified="", parameters=None)
    return Unknown()


def _names_backbone(node: cst.BaseExpression) -> bool:
    """`getattr(model, model.base_model_prefix)`: the model without its head (transformers: PreTrainedModel)."""
    return isinstance(node, cst.Attribute) and node.attr.value == "base_model_prefix"


def _next(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    if not arguments.items:
        return Unknown()
    first = arguments.items[0]
    return iteration.element_of(it, first.value, first.node)


def _iter(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    if not arguments.items:
        return Unknown()
    first = arguments.items[0]
    if isinstance(first.value, Known) and first.value.role == "loader":  # its workers start here, once
        return Known("iterator", element=iteration.element_of(it, first.value, first.node))
    return first.value


def _range(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    return Known("iterator", element=NUMBER)


def _abs(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    first = arguments.get("0")
    return first if isinstance(first, Tensor | Unknown) else NUMBER


def _locals(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    """`locals()`: what becomes of any of the variables is out of view."""
    value = Unknown(frozenset().union(*(it.deep_origins(one) for one in it.state.vars.values())))
    return value


_BUILTIN_HANDLERS: dict[str, Callable[[Interpreter, cst.Call, Arguments], Value]] = {
    "enumerate": _enumerate,
    "zip": _zip,
    "sum": _sum,
    "min": _extreme,
    "max": _extreme,
    "map": _map,
    "filter": _filter,
    "getattr": _getattr,
    "setattr": lambda *_: Constant(None, True),
    "next": _next,
    "range": _range,
    "abs": _abs,
    "reversed": lambda it, node, arguments: arguments.items[0].value if arguments.items else Unknown(),
    "sorted": lambda it, node, arguments: arguments.items[0].value if arguments.items else Unknown(),
    "iter": _iter,
    "tqdm": lambda it, node, arguments: arguments.items[0].value if arguments.items else Known("context"),
    "vars": configurations.parsed,
    "locals": _locals,
}
BUILTINS = (
    frozenset(_BUILTIN_HANDLERS)
    | torch_api.READING_BUILTINS
    | frozenset({"list", "dict", "set", "tuple", "any", "all", "divmod", "pow", "open", "delattr"})
)


# -- particular library functions ------------------------------------------------------------------------------------


def variable(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    """`torch.autograd.Variable(x)`: x itself."""
    requires = arguments.get("requires_grad", "1")
    if isinstance(requires, Constant) and requires.known and requires.value:
        it.effect("input-gradient")
        return Tensor(
            Graph.LIVE,
            frozenset({it.origin(node)}),
            (Step(it.site(node), "made to require gradients"),),
            producer="requires_grad",
            made=it.site(node),
        )
    first = arguments.get("0", "data")
    return first if first is not None else Unknown()


def _parameter(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    requires = arguments.get("requires_grad", "1")
    off = isinstance(requires, Constant) and requires.known and not requires.value
    made = it.site(node)
    return Tensor(
        Graph.NONE if off else Graph.LIVE,
        frozenset() if off else frozenset({it.origin(node)}),
        () if off else (Step(made, "is a parameter"),),
        producer="parameter",
        made=made,
    )


def _partial(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    if not arguments.items:
        return Unknown()
    rest = [a for a in arguments.items[1:] if a.name not in ("*", "**")]
    shifted = tuple((str(int(a.name) - 1) if a.name.isdigit() else a.name, a.value) for a in rest)
    if len(rest) != len(arguments.items) - 1:
        return Unknown()
    return Partial(arguments.items[0].value, shifted)


def _device(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    return Known("device", it.oid(node), "torch.device", it.site(node), arguments.pairs())


def _checkpoint(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    """`checkpoint(function, *inputs)` calls the function with gradients recorded later."""
    if not arguments.items:
        return Unknown()
    inner = [
        replace(a, name=str(int(a.name) - 1)) if a.name.isdigit() else a
        for a in arguments.items[1:]
        if a.name not in ("use_reentrant", "preserve_rng_state")
    ]
    rest = Arguments(inner, arguments.unknown_positional, arguments.unknown_keywords)
    return calls.apply(it, node, arguments.items[0].value, rest)


def _grad(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    return differentiation.gradients(it, node, arguments)


def _exit_stack(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    return Known("exit stack", it.oid(node, it.frame.path), "contextlib.ExitStack", it.site(node))


def _nullcontext(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    return Known("context", it.oid(node, it.frame.path), "contextlib.nullcontext", it.site(node))


def _argument_parser(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    return Known("argument parser", it.oid(node, it.frame.path), "argparse.ArgumentParser", it.site(node))


def _clip(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    """Gradient clipping returns the norm of gradients, which carry no graph."""
    return Tensor(Graph.NONE, producer="clip_grad_norm_", made=it.site(node))


def _one_hot(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    return tensors.operation(it, node, "one_hot", arguments.values, arguments)


def _parameters_to_vector(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    """Parameters put together, or gradients: these have no graph unless what they are taken from says so."""
    made, given = it.site(node), arguments.get("0", "parameters")
    if isinstance(given, Known) and given.role == "parameters":
        return Tensor(Graph.LIVE, frozenset({it.origin(node)}), (Step(made, "holds parameters"),), made=made)
    return tensors.operation(it, node, "cat", [given] if given is not None else [], arguments)


_HANDLERS: dict[str, Callable[[Interpreter, cst.Call, Arguments], Value]] = {
    "torch.autograd.Variable": variable,
    "torch.autograd.variable.Variable": variable,
    "torch.nn.Parameter": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "functools.partial": _partial,
    "typing.cast": _cast,
    "typing_extensions.cast": _cast,
    "torch.device": _device,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.autograd.grad": _grad,
    "torch.autograd.backward": _grad,
    "contextlib.ExitStack": _exit_stack,
    "contextlib.nullcontext": _nullcontext,
    "argparse.ArgumentParser": _argument_parser,
    "torch.nn.utils.clip_grad_norm_": _clip,
    "torch.nn.utils.clip_grad_norm": _clip,
    "torch.nn.functional.one_hot": _one_hot,
    "torch.nn.utils.parameters_to_vector": _parameters_to_vector,
    "torch.save": lambda *_: Constant(None, True),
    "torch.utils.data.TensorDataset": loaders.dataset,
    "torch.utils.data.dataset.TensorDataset": loaders.dataset,
    "torch.utils.data.Subset": loaders.dataset,
    "torch.utils.data.dataset.Subset": loaders.dataset,
    "torch.utils.data.random_split": loaders.split,
    "torch.utils.data.dataset.random_split": loaders.split,
}


# -- objects of libraries --------------------------------------------------------------------------------------------


def call_object(it: Interpreter, node: cst.Call, owner: Known, arguments: Arguments) -> Value:
    """A library object called: `pipe(text)`."""
    promised = contracted.method(it, node, Method(owner, "__call__"), arguments)
    if promised is not None:
        return promised
    if owner.role == "guarded":
        return Unknown()
    return calls.unknown_call(it, node, owner, arguments)


# Methods of a batch, or of its tensors, that hand out what lies where the batch lies.
_SAME_STORAGE = frozenset(
    "items values keys get pop copy view reshape squeeze unsqueeze transpose permute flatten t "
    "requires_grad_ contiguous __getitem__".split()
)


def object_method(it: Interpreter, node: cst.Call, owner: Known, name: str, arguments: Arguments) -> Value:
    """A method of a library object."""
    match owner.role, name:
        case "optimizer", "step":
            it.effect("step")
            return Unknown()
        case "optimizer", "zero_grad":
            return Unknown()
        case "scaler", "scale":
            return arguments.items[0].value if arguments.items else Unknown()
        case "scaler", "step":
            it.effect("step")
            return Constant(None, True)
        case "exit stack", "enter_context":
            if arguments.items:
                item = arguments.items[0]
                gradient_modes.enter(it, item.value, item.node)
                return item.value
            return Unknown()
        case "argument parser", "add_argument":
            loaders.add_argument(it, owner, arguments)
            return Constant(None, True)
        case "argument parser", "set_defaults":
            loaders.set_defaults(it, owner, arguments)
            return Constant(None, True)
        case "argument parser", "add_argument_group" | "add_mutually_exclusive_group":
            return owner
        case "argument parser", "parse_args" | "parse_known_args":
            return loaders.parsed_arguments(it, node, owner, name)
        case "batch", "to" | "cuda":
            return tensors.moved(it, node, owner, name, arguments)
        case "batch", _:
            return iteration.part(owner) if name in _SAME_STORAGE else replace(owner, qualified="computed")
        case "guarded", _:
            return owner if name in ("to", "cuda", "half", "eval", "float") else Unknown()
        case "loader", _:
            return Unknown()
        case contracted.OBJECT, "to" | "cuda" | "cpu":
            return owner
        case contracted.OBJECT, _:
            return unknown_method(it, node, owner, name, "", arguments)
        case "device" | "context" | "keys", _:
            return Unknown()
    if owner.role in ("iterator", "enumerate", "zip", "items"):
        return Unknown()
    return Unknown()


def unknown_method(it: Interpreter, node: cst.Call, owner: Value, name: str, path: str, arguments: Arguments) -> Value:
    """A method of something that is not understood."""
    if name in ("__enter__", "enter_context") and isinstance(owner, GradMode):
        gradient_modes.enter(it, owner, node)
        return owner
    if name == "enter_context" and arguments.items:
        gradient_modes.enter(it, arguments.items[0].value, arguments.items[0].node)
        return arguments.items[0].value
    if name == "step" and isinstance(owner, Unknown) and not arguments.items:
        it.effect("step")
    if name in torch_api.CUTS and isinstance(owner, Unknown):
        return attributes.cut(it, node, Tensor(Graph.UNKNOWN, owner.origins))
    if name in torch_api.READERS and isinstance(owner, Unknown):
        return NUMBER
    if name in ("requires_grad_",) and isinstance(owner, Unknown):
        return _unknown_requires_grad(it, node, owner, arguments)
    if name in ("to", "cuda") and isinstance(owner, Unknown):
        return tensors.moved(it, node, owner, name, arguments)
    if it.contracts.names("reads").has_method(name) or isinstance(owner, Constant):
        return NUMBER if isinstance(owner, Constant) else Unknown()
    if (
        name in torch_api.DISCRETE
        and name not in ("all", "any", "unique", "short", "int", "bool", "long")
        and (isinstance(owner, Unknown) and owner.origins)
    ):
        return Tensor(Graph.NONE, kind=Kind_DISCRETE, producer=name, made=it.site(node))
    if name in _FORWARDING and isinstance(owner, Unknown):
        made = it.origin(node)
        if it.proved(made.site) is not None and it.state.mode is not Mode.OFF:
            return containers.proved_tensor(it, made, owner)
        return Unknown(owner.origins | {made}, made, part_of=owner.part_of)
    if name == "register_forward_hook" and arguments.items:
        modules.hook(it, node, name, arguments)
        return Unknown()
    if name in _HOOKS:
        modules.hook(it, node, name, arguments)
        if name == "register_hook":
            it.effect("gradient hook")
        return Unknown()
    if isinstance(owner, Unknown) and owner.part_of is not None:
        return modules.part_method(it, node, owner, name, arguments)
    passes = it.contracts.names("passes").has_method(name)
    if passes and arguments.items and isinstance(arguments.items[0].value, Tensor):
        return tensors.operation(it, node, name, [arguments.items[0].value], arguments)
    if isinstance(owner, Unknown) and owner.origins and not owner.path and it.state.mode is not Mode.OFF:
        return _derived(it, node, owner, arguments)
    return calls.unknown_call(it, node, owner, arguments)


def _derived(it: Interpreter, node: cst.Call, owner: Unknown, arguments: Arguments) -> Value:
    """A method of a value that something unknown has made: what comes out hangs on what went in."""
    origins = owner.origins
    for value in arguments.values:
        origins |= it.deep_origins(value)
    made = it.origin(node)
    if it.proved(made.site, switches=it.switched(made, arguments.switches)) is not None:
        return containers.proved_tensor(it, made, Unknown(origins))
    return Unknown(origins | {made}, made)


_COPYING = frozenset({"copy.copy", "copy.deepcopy"})
# These make an array of what they are given, which raises for a tensor with a graph, also for one in a list.
# Tried with numpy 2.4.6 and matplotlib 3.11.2; the others begin with `numpy.asarray`.
_FORWARDING = torch_api.COPIES | frozenset("mean sum".split())
_HOOKS = frozenset(
    "register_forward_hook register_forward_pre_hook register_full_backward_hook register_backward_hook register_hook "
    "register_full_backward_pre_hook register_module_forward_hook".split()
)
from torchmemlint.flow.values import Kind as _Kind  # noqa: E402

Kind_DISCRETE = _Kind.DISCRETE


def _unknown_requires_grad(it: Interpreter, node: cst.Call, owner: Unknown, arguments: Arguments) -> Value:
    on = arguments.get("0", "requires_grad")
    if isinstance(on, Constant) and on.known and not on.value:
        return owner
    it.effect("input-gradient")
    result = replace(owner, origins=owner.origins | {it.origin(node)})
    if isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Name):
        it.state.vars[node.func.value.value] = result
    return result


__all__ = ["BUILTINS", "Step", "builtin", "call", "call_object", "object_method", "unknown_method"]

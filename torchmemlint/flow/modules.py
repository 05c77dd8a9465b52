"""Modules: building them, calling them, their methods, and the hooks put on them."""

from __future__ import annotations

import builtins

import libcst as cst

from torchmemlint.flow import (
    calls,
    configurations,
    containers,
    freezing,
    gradient_modes,
    layers,
)
from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.graphs import tensor_from
from torchmemlint.flow.interpreter import PIPELINE, Interpreter
from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import (
    NUMBER,
    OF_ANY_REPOSITORY,
    Carry,
    Constant,
    Container,
    Flag,
    FunctionValue,
    Graph,
    Instance,
    Known,
    LoopMark,
    Mode,
    ModuleValue,
    Origin,
    Partial,
    Step,
    Tensor,
    Unknown,
    Value,
    Via,
    cap,
)
from torchmemlint.knowledge import behaviour
from torchmemlint.knowledge import modules as known_modules
from torchmemlint.syntax.text import shortened, text_of

# Methods of a module other than calling it that run a forward pass, besides those of the project.
FORWARD_METHODS = frozenset(
    "forward encode decode encode_image encode_text encode_prompt get_image_features get_text_features "
    "extract_features "
    "forward_features forward_head get_last_hidden_state get_features predict_noise predict_logits".split()
)
# transformers, modeling_utils.py: PreTrainedModel.get_decoder, get_encoder give the backbone (peft: get_base_model).
_PARTS = frozenset({"get_decoder", "get_encoder", "get_base_model"})
# No model that an `Auto` class of transformers makes has these: its repository's own code does, and guards itself.
# That of a repository of torch.hub makes of a text what it will (fairseq, models/roberta/hub_interface.py: numbers).
_OF_REMOTE_CODE = frozenset({"encode", "encode_image", "encode_text"})
_OF_TOKENIZERS = frozenset({"encode", "decode"})  # a part of a model that has these may be no module
_ASKED = frozenset({"CrossEntropyLoss", "CosineSimilarity"})  # layers whose settings rules ask about


def construct(it: Interpreter, node: cst.Call, cls: ClassInfo, arguments: Arguments) -> Value:
    """A project class called."""
    oid = it.oid(node, it.frame.path)
    made = it.site(node)
    if cls.is_module:
        it.state.heap.pop((oid, "training"), None)  # whatever mode the one that was made here before was left in
        value: Value = ModuleValue(
            oid,
            cls=cls,
            parameters=_class_has_parameters(it, cls),
            why=Step(made, f"`{cls.name}` is an nn.Module"),
            made=made,
            loops=it.frame.loops,
        )
    elif any(base.rpartition(".")[2] == "DataLoader" for base in cls.external_bases()):
        return Known("loader", oid, cls.name, made, (), it.frame.loops)
    elif any(base.startswith("torch.optim.") for base in cls.external_bases()):
        return Known("optimizer", oid, cls.name, made)
    else:
        value = Instance(oid, cls, it.frame.loops, made)
        if cls.program is not it.main:
            it.foreign_objects.add(oid)
    if isinstance(value, ModuleValue) and not cls.builds_layers:
        inner = [a for a in arguments.values if isinstance(a, ModuleValue)]
        if inner and all(_frozen(it, m) for m in inner):
            it.state.heap[(oid, "frozen")] = Flag(True, made)  # a wrapper of frozen modules
    init = cls.method("__init__")
    if isinstance(value, ModuleValue) and init is not None and not _walked(it, init) and freezing.freezes_itself(cls):
        it.state.heap[(oid, "frozen")] = Flag(True, made)
    if init is not None and init in it.constructors and isinstance(value, ModuleValue):
        calls.announce(it, node, FunctionValue(init, value), arguments)
    elif init is not None:
        calls.inline(it, node, FunctionValue(init, value), arguments.items, arguments)
    elif "dataclass" in {d.rpartition(".")[2] for d in cls.decorator_texts()}:
        configurations.fill(it, oid, cls, arguments)
    return value


def _walked(it: Interpreter, constructor: Function) -> bool:
    """Is a constructor followed for each object, so that what it does to the object is known?"""
    return it.wants(constructor) and constructor not in it.constructors


_PLAIN_BASES = ("torch.nn.Module", "object", "abc.ABC", "typing.Generic")


def _class_has_parameters(it: Interpreter, cls: ClassInfo) -> bool | None:
    """False where a project module visibly builds no layers and no parameters; of other files, where it shows none."""
    if cls.local is not None:
        return None  # what it builds is in no outline
    if cls.program is not it.main:
        return None if cls.shows_layers else False
    if any(not base.startswith(_PLAIN_BASES) for base in cls.external_bases()):
        return None
    for ancestor in cls.ancestors():
        for path in ancestor.outline.called:
            qualified = cls.program.qualify(path)
            if qualified in ("torch.nn.Parameter", "torch.nn.parameter.Parameter") or path == "self.register_parameter":
                return None
            if it.contracts.is_module_class(qualified) and known_modules.has_parameters(qualified) is not False:
                return None
            if cls.program.find_class(path.rpartition(".")[2]) is not None:
                return None
            if qualified.startswith(".") or path.startswith("self."):
                continue
    init = cls.method("__init__")
    if init is None or not init.outline.called - {"super", "super().__init__"}:
        return False
    own = {f"self.{name}" for ancestor in cls.ancestors() for name in ancestor.methods}  # looked into above
    plain = {"super", "isinstance", "len", "range", "int", "float", "self.register_buffer"}
    unknown = {p for p in init.outline.called if p not in plain | own}
    return False if all(_makes_no_parameters(cls.program, path) for path in unknown) else None


def own_parameters(it: Interpreter, cls: ClassInfo) -> bool | None:
    """Of a class's own object: False where it makes nothing that has parameters and runs nothing given."""
    if any(other is not cls and cls in other.ancestors() for other in it.program.classes.values()):
        return None  # a subclass may
    own = {f"self.{name}" for ancestor in cls.ancestors() for name in ancestor.methods}
    own |= {f"self.{name}" for name in known_modules.METHODS}
    called = set().union(*(ancestor.outline.called for ancestor in cls.ancestors()))
    run = {path.removesuffix(".forward") for path in called if path.startswith("self.")}
    if any(path.count(".") == 1 and path not in own for path in run):
        return None
    return _class_has_parameters(it, cls)


def _makes_no_parameters(program: Program, path: str, *, within: bool = False) -> bool:
    """Is what a constructor calls without parameters for sure: a layer that has none, an operation, or a function of
    the same file that calls such things only, and methods of its own values?
    """
    if known_modules.has_parameters(program.qualify(path)) is False:
        return True
    if path.startswith(("torch.", "math.", "np.")):
        return not program.contracts.is_module_class(program.qualify(path)) and not path.endswith(".Parameter")
    function = program.find_function(path)
    if function is not None:
        called = function.outline.called
        return not within and all(_makes_no_parameters(program, inner, within=True) for inner in called)
    head, _, method = path.partition(".")
    own = head not in program.imported and not program.defines(head)
    return within and own and (bool(method) or hasattr(builtins, head))


def build(it: Interpreter, node: cst.Call, qualified: str, arguments: Arguments) -> Value:
    """A library module class or factory called."""
    made = it.site(node)
    last = qualified.rpartition(".")[2]
    children: tuple[Value, ...] = ()
    if last in ("Sequential", "ModuleList") and qualified.startswith("torch.nn."):
        children = layers.children(it, arguments)
        it.state.heap.pop((it.oid(node, it.frame.path), "[]"), None)  # made anew, without what was added to the former
    parameters = known_modules.has_parameters(qualified)
    if children and all(isinstance(c, ModuleValue) and c.parameters is False for c in children):
        parameters = False
    if it.contracts.is_wrapper(qualified) and arguments.items and isinstance(arguments.items[0].value, ModuleValue):
        return arguments.items[0].value
    oid = it.oid(node, it.frame.path)
    if any(isinstance(c, ModuleValue) and _frozen(it, c) for c in children) and not any(
        _trains(it, c) for c in children
    ):
        it.state.heap[(oid, "frozen")] = Flag(True, made)  # made of frozen layers
    return ModuleValue(
        oid,
        qualified,
        parameters=parameters,
        why=Step(made, f"`{shortened(text_of(node.func), 40)}` makes an nn.Module"),
        made=made,
        arguments=arguments.pairs() if last in _ASKED else (),
        children=children,
        single=layers.gives_one_tensor(qualified, children),
        loops=it.frame.loops,
    )


def copied(it: Interpreter, node: cst.Call, module: ModuleValue) -> ModuleValue:
    """A module like another, which goes on by itself: `.eval()` and freezing of the copy leave the other as it is."""
    oid = it.oid(node, it.frame.path)
    for attribute, value in it.state.heap.of(module.oid):
        it.state.heap[(oid, attribute)] = value
    return replace(module, oid=oid)


def _trains(it: Interpreter, value: Value) -> bool:
    """May a part of a module have parameters that are trained?"""
    return not isinstance(value, ModuleValue) or (value.parameters is not False and not _frozen(it, value))


def _built_as_sequential(it: Interpreter, node: cst.Call, arguments: Arguments) -> bool:
    """`super().__init__(layer, layer)` in a subclass of Sequential."""
    function = it.frame.function
    cls = function.cls if function is not None else None
    return cls is not None and any(base.endswith("nn.Sequential") for base in cls.external_bases())


# -- calling ---------------------------------------------------------------------------------------------------------


def call(it: Interpreter, node: cst.Call, module: ModuleValue, arguments: Arguments, method: str = "") -> Value:
    """A forward pass."""
    if module.qualified == PIPELINE and not method:
        return Unknown()  # `__call__` turns gradients off itself
    if module.qualified in layers.CONTAINERS:
        module = layers.grown(it, module)
    it.computed += 1
    made = it.site(node)
    origin = it.origin(node)
    trains = module.parameters is not False and not _frozen(it, module)
    inputs = calls.argument_graph(arguments.values, it)
    forward = module.cls.method(method or "forward") if module.cls is not None else None
    guards_itself = False
    if forward is not None and it.wants(forward):
        before, abstract = len(it.forwards), it.abstract
        result = calls.walk_or_skip(it, node, FunctionValue(forward, module), arguments)
        in_the_open = it.left_in != {Mode.OFF} and _carries(it, result, perhaps=True)
        # What subclasses replace is not known to run a layer, either.
        guards_itself = len(it.forwards) == before and (not in_the_open or it.abstract > abstract)
        result = _with_call(it, result, origin, made, trains, module, arguments, node)
        if _frozen(it, module):
            result = freezing.result(it, result, inputs)
    else:
        result = _opaque(it, node, module, arguments, trains, inputs, origin)
        if forward is not None and gradient_modes.off_by_default(it.contracts, forward, arguments):
            return _without_graph(it, result)
    if it.state.mode is Mode.OFF:
        return _without_graph(it, result)
    if module.parameters is not False and not guards_itself:
        switch = _evaluating(it, module)
        it.forwards.append(switch.site if switch is not None else None)
        it.forward_origins.add(origin)
    return result


def _frozen(it: Interpreter, module: ModuleValue) -> bool:
    return isinstance(it.heap_value(module, "frozen"), Flag)


def _opaque(
    it: Interpreter,
    node: cst.Call,
    module: ModuleValue,
    arguments: Arguments,
    trains: bool,
    inputs: Graph,
    origin: Origin,
) -> Value:
    """The output of a module whose forward is not in view."""
    made = it.site(node)
    values = _flat(it, arguments.values)
    base = tensor_from(values, producer=_producer(module), made=made)
    carried = frozenset(replace(c, via=Via.MODULE) for c in base.carried) if base.carried else base.carried
    graph = Graph.LIVE if trains or inputs is Graph.LIVE else base.graph
    if it.state.mode is Mode.UNKNOWN and graph is Graph.LIVE:
        graph = Graph.UNKNOWN
    if graph is Graph.UNKNOWN and it.proved(made) is not None:
        graph = Graph.LIVE
    history = base.history
    if graph is Graph.LIVE and trains:
        history = (Step(made, f"`{shortened(text_of(node), 40)}` runs with gradients on"),)
    elif graph is Graph.LIVE and len(history) < 5:
        history = (*history, Step(made, f"through `{shortened(text_of(node.func), 30)}`"))
    origins = base.origins | {origin} if module.parameters is not False else base.origins
    exact = module.single
    result = Tensor(
        graph,
        cap(origins),
        history,
        carried,
        exact=exact,
        certain=exact or all(not isinstance(v, Tensor) or v.certain for v in values),
        producer=_producer(module),
        made=made,
    )
    if module.qualified in ("torch.nn.GRU", "torch.nn.RNN"):
        output = replace(result, exact=True, certain=True)
        state = replace(output, producer="unpack")
        return containers.literal(it, node, "tuple", [(node, output), (node, state)], False)
    return result


def _producer(module: ModuleValue) -> str:
    return module.qualified or (module.cls.name if module.cls is not None else "module")


def _flat(it: Interpreter, values: list[Value], depth: int = 0) -> list[Value]:
    found: list[Value] = []
    for value in values:
        if isinstance(value, Container) and depth < 3:
            found += _flat(it, list(it.elements(value)), depth + 1)
        else:
            found.append(value)
    return found


def _with_call(
    it: Interpreter,
    result: Value,
    origin: Origin,
    made: object,
    trains: bool,
    module: ModuleValue,
    arguments: Arguments,
    node: cst.Call,
) -> Value:
    """The result of a project module's walked forward, with this call among its origins."""
    step = Step(it.site(node), f"`{shortened(text_of(node), 40)}` runs with gradients on")
    carried: frozenset[Carry] = frozenset()
    if isinstance(result, Unknown):
        base = tensor_from(_flat(it, arguments.values), producer=_producer(module), made=it.site(node))
        carried = frozenset(replace(c, via=Via.MODULE) for c in base.carried)
        graph = Graph.LIVE if trains and it.state.mode is Mode.ON else base.graph
        return Tensor(
            graph,
            cap(base.origins | {origin} | result.origins),
            (step,) if graph is Graph.LIVE else (),
            carried,
            exact=False,
            producer=_producer(module),
            made=it.site(node),
        )
    return with_origin(it, result, origin, step)


def with_origin(it: Interpreter, value: Value, origin: Origin, step: Step, depth: int = 0) -> Value:
    """The value with one more graph-making place in the past of its graph-carrying parts."""
    if isinstance(value, Tensor) and value.graph >= Graph.UNKNOWN:
        history = (step, *value.history[:3]) if value.carries_graph else value.history
        carried = frozenset(replace(c, via=Via.MODULE) for c in value.carried) if value.carried else value.carried
        return replace(value, origins=cap(value.origins | {origin}), history=history, carried=carried)
    if isinstance(value, Unknown):
        return replace(value, origins=cap(value.origins | {origin}))
    if isinstance(value, Container) and depth < 3:
        for key, element, _ in list(containers.entries(it, value)):
            it.state.heap[(value.oid, key)] = with_origin(it, element, origin, step, depth + 1)
        if value.items is not None:
            items = tuple(with_origin(it, item, origin, step, depth + 1) for item in value.items)
            return replace(value, items=items)
    return value


def _carries(it: Interpreter, value: Value, depth: int = 0, *, perhaps: bool = False) -> bool:
    """Does a value have a graph, or a part of it? `perhaps`: or something that is not known, and may have one."""
    if isinstance(value, Tensor):
        return value.carries_graph or (perhaps and value.graph is not Graph.NONE)
    if isinstance(value, Container) and depth < 3:
        return any(_carries(it, element, depth + 1, perhaps=perhaps) for element in it.elements(value))
    return perhaps and isinstance(value, Unknown)


def _without_graph(it: Interpreter, value: Value, depth: int = 0) -> Value:
    if isinstance(value, Tensor):
        return replace(value, graph=Graph.NONE, origins=frozenset(), history=(), carried=frozenset())
    if isinstance(value, Unknown):
        return replace(value, origins=frozenset(), carried=frozenset())
    if isinstance(value, Container) and depth < 3:
        for key, element, _ in list(containers.entries(it, value)):
            it.state.heap[(value.oid, key)] = _without_graph(it, element, depth + 1)
        if value.items is not None:
            return replace(value, items=tuple(_without_graph(it, item, depth + 1) for item in value.items))
    return value


def project_result(
    it: Interpreter,
    node: cst.CSTNode,
    callee: FunctionValue,
    result: Value,
    ran_forward: bool,
    arguments: Arguments,
) -> Value:
    """What a walked project function returns, with the call among its origins when it made the graph itself."""
    if not isinstance(node, cst.Call):
        return result
    if it.state.mode is Mode.OFF:
        return result
    if isinstance(callee.bound, ModuleValue) and _frozen(it, callee.bound):
        result = freezing.result(it, result, calls.argument_graph(arguments.values, it))
    if isinstance(result, Unknown) and result.origins:
        origin = it.origin(node)
        if ran_forward or not it.weak_origins.isdisjoint(result.origins):
            it.weak_origins.add(origin)
        return replace(result, origins=cap(result.origins | {origin}))
    if not _carries(it, result):
        return result
    if calls.argument_graph(arguments.values, it) is Graph.LIVE or not ran_forward:
        return result
    origin = it.origin(node)
    name = shortened(text_of(node.func), 40)
    step = Step(it.site(node), f"`{name}(...)` returns it with its graph")
    return with_origin(it, result, origin, step)


# -- methods ---------------------------------------------------------------------------------------------------------


def method(it: Interpreter, node: cst.Call, module: ModuleValue, name: str, arguments: Arguments) -> Value:
    """A method of a module that the project does not define."""
    site = it.site(node)
    if name == "__init__" and _built_as_sequential(it, node, arguments):
        return Constant(None, True)
    if name in layers.GROWING and module.qualified in layers.CONTAINERS:
        layers.grow(it, node, module, name, arguments)
        if name not in ("add_module", "register_module"):
            return module
    if name in ("eval", "train"):
        on = name == "train" and _train_flag(arguments) is not False
        if name == "train" and _train_flag(arguments) is None:
            it.effect("restores training mode")
            it.state.heap.pop((module.oid, "training"), None)
        else:
            it.state.heap[(module.oid, "training")] = Flag(on, site)
        return module
    if name == "requires_grad_":
        value = arguments.get("0", "requires_grad")
        if isinstance(value, Constant) and value.known and not value.value:
            it.state.heap[(module.oid, "frozen")] = Flag(True, site)
        elif value is None or isinstance(value, Constant):
            it.state.heap.pop((module.oid, "frozen"), None)
        else:
            it.state.heap[(module.oid, "frozen")] = Flag(True, site)
        return module
    # What freezes a part of a model before it is trained stands before `eval()`.
    if name == "freeze" or (name.startswith("freeze_") and module.cls is None and _evaluating(it, module)):
        it.state.heap[(module.oid, "frozen")] = Flag(True, site)  # Lightning's, NeMo's and many a project's own
    if name in behaviour.RETURNS_ITSELF:
        return module
    if name in ("parameters", "buffers"):
        return Known("parameters" if name == "parameters" else "buffers", module.oid, made=site)
    if name in ("named_parameters",):
        element = containers.literal(
            it, node, "tuple", [(node.func, NUMBER), (node.func, _parameter_of(it, node, module))], False
        )
        return Known("iterator", element=element)
    if name in ("named_modules", "named_children", "modules", "children"):
        part = ModuleValue(it.oid("part", module.oid), why=module.why, made=module.made)
        if _frozen(it, module):
            it.state.heap[(part.oid, "frozen")] = Flag(True, site)
        if name.startswith("named"):
            return Known(
                "iterator",
                element=containers.literal(it, node, "tuple", [(node.func, NUMBER), (node.func, part)], False),
            )
        return Known("iterator", element=part)
    configured = module.cls.method("configure_optimizers") if name == "optimizers" and module.cls is not None else None
    if configured is not None:
        return _configured(it, node, FunctionValue(configured, module))
    if name in (
        "state_dict",
        "named_buffers",
        "load_state_dict",
        "zero_grad",
        "extra_repr",
        "no_sync",
        "train_dataloader",
    ):
        return Known("state dict") if name == "state_dict" else Known("context")
    if name.startswith("register_") and "hook" in name:
        hook(it, node, name, arguments)
        return Unknown()
    if name in ("register_buffer", "register_parameter", "add_module"):
        return _register(it, node, module, name, arguments)
    if it.contracts.names("runs-without-gradients").has_method(name):
        return Tensor(Graph.NONE, producer=name, made=site)
    if name == "forward":
        return call(it, node, module, arguments)
    if name in _PARTS and module.cls is None:
        return replace(module, qualified="", parameters=None, single=False)
    if name in _OF_REMOTE_CODE and module.qualified.startswith(OF_ANY_REPOSITORY):
        return calls.unknown_call(it, node, Unknown(part_of=module), arguments)
    if name in FORWARD_METHODS and not (name in _OF_TOKENIZERS and module.cls is None and _are_texts(arguments)):
        return call(it, node, module, arguments, method=name)
    if module.cls is None and _attribute_is_module(it, node):
        return call(it, node, module, arguments, method=name)
    return calls.unknown_call(it, node, Unknown(part_of=module), arguments)


def _evaluating(it: Interpreter, module: ModuleValue) -> Flag | None:
    """What put the module into evaluation mode, if it is in that."""
    training = it.heap_value(module, "training")
    return training if isinstance(training, Flag) and not training.on else None


def _are_texts(arguments: Arguments) -> bool:
    """Is a method given nothing but texts? What turns these into numbers for a model gives no graph."""
    values = arguments.values
    return bool(values) and all(isinstance(one, Constant) and isinstance(one.value, str) for one in values)


def _configured(it: Interpreter, node: cst.Call, configure: FunctionValue) -> Value:
    """Lightning's `self.optimizers()`: those that `configure_optimizers` returns, with or without schedulers."""
    value = calls.inline(it, node, configure, [])
    first = value.items[0] if isinstance(value, Container) and value.items else None
    return first if isinstance(first, Container) and first.kind in ("list", "tuple") else value


def _attribute_is_module(it: Interpreter, node: cst.Call) -> bool:
    """`ac.pi(x)` where `ac.pi.parameters()` stands elsewhere: a submodule is called."""
    from torchmemlint.syntax.outline import dotted_text

    path = dotted_text(node.func)
    return bool(path) and behaviour.role(it.methods_called_on(path), it.contracts.pipeline_methods) == "module"


def part_method(it: Interpreter, node: cst.Call, owner: Unknown, name: str, arguments: Arguments) -> Value:
    """A method of a part of a module: `model.visual.encode(x)`."""
    module = owner.part_of
    if module is not None and (name in FORWARD_METHODS - _OF_TOKENIZERS or _attribute_is_module(it, node)):
        return call(
            it, node, replace(module, cls=None, qualified="", parameters=None, single=False), arguments, method=name
        )
    return calls.unknown_call(it, node, owner, arguments)


def _parameter_of(it: Interpreter, node: cst.Call, module: ModuleValue) -> Tensor:
    frozen = _frozen(it, module)
    return Tensor(
        Graph.NONE if frozen else Graph.LIVE,
        frozenset({it.origin(node)}),
        () if frozen else (Step(it.site(node), "is a parameter"),),
        producer="parameter",
        made=it.site(node),
        parameter_of=module.oid,
    )


def _train_flag(arguments: Arguments) -> bool | None:
    value = arguments.get("0", "mode")
    if value is None:
        return True
    return bool(value.value) if isinstance(value, Constant) and value.known else None


def _register(it: Interpreter, node: cst.Call, module: ModuleValue, name: str, arguments: Arguments) -> Value:
    key, value = arguments.get("0", "name"), arguments.get("1", "tensor", "param", "module")
    if isinstance(key, Constant) and isinstance(key.value, str) and value is not None:
        if name == "register_buffer" and isinstance(value, Tensor):
            value = replace(value, graph=Graph.NONE if value.graph is Graph.UNKNOWN else value.graph)
        it.state.heap[(module.oid, key.value)] = value
        it.written((module.oid, key.value))
    return Constant(None, True)


def hook(it: Interpreter, node: cst.Call, name: str, arguments: Arguments) -> None:
    """A function registered as a hook: it will be called with a module's inputs and outputs."""
    value = arguments.get("0", "hook")
    given: tuple[tuple[str, Value], ...] = ()
    if isinstance(value, Partial):
        given = value.arguments
        value = value.target
    argument = arguments.find("0", "hook")
    if argument is not None and isinstance(argument.node, cst.Lambda):
        _lambda_hook(it, name, argument.node)
    if isinstance(value, FunctionValue):
        it.asked.other |= value.function not in it.hooked and value.function in it.taken_down
        registered = it.hooked.setdefault(value.function, [])
        registered[:] = [r for r in registered if r[1] is not it.site(node)]
        registered.append((given, it.site(node), name, it.state.mode))


def _lambda_hook(it: Interpreter, name: str, hook_node: cst.Lambda) -> None:
    """A hook written as a lambda: its body is walked with what hooks are given."""
    if it.state.mode is not Mode.ON or name not in ("register_forward_hook", "register_forward_pre_hook"):
        return
    before, loops = it.state.copy(), it.frame.loops
    parameters = list(hook_node.params.params)
    for parameter in parameters[1:]:
        it.state.vars[parameter.name.value] = hook_tensor(it, parameter)
    it.frame.loops = (*loops, LoopMark(None, "calls of a hook"))
    try:
        it.evaluate(hook_node.body)
    finally:
        it.frame.loops = loops
        heap = it.state.heap
        it.state.adopt(before)
        it.state.heap = heap


def hook_tensor(it: Interpreter, parameter: cst.Param) -> Tensor:
    """What a hook is given of the module that it is put on."""
    return Tensor(
        Graph.LIVE,
        frozenset({it.origin(parameter)}),
        (Step(it.site(parameter), "is what the hooked module computed, with its graph"),),
        exact=it.is_shown_to_be_tensor(it.site(parameter)),
        producer="hook",
        made=it.site(parameter),
    )

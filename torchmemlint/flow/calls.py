"""Calls: who is called, with what, and calls into the project followed by walking the callee."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from torchmemlint.flow import (
    attributes,
    containers,
    contracted,
    gradient_modes,
    library,
    modules,
    properties,
    tensors,
)
from torchmemlint.flow.arguments import Argument, Arguments, evaluate_arguments
from torchmemlint.flow.interpreter import MAX_ELEMENT_DEPTH, CallRecord, Entrance, Frame, Interpreter
from torchmemlint.flow.program import Function
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import (
    NUMBER,
    ClassValue,
    Constant,
    Container,
    External,
    FunctionValue,
    GradMode,
    Graph,
    Instance,
    Known,
    LoopMark,
    Method,
    Mode,
    ModuleValue,
    Origin,
    Partial,
    Tensor,
    Unknown,
    Value,
    cap,
    join,
)
from torchmemlint.syntax.text import string_value, text_of


def call(it: Interpreter, node: cst.Call) -> Value:
    """The value of a call."""
    func = node.func
    if type(func) is cst.Attribute:
        if type(func.value) is cst.Subscript and func.attr.value in tensors.SHOWING:
            it.show_to_be_tensor(it.site(func.value))  # ahead of its evaluation, which asks for it
        owner = it.evaluate(func.value)
        callee = attributes.read(it, func, owner, func.attr.value, called=True)
    elif type(func) is cst.Name and func.value == "super":
        return _super(it)
    else:
        callee = it.evaluate(func)
    arguments = evaluate_arguments(it, node.args)
    return apply(it, node, callee, arguments)


def apply(it: Interpreter, node: cst.Call, callee: Value, arguments: Arguments) -> Value:
    """Call a value."""
    match callee:
        case External(qualified=qualified):
            return library.call(it, node, qualified, arguments)
        case FunctionValue(bound=ModuleValue() as module) if callee.function.name == "forward":
            return modules.call(it, node, module, arguments)
        case FunctionValue():
            return inline(it, node, callee, arguments.items, arguments)
        case ClassValue():
            return modules.construct(it, node, callee.cls, arguments)
        case ModuleValue():
            own = callee.cls.method("__call__") if callee.cls is not None else None
            if own is not None and _stands_in_for_forward(it, own):
                return inline(it, node, FunctionValue(own, callee), arguments.items, arguments)
            return modules.call(it, node, callee, arguments)
        case Method():
            return method(it, node, callee, arguments)
        case Partial(target=target, arguments=given):
            merged = Arguments([*(Argument(n, v, node) for n, v in given), *arguments.items])
            merged.unknown_keywords = arguments.unknown_keywords
            return apply(it, node, target, merged)
        case GradMode():
            return gradient_modes.applied(arguments)
        case Instance():
            function = callee.cls.method("__call__")
            if function is not None:
                return inline(it, node, FunctionValue(function, callee), arguments.items, arguments)
            return unknown_call(it, node, callee, arguments)
        case Known():
            return library.call_object(it, node, callee, arguments)
        case Unknown(path=path) if path in BUILTINS:
            return library.builtin(it, node, path, arguments)
        case _:
            return unknown_call(it, node, callee, arguments)


BUILTINS = library.BUILTINS


def _stands_in_for_forward(it: Interpreter, own: Function) -> bool:
    """Is a module's `__call__` another entrance than torch's, or one that turns gradients off on the way to it?"""
    return "__call__" not in own.outline.calls or gradient_modes.mode_of_function(it, own, Mode.ON) is Mode.OFF


def method(it: Interpreter, node: cst.Call, callee: Method, arguments: Arguments) -> Value:
    """A method of a value that the project does not define."""
    name = callee.name
    promised = contracted.method(it, node, callee, arguments)
    if promised is not None:
        return promised
    match callee.owner:
        case Tensor() as tensor:
            return tensors.method(it, node, tensor, name, arguments)
        case Container() as container:
            return containers.method(it, node, container, name, arguments.triples())
        case ModuleValue() as module:
            return modules.method(it, node, module, name, arguments)
        case Known() as known:
            return library.object_method(it, node, known, name, arguments)
        case owner:
            return library.unknown_method(it, node, owner, name, callee.path, arguments)


def unknown_call(it: Interpreter, node: cst.Call, callee: Value, arguments: Arguments) -> Value:
    """A call that is not understood: its arguments may be kept, read or differentiated."""
    if arguments.find("volatile") is not None and isinstance(node.func, cst.Name) and node.func.value == "Variable":
        return library.variable(it, node, arguments)  # made anew by its users: `Variable = lambda *args, **kwargs: ...`
    origins: frozenset[Origin] = frozenset()
    for value in arguments.values:
        origins |= it.deep_origins(value)
        if isinstance(value, FunctionValue):
            it.called_back.add(value.function)
    if it.state.mode is Mode.OFF or arguments.find("return_tensors") is not None:
        return Unknown()  # tokenizers and processors make tensors out of text and images
    made = it.origin(node)
    it.callees[made] = text_of(node.func)
    if isinstance(callee, Unknown) and callee.path and isinstance(node.func, cst.Name | cst.Attribute) and node.args:
        it.weak_origins.add(made)  # it may well be a module: what is done with its result will tell
    if it.proved(made.site, switches=it.switched(made, arguments.switches)) is not None:
        it.forwards.append(None)
        value = containers.proved_tensor(it, made, Unknown(origins))
        return replace(value, exact=(made.site, -1) not in it.indirect)
    return Unknown(origins | {made}, made)


def lambda_value(it: Interpreter, node: cst.Lambda) -> Value:
    """A lambda: walked at once for what it does with the values it closes over."""
    before = it.state.copy()
    for parameter in node.params.params:
        it.state.vars[parameter.name.value] = Unknown()
    recording, it.frame.recording = it.frame.recording, False
    try:
        value = it.evaluate(node.body)
    finally:
        it.frame.recording = recording
        it.state.adopt(before)
    return Unknown(it.deep_origins(value))


def _super(it: Interpreter) -> Value:
    """`super()`: the object seen as its base class."""
    value = it.frame.self_value
    if isinstance(value, ModuleValue | Instance) and value.cls is not None:
        for base in list(value.cls.ancestors())[1:]:
            return replace(value, cls=base)
        if isinstance(value, ModuleValue):
            library = next((base for base in value.cls.bases if not base.startswith("torch.nn.")), "")
            return replace(value, cls=None, qualified=library)
    return Unknown()


# -- calls into the project ------------------------------------------------------------------------------------------


def inline(
    it: Interpreter,
    node: cst.CSTNode,
    callee: FunctionValue,
    items: Sequence[Argument],
    arguments: Arguments | None = None,
) -> Value:
    """Walk a project function with these arguments; what it returns, with the call itself as an origin."""
    function = callee.function
    given = arguments or Arguments(list(items))
    mode = gradient_modes.mode_of_function(it, function, it.state.mode)
    bound = bind(it, callee, given)
    record_call(it, node, function, mode, bound)
    if node is it.last_call and it.frame.function is None:
        it.called_last = function
        return Unknown()
    if function.is_abstract:
        it.abstract += 1
        return _not_followed(it, node, given)
    if not it.wants(function):
        return _not_followed(it, node, given)
    if any(text.endswith("contextmanager") for text in function.decorator_texts()):
        return _context_manager(it, node, callee, bound, mode)
    before = len(it.forwards)
    result = properties.result(it, callee, mode, lambda: walk(it, node, callee, bound, mode, given))
    return modules.project_result(it, node, callee, result, len(it.forwards) > before, given)


def _context_manager(
    it: Interpreter, node: cst.CSTNode, callee: FunctionValue, bound: dict[str, Value], mode: Mode
) -> Value:
    """A project generator under `contextlib.contextmanager`: the mode at its yield is the mode of the `with` body, and
    what it yields is what the `with` statement gives a name."""
    modes: list[Mode] = []
    it.yield_modes.append(modes)
    try:
        yielded = walk(it, node, callee, bound, mode)
    finally:
        it.yield_modes.pop()
    oid = it.oid("context", node, it.frame.path)
    it.context_modes[oid] = modes[0] if modes and all(m is modes[0] for m in modes) else Mode.UNKNOWN
    return Known("context manager", oid, element=yielded.element if isinstance(yielded, Known) else None)


def walk_or_skip(it: Interpreter, node: cst.Call, callee: FunctionValue, arguments: Arguments) -> Value:
    """A module's own forward walked, its call remembered; unknown where it cannot be followed."""
    function = callee.function
    mode = gradient_modes.mode_of_function(it, function, it.state.mode)
    bound = bind(it, callee, arguments)
    record_call(it, node, function, mode, bound)
    if not it.wants(function):
        return Unknown()
    return walk(it, node, callee, bound, mode)


def announce(it: Interpreter, node: cst.Call, callee: FunctionValue, arguments: Arguments) -> None:
    """A call that is remembered for the callee's own walk and not followed here."""
    mode = gradient_modes.mode_of_function(it, callee.function, it.state.mode)
    record_call(it, node, callee.function, mode, bind(it, callee, arguments))


def _not_followed(it: Interpreter, node: cst.CSTNode, arguments: Arguments) -> Value:
    origins: frozenset[Origin] = frozenset()
    for value in arguments.values:
        origins |= it.deep_origins(value)
    made = it.origin(node)
    if it.proved(made.site, switches=it.switched(made, arguments.switches)) is not None:
        return containers.proved_tensor(it, made, Unknown(origins))
    return Unknown(origins | {made}, made)


def walk(
    it: Interpreter,
    node: cst.CSTNode,
    callee: FunctionValue,
    bound: dict[str, Value],
    mode: Mode,
    given: Arguments | None = None,
) -> Value:
    """The callee's body with its parameters bound; the join of what it returns."""
    function = callee.function
    frame = Frame(
        function,
        function.piece,
        function.outline,
        it.frame.loops,
        path=(*it.frame.path, it.site(node).serial),
        self_value=callee.bound,
        self_name=self_name(function) if callee.bound is not None else "",
        closure=closure_of(it, callee),
        recording=False,
        entrance=_entrance(it, node, function, given),
    )
    it.active.append(function)
    try:
        with it.entered(frame, dict(bound), mode):
            it.execute_body(function.node.body)
            fell_through = not it.state.dead
            grad_mode = it.state.mode
    finally:
        it.active.pop()
    it.left_in = {*(state.mode for state in frame.return_states), *([grad_mode] if fell_through else ())}
    if not function.node.decorators and grad_mode is not mode and fell_through and not frame.return_states:
        it.state.mode = grad_mode  # `torch.set_grad_enabled(False)` in a helper lasts
    return returned(it, frame, fell_through)


def _entrance(it: Interpreter, node: cst.CSTNode, function: Function, given: Arguments | None) -> Entrance | None:
    """The call that leads out of the analysed file."""
    if function.program is it.main:
        return None
    if it.program is not it.main or not it.recording or not isinstance(node, cst.Call | cst.Subscript):
        return it.frame.entrance
    items = given.items if given is not None else ()
    arguments = tuple((it.site(item.node), item.value, _graphs_in(it, item.value)) for item in items)
    callee = node.func if isinstance(node, cst.Call) else node.value
    return Entrance(it.site(node), it.scope, text_of(callee), arguments)


def _graphs_in(it: Interpreter, value: Value, depth: int = 0) -> frozenset[Origin]:
    """Origins of a tensor, or of the graphs in a container."""
    if isinstance(value, Tensor):
        return value.origins if value.carries_graph or depth == 0 else frozenset()
    if not isinstance(value, Container) or depth >= MAX_ELEMENT_DEPTH:
        return frozenset()
    return frozenset[Origin]().union(*(_graphs_in(it, element, depth + 1) for element in it.elements(value)))


def returned(it: Interpreter, frame: Frame, fell_through: bool) -> Value:
    """What a walked frame gives to its caller."""
    if frame.yields:
        element: Value | None = None
        for value in frame.yields:
            element = value if element is None else join(element, value)
        return Known("iterator", element=element)
    result: Value | None = None
    for value in frame.returns:
        result = value if result is None else _join_returns(it, result, value)
    if result is None:
        return Constant(None, True) if fell_through else Unknown()  # only raises: an abstract method
    return result


def _join_returns(it: Interpreter, a: Value, b: Value) -> Value:
    """`return loss` and `return loss, extra` in one function: tuples of one length join element by element."""
    if (
        isinstance(a, Container)
        and isinstance(b, Container)
        and a.items is not None
        and b.items is not None
        and len(a.items) == len(b.items)
        and a.kind == b.kind == "tuple"
    ):
        return replace(a, items=tuple(join(x, y) for x, y in zip(a.items, b.items, strict=True)))
    if isinstance(a, Container) and isinstance(b, Container) and a.kind == b.kind == "dict":
        for key, value, site in list(containers.entries(it, b)):
            containers.store(it, a, key, value, site)
        return a
    joined = join(a, b)
    if isinstance(joined, Unknown):
        return replace(joined, origins=cap(joined.origins | it.deep_origins(a) | it.deep_origins(b)))
    return joined


def closure_of(it: Interpreter, callee: FunctionValue) -> dict[str, Value]:
    """What the callee sees of its defining function."""
    parent = callee.function.parent
    if parent is None:
        return {}
    if it.frame.function is parent:
        return {**it.frame.closure, **it.state.vars}
    return {**it.nested.get(callee.function, {}), **dict(callee.closure)}


def self_name(function: Function) -> str:
    """The name of a method's first parameter."""
    parameters = [*function.node.params.posonly_params, *function.node.params.params]
    return parameters[0].name.value if parameters else ""


def bind(it: Interpreter, callee: FunctionValue, arguments: Arguments) -> dict[str, Value]:
    """Parameter names to values, defaults included."""
    params = callee.function.node.params
    names = [p.name.value for p in (*params.posonly_params, *params.params)]
    bound: dict[str, Value] = {}
    if callee.bound is not None and names:
        bound[names.pop(0)] = callee.bound
    rest: list[Value] = []
    keywords: list[tuple[str, Value]] = []
    known = {*names, *(p.name.value for p in params.kwonly_params)}
    for item in arguments.items:
        if item.name.isdigit():
            index = int(item.name)
            if index < len(names):
                bound[names[index]] = item.value
            else:
                rest.append(item.value)
        elif item.name in known:
            bound[item.name] = item.value
        else:
            keywords.append((item.name, item.value))
    for parameter in (*params.posonly_params, *params.params, *params.kwonly_params):
        name = parameter.name.value
        if name not in bound and parameter.default is not None and not arguments.unknown_keywords:
            bound[name] = constant_default(parameter.default)
        bound.setdefault(name, Unknown(path=name))
    if type(params.star_arg) is cst.Param:
        star = containers.fresh(it, params.star_arg, "tuple")
        if not arguments.unknown_positional:
            star = replace(star, items=tuple(rest))
        bound[params.star_arg.name.value] = star
    if params.star_kwarg is not None:
        kwargs = containers.fresh(it, params.star_kwarg, "dict")
        for name, value in keywords:
            containers.store(it, kwargs, "[]" if name == "**" else f"[{name}]", value, None)
        if arguments.unknown_keywords:
            containers.store(it, kwargs, "[]", Unknown(), None)
        bound[params.star_kwarg.name.value] = kwargs
    return bound


def constant_default(node: cst.BaseExpression) -> Value:
    """The value of a parameter's default, where it is a plain constant."""
    match node:
        case cst.Name(value="None" | "True" | "False"):
            return Constant({"None": None, "True": True, "False": False}[node.value], True)
        case cst.Integer():
            return Constant(int(node.value.replace("_", ""), 0), True)
        case cst.SimpleString():
            return Constant(string_value(node), True)
        case cst.Float():
            return NUMBER
        case _:
            return Unknown()


def record_call(it: Interpreter, node: cst.CSTNode, function: Function, mode: Mode, bound: dict[str, Value]) -> None:
    """Remember how the function is called, for its own analysis."""
    record = it.records.setdefault(function, CallRecord())
    record.modes.add(mode)
    site = it.site(node)
    record.sites[site] = mode
    for name, value in bound.items():
        value = _for_callee(it, function, value)
        known = record.arguments.get(name)
        record.arguments[name] = value if known is None else join(known, value)
        if isinstance(value, Container):
            for key, element, _ in containers.entries(it, value):
                slot = (value.oid, key)
                it.learn(slot, element)


def _for_callee(it: Interpreter, function: Function, value: Value) -> Value:
    """An object made afresh for each call does not outlive the callee's call."""
    if isinstance(value, Container | Instance | ModuleValue) and it.repeating(value.loops) is None:
        return replace(value, loops=(*value.loops, call_mark(function)))
    if isinstance(value, Tensor) and value.carried:
        return replace(value, carried=frozenset())
    return value


def call_mark(function: Function) -> LoopMark:
    """The calls of a function, as something that repeats."""
    return LoopMark(None, function.qualname)


def argument_graph(values: Sequence[Value], it: Interpreter, depth: int = 0) -> Graph:
    """The strongest graph among values and what they hold; a container may hold itself."""
    graph = Graph.NONE
    for value in values:
        if isinstance(value, Tensor):
            graph = max(graph, value.graph)
        elif isinstance(value, Container):
            inner = list(it.elements(value))[:20] if depth < MAX_ELEMENT_DEPTH else ()
            graph = max(graph, argument_graph(inner, it, depth + 1))
        elif isinstance(value, Unknown):
            graph = max(graph, Graph.UNKNOWN)
    return graph

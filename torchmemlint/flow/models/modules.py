"""torch.nn: constructors, the forward pass, hooks, and what a module's own methods do."""

from __future__ import annotations

from collections.abc import Callable

from torchmemlint.flow.domain.effects import Evidence, Forward, Infer, Use
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import ELEMENT, HOLDERS, Mode, State, reached, renew, visible
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.manners import Given, Reading
from torchmemlint.flow.domain.memory import bare, computed, sources_of
from torchmemlint.flow.domain.refs import PATH_LIMIT, Behind, Graph, Key, Method, Object, Parameters, Point, Ref, Source
from torchmemlint.flow.domain.values import (
    NO_SOURCES,
    NOTHING,
    PLAIN,
    TRUE,
    Value,
    constant,
    join,
    limited,
    of,
    one_tensor,
)
from torchmemlint.flow.ir.ops import Class
from torchmemlint.flow.models import containers, contracted, files, gradients, optimizers, tensors, torch_functions
from torchmemlint.flow.models.bareness import has_none, is_transparent, parts
from torchmemlint.flow.models.hooks import handle, register, run_hooks
from torchmemlint.flow.models.parameters import parameter
from torchmemlint.knowledge import autograd, torch_api
from torchmemlint.knowledge import modules as known

HOOKS = autograd.names("module-hooks")
METHODS = (known.METHODS - {"type", "forward"}) | HOOKS
SWITCHES = frozenset({"eval", "train"})
_OWN = METHODS | SWITCHES | {"forward", gradients.TRAINING}
_ITSELF = frozenset(
    "to cuda cpu half float double bfloat16 apply compile share_memory requires_grad_ to_empty type ipu xpu".split()
)
PARAMETERS = frozenset({"parameters", "named_parameters", "get_parameter"})
_PARTS = frozenset({"children", "modules", "named_children", "named_modules", "get_submodule"})
_SHARED = frozenset({"zero_grad", "state_dict", "load_state_dict", "type"})  # optimizers and others have these, too
OF_PARAMETERS = frozenset({"torch.nn.ParameterDict", "torch.nn.ParameterList"})
_WEIGHTS = frozenset({"weight", "bias"})
_NAMES = frozenset({"__name__", "__qualname__", "__class__", "__dict__", "__module__", "__doc__"})
_ENDS = frozenset({Reading.DETACHED, Reading.DISCRETE, Reading.NUMBER})  # of what a forward may give of a graph
_SEQUENTIAL = "torch.nn.Sequential"
_WRAPPED = "module"  # of DistributedDataParallel and its like, which are taken for what they wrap


def construct(site: CallSite, qualified: str) -> Value:
    """Return a new module of a library's class."""
    site = containers.consumed(site)
    made = Object.of(Kind.MODULE, site.point.site, site.point.context, qualified)
    renew(site.state, made)
    for number, value in enumerate(site.arguments.positional):
        if value.refs:
            site.state.heap.put(made, number, value)
    if site.arguments.star is not None:
        site.state.heap.put(made, 0, site.arguments.star)
    scaling = known.scaling(qualified)
    if scaling is not None and site.constant(scaling.position, scaling.name, scaling.default) is False:
        site.state.heap.put(made, Special.FROZEN, TRUE)  # it has no parameters
    return of(made)


def _pretrained(site: CallSite) -> Value:
    """`nn.Embedding.from_pretrained(weights, freeze=True)`."""
    made = construct(site, "torch.nn.Embedding")
    freezes = site.constant(1, "freeze", True)
    if freezes is not ...:
        for module in made.refs:
            site.state.heap.put(module, Special.FROZEN, constant(freezes))
    return made


FUNCTIONS = {f"torch.nn.{name}.from_pretrained": _pretrained for name in ("Embedding", "EmbeddingBag")}


# The forward pass.


def _begin(site: CallSite, module: Value, inputs: frozenset[Source]) -> frozenset[Source]:
    frame = site.frame
    if frame.inside:
        frame.note_run(site.point)
        outer = frame.inside[-1]
        if outer is None:
            return NO_SOURCES
        frame.provenance.derive(outer, inputs)
        return outer.alone
    graph = Graph.of(site.point.site, site.point.context)
    frame.bend(inputs)
    frame.provenance.derive(graph, inputs)
    frame.arise(graph)
    site.state.spent = site.state.spent - {graph}
    evaluating = gradients.is_evaluating(site.state, module)
    frame.log(Forward(site.point, module, inputs, site.state.mode, graph, evaluating, _given(site)))
    return graph.alone


def _given(site: CallSite) -> Given | None:
    """Return the one argument that has a graph, if it is given by position."""
    every = site.arguments.all()
    graphs = [n for n, value in enumerate(every) if reached(site.state, value)]
    if len(graphs) != 1:
        return None
    return Given.of(site.point.site, len(site.arguments.positional), graphs[0], site.frame.kind(every[graphs[0]]))


def forward(site: CallSite, target: Object) -> Value:
    """Call a module of a library, or a part of one."""
    steps = _steps(site, target)
    if any(_keeps(site, step, 3) for step in steps):
        return run_forward(site, target, lambda: _through(site, steps))
    if site.state.mode is Mode.OFF:
        site.frame.log(Infer(site.point, of(target), gradients.is_evaluating(site.state, of(target))))
    result = unseen_forward(site, target)
    run_hooks(site, target, NOTHING if site.state.mode is Mode.OFF else result)
    return result


def is_sequential(site: CallSite, cls: Class) -> bool:
    """Is a class of the project an nn.Sequential?"""
    return _SEQUENTIAL in site.machine.index.libraries(cls)


def hold(site: CallSite, made: Ref) -> None:
    """Let an nn.Sequential of a class of the project hold the parts that it is made with."""
    for number, value in enumerate(site.arguments.positional):
        site.write(of(made), number, value)
    if site.arguments.star is not None:
        site.write(of(made), 0, site.arguments.star)


def _steps(site: CallSite, target: Object) -> list[Ref]:
    """Return what a Sequential runs, in order."""
    is_one = target.about == _SEQUENTIAL if target.kind is Kind.MODULE else is_sequential(site, target.about.cls)
    return parts(site.state, target) if is_one else []


def _keeps(site: CallSite, module: Ref, depth: int) -> bool:
    """May the forward of a network of the project, or of one of its parts, leave something behind?"""
    if type(module) is not Object or module.kind not in (Kind.INSTANCE, Kind.MODULE) or not depth:
        return False
    if module.kind is Kind.INSTANCE and site.machine.index.keeps(module.about.cls):
        return True
    held = (r for _, value in visible(site.state.heap.edges(module)) for r in value.refs)
    return any(_keeps(site, r, depth - 1) for r in (*held, *parts(site.state, module)))


def _through(site: CallSite, steps: list[Ref]) -> Value:
    value = site.value(0)
    for step in steps:
        value = site.call(of(step), value)
    return value


def unseen_forward(site: CallSite, target: Ref) -> Value:
    """Return what the forward of a library's module gives, or the one that a module has from a library's class."""
    state = site.state
    if state.mode is Mode.OFF:
        site.frame.note_run(site.point)
        return Value(graph=bare(site.frame, sources_of(state, site.arguments.all()), site.point))
    inputs = sources_of(state, site.arguments.all())
    name = str(target.about) if type(target) is Object else ""
    if is_transparent(state, target):
        if name.endswith("Loss"):
            torch_functions.note_loss(site)
        graph = computed(site.frame, state, inputs, site.point)
    else:
        graph = _begin(site, of(target), inputs)
    result = one_tensor(graph) if known.gives_one_tensor(name) else Value(graph=graph)
    if any(type(r) is Object and r.about == torch_functions.PACKED for r in site.value(0).refs):
        result = containers.row(site, "output and state", [torch_functions.packed(site, result), result])
    return result


def run_forward(site: CallSite, target: Object, run: Callable[[], Value]) -> Value:
    """Call a module of the project: one pass, whatever its forward is made of."""
    frame, state = site.frame, site.state
    if frame.inside:
        result = run()
        run_hooks(site, target, result)
        return result
    off = state.mode is Mode.OFF
    if off or gradients.is_frozen(state, target) or has_none(site, target):
        if not off:
            frame.inside.append(None)
        result = _ran(frame, target, run, Value(open=True))
        if not off:
            frame.inside.pop()
        run_hooks(site, target, result)
        return result
    inputs = sources_of(state, site.arguments.all())
    (graph,) = _begin(site, of(target), inputs)
    assert isinstance(graph, Graph)
    mark = len(frame.effects)
    frame.inside.append(graph)
    result = _ran(frame, target, run, Value(graph=graph.alone, open=True))
    frame.inside.pop()
    made = result.open or graph in frame.provenance.ancestors(reached(state, result, HOLDERS))
    if not made and not any(graph in frame.reads.get(reading, ()) for reading in _ENDS):
        del frame.effects[mark - 1]  # its forward makes no graph
    run_hooks(site, target, result)
    return result


def _ran(frame: Frame, network: Object, run: Callable[[], Value], otherwise: Value) -> Value:
    """Return what a network gives; where that takes too much work, it may be something else, too."""
    with frame.machine.part(frame, network) as part:
        result = NOTHING if part.is_short else run()
    return join(result, otherwise) if part.is_short else result


# Attributes, parts, parameters.


def is_own(name: str) -> bool:
    """Is it a method of every module?"""
    return name in _OWN or name in tensors.MODULE_OR_TENSOR


def attribute(frame: Frame, state: State, holder: Object, name: str, point: Point) -> Value:
    """Return an attribute of a module that nobody wrote: a method, a parameter, or a part."""
    if name == gradients.TRAINING:
        return gradients.training(state, holder)
    if name in _NAMES:
        return PLAIN
    if is_own(name):
        return of(Method.of(holder, name))
    if name in _WEIGHTS:
        return parameter(frame, state, Parameters.of(holder), point)
    if name == _WRAPPED:
        return of(holder)
    if holder.kind is Kind.MODULE and name not in torch_api.METADATA_ATTRIBUTES:
        return of(Object.of(Kind.MODULE, holder.site, holder.context, f"{holder.about}.{name}"))
    one = Behind.of(holder, name).alone  # set by code that is not seen
    return Value(one, one, open=True)


def part(frame: Frame, state: State, holder: Object, key: Key) -> Value:
    """Return a part of a ModuleList, ModuleDict or Sequential."""
    refs = parts(state, holder)
    if refs:
        kept, more = limited(frozenset(refs))
        return Value(kept, open=more)
    if type(key) is int and key > 0 and frame.machine.index.contracts.is_module_factory(str(holder.about)):
        return Value(open=True)  # what `torch.hub.load` gives beside a network
    name = holder.about if isinstance(holder.about, str) else "torch.nn.Module"
    return of(Object.of(Kind.MODULE, holder.site, holder.context, f"{name}[]"))


def switch(site: CallSite, target: Ref, name: str) -> Value:
    """`eval()` and `train(mode)`."""
    mode = site.constant(0, "mode", True)
    if name == "eval" or mode is False:
        shown = Evidence.EVALUATING
    elif mode is ... and gradients.is_remembered(site.value(0, "mode")):
        shown = Evidence.RESTORED
    else:
        shown = Evidence.TRAINING
    if mode is not ... or shown is not Evidence.TRAINING:
        gradients.switch(site.frame, site.state, target, shown)
    site.frame.log(Use(site.point, target, shown))
    return of(target)


def method(site: CallSite, target: Ref, name: str) -> Value | None:
    """Return the value of a method that every module has, or that a contract speaks of; None for others."""
    frame, state = site.frame, site.state
    if name in SWITCHES:
        return switch(site, target, name)
    if name in ("state_dict", "load_state_dict"):
        frame.log(Use(site.point, target, Evidence.STATE))
    if name not in _SHARED and (target.symbolic or (type(target) is Object and target.kind is Kind.OPAQUE)):
        frame.log(Use(site.point, target, Evidence.MODULE))
    if name == "requires_grad_":
        flag = site.arguments.get(0, "requires_grad") or constant(True)
        gradients.set_requires_grad(frame, state, of(target), flag, site.point)
        return of(target)
    if name in _ITSELF:
        to_host = tensors.goes_to_host(site, name) if name in tensors.MOVES else None
        if to_host is not None:
            files.moved(state, target, to_host)
        return of(target)
    if name == "forward":
        return site.machine.call(frame, state, of(target), site.arguments, site.point)
    if name in HOOKS:
        register(frame, state, of(target), site.value(0, "hook"), name, site.point)
        return handle(site, target, name)
    if name in PARAMETERS:
        if name == "named_parameters":
            named = _pairs(site, parameter(frame, state, Parameters.of(target), site.point))
            containers.shorten(state, named)
            return named
        return of(Parameters.of(target))
    if name in _PARTS:
        return _pairs(site, _part_of(site, target)) if name.startswith("named") else _some(site, _part_of(site, target))
    if name in ("append", "extend", "insert", "update"):
        for value in site.arguments.all():
            site.state.heap.add(target, ELEMENT, value)
        return of(target)
    if name in ("register_parameter", "register_buffer", "add_module", "register_module"):
        key = site.constant(0, "name", ...)
        site.write(of(target), key if isinstance(key, str) else ELEMENT, site.value(1), not isinstance(key, str))
        return PLAIN
    if name == "state_dict":
        return files.state_of(site, target)
    if name == "load_state_dict":
        return files.restore(site, of(target))
    if name == "zero_grad":
        optimizers.step(frame, of(target), name, site.point)
    if name == "step":  # an engine's, which has its own optimizer
        gradients.use_of_all(frame, state, [of(Parameters.of(target))], site.point)
    if name in known.METHODS or name in known.WRAPPER_METHODS:
        return PLAIN
    if type(target) is Object and _runs(site, target, name):
        return forward(site, target)
    found = contracted.method(site, target, name)
    if found is not None:
        return found
    if gradients.freezes(name):
        gradients.set_requires_grad(frame, state, of(target), constant(False), site.point)
        return of(target)
    return None


def _runs(site: CallSite, target: Object, name: str) -> bool:
    """Does a method of a library's module run it, as its forward does?"""
    index = site.machine.index
    if target.kind is Kind.INSTANCE:
        return index.contracts.overrides("forward-methods", name, index.libraries(target.about.cls))
    made_by = str(target.about).partition(":")[0].removesuffix("[]")
    return index.contracts.overrides("forward-methods", name, (made_by,))


def _part_of(site: CallSite, target: Ref) -> Value:
    if type(target) is Object:
        found = part(site.frame, site.state, target, ELEMENT) if target.kind is Kind.MODULE else NOTHING
        for name, value in visible(site.state.heap.edges(target)):
            if type(name) is str and any(type(r) is Object and r.kind is Kind.MODULE for r in value.refs):
                found = join(found, value)
        return found
    return of(Behind.of(target, ELEMENT)) if target.depth < PATH_LIMIT - 1 else Value(open=True)


def _pairs(site: CallSite, value: Value) -> Value:
    row = Object.of(Kind.TUPLE, site.point.site, site.point.context, "pair")
    site.state.heap.put(row, 0, PLAIN)
    site.state.heap.put(row, 1, value)
    return _some(site, of(row))


def _some(site: CallSite, value: Value) -> Value:
    box = Object.of(Kind.LIST, site.point.site, site.point.context, "parts")
    site.state.heap.put(box, ELEMENT, value)
    return of(box)

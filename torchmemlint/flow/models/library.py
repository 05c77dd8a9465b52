"""Functions of Python and of libraries by their qualified names."""

from __future__ import annotations

import sys
from collections.abc import Callable

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Derive, Serve
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import ELEMENT, Mode, ModeOf, visible
from torchmemlint.flow.domain.keys import key_of
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.memory import computed, differentiate, discrete, sources_of
from torchmemlint.flow.domain.refs import Bare, ClassRef, Code, Leaf, Object, Passed, Point, Ref, Source, with_graphs
from torchmemlint.flow.domain.values import PLAIN, Value, of
from torchmemlint.flow.ir.ops import Op
from torchmemlint.flow.models import (
    builtins,
    containers,
    contracted,
    copying,
    files,
    gradients,
    guards,
    modules,
    optimizers,
    pipelines,
    settings,
    torch_functions,
    trainers,
    trees,
    workers,
)
from torchmemlint.knowledge import checkpoints, data_sets, services

Model = Callable[[CallSite], Value]

_BUILDING = f".{checkpoints.BUILDING}"
_NOTED = services.NOTED | files.NOTED
FUNCTIONS: dict[str, Model] = {
    **builtins.FUNCTIONS,
    **torch_functions.FUNCTIONS,
    **modules.FUNCTIONS,
    **optimizers.FUNCTIONS,
    **copying.FUNCTIONS,
    **settings.FUNCTIONS,
    **workers.FUNCTIONS,
    **trees.FUNCTIONS,
}
# utils/data/dataloader.py: DataLoader.__init__
_HELD_BY_LOADERS = ((0, "dataset"), (3, "sampler"), (4, "batch_sampler"), (6, "collate_fn"), (10, "worker_init_fn"))
_GETTERS = frozenset({"operator.itemgetter", "operator.attrgetter"})
_PLAIN = frozenset(
    "argparse configparser csv datetime glob gzip hashlib io json logging math optparse os pathlib platform re shutil "
    "signal socket string subprocess sys tempfile textwrap time traceback urllib uuid warnings yaml zipfile".split()
)
_PASSING = sys.stdlib_module_names | {"torch"}  # what these give has the graphs that they are given
_TYPES = frozenset({"list", "dict", "set", "collections.deque", "torch.Tensor", "torch.nn.Module"})
_DRAWS = frozenset({"sample", "sample_n"})
_COMPUTED = frozenset({"cdf", "entropy", "icdf", "perplexity", "rsample"})  # from a distribution's tensors


def call(site: CallSite, qualified: str) -> Value:
    """Return the value of a call of a library's function."""
    if qualified in _NOTED:
        site.frame.log(Serve(site.point, qualified, site.arguments))
    if qualified.endswith(_BUILDING):
        files.built(site)
    model = FUNCTIONS.get(qualified)
    if model is not None:
        return model(site)
    owner, _, name = qualified.rpartition(".")
    if owner in _TYPES and site.arguments.positional:  # `list.append(box, x)`
        first, rest = site.arguments.positional[0], site.arguments.rest()
        return site.machine.call_method(site.frame, site.state, first, name, rest, site.point)
    context = guards.construct(site, qualified)
    if context is not None:
        return context
    known = site.machine.index.contracts
    if known.is_optimizer(qualified):
        name = qualified.rpartition(".")[2]
        if name[:1].isupper():
            return optimizers.construct(site, qualified)
        if name.startswith("create_optimizer"):
            return optimizers.factory(site, qualified)
    if known.is_wrapper(qualified):
        settings = site.value(1).refs  # `get_peft_model(model, LoraConfig(...))`
        is_alone = bool(settings) and all(type(r) is Object and r.kind is Kind.OPAQUE for r in settings)
        return site.value(0) if is_alone else contracted.wrapped(site)
    if qualified.startswith("torch."):
        found = torch_functions.call(site, qualified)
        if found is not None:
            return found
    if known.is_module_class(qualified) or known.is_module_factory(qualified):
        return modules.construct(site, qualified)
    return pipelines.construct(site, qualified) or _other(site, qualified)


def _other(site: CallSite, qualified: str) -> Value:
    """Call what only contracts speak of, or nothing: it passes on the graphs that it is given."""
    known = site.machine.index.contracts
    site = containers.consumed(site)
    frame, state = site.frame, site.state
    given = sources_of(state, site.arguments.all())
    name = qualified.rpartition(".")[2]
    if qualified in known.names("reads") or known.names("reads").has_method(name):
        frame.read(given, Reading.ARRAY if qualified.startswith("numpy.") else Reading.NUMBER)
        return PLAIN
    if qualified in known.names("differentiates") or known.names("differentiates").has_method(name):
        differentiate(frame, state, sources_of(state, site.arguments.positional[:1]), site.point, False)
        return PLAIN
    if known.names("runs-without-gradients").has_method(name):
        return Value(open=True)
    operation = known.operation(qualified)
    if operation is not None and operation.discrete:
        frame.read(given, Reading.DISCRETE)
        return PLAIN
    what = decorated(site.arguments, site.point)
    if what is not None:
        return what
    made = Object.of(Kind.OPAQUE, site.point.site, site.point.context, qualified)
    if qualified in known.names("loaders"):
        frame.log(Serve(site.point, qualified, containers.spread(state, site.arguments)))
        for place, key in _HELD_BY_LOADERS:
            held = site.arguments.get(place, key)
            if held is not None and held.refs:
                state.heap.put(made, key, held)
    contracted.hold(site, made, [qualified])
    if qualified in known.names("trainer-arguments"):
        state.heap.drop(made)
        trainers.hold(site, made)
        return of(made)
    if qualified in known.names("trainers"):
        state.heap.drop(made)
        trainers.hold(site, made)
    if qualified in data_sets.PARTS:
        state.heap.drop(made)
        state.heap.put(made, "dataset", site.value(0, "dataset"))
        return of(made)
    if is_plain(qualified):
        frame.read(given, Reading.NUMBER)
        return Value(made.alone, open=True)
    gradients.use_of_all(frame, state, site.arguments.all(), site.point, name[:1].isupper())
    gradients.hand(frame, state, site.arguments.all(), site.point)
    is_class = name[:1].isupper()  # its object holds what it is given, and computes nothing yet
    if is_class:
        given = frozenset(s for s in given if type(s) is not Leaf)
    graph = computed(frame, state, given, site.point, copies=is_class)
    if operation is None and qualified.partition(".")[0] not in _PASSING:
        graph = passed(frame, graph, site.point, state.mode)
    frame.read(frozenset(s for s in given if type(s) is Bare), Reading.MET)
    if qualified in _GETTERS:
        for number, value in enumerate(site.arguments.positional):
            state.heap.put(made, number, value)
        return of(made)
    return Value(made.alone, graph, open=True)


def passed(frame: Frame, graph: frozenset[Source], point: Point, mode: Mode | ModeOf) -> frozenset[Source]:
    """Return the source of what code that was not seen made of graphs; a forward pass is one whatever it calls."""
    if frame.inside or not with_graphs(graph):
        return graph
    made = Passed.of(point.site, point.context)
    frame.provenance.derive(made, graph)
    frame.arise(made)
    frame.log(Derive(point, graph, mode, made))
    return made.alone


def is_plain(qualified: str) -> bool:
    """Does a library make nothing that has or keeps a graph, such as settings, texts, files and times?"""
    return qualified.partition(".")[0] in _PLAIN


def decorated(arguments: Arguments, point: Point) -> Value | None:
    """Return what a decorator that is not seen is given: it runs the function, or registers the class.

    None if it is given others, or a class above which it does not stand: code that is given one may make an instance.
    """
    if len(arguments.all()) != 1 or len(arguments.positional) != 1:
        return None
    (given,) = arguments.positional
    return given if given.refs and all(type(r) is Code or _stands_above(point, r) for r in given.refs) else None


def _stands_above(point: Point, reference: Ref) -> bool:
    """Is a call that of a decorator of this class?"""
    if type(reference) is not ClassRef or not isinstance(point.site, Op):
        return False
    return any(decorator.span == point.site.span for decorator in reference.cls.decorators)


def call_object(site: CallSite, target: Object) -> Value | None:
    """Call an object of a library that is known: a record class, or what a contract speaks of. None for others."""
    if target.about == "namedtuple":
        return _record(site, target)
    if target.about in _GETTERS:
        return _got(site, target)
    if pipelines.is_pipeline(site, target):
        return pipelines.run(site)
    found = contracted.method(site, target, "__call__")
    return decorated(site.arguments, site.point) if found is None else found  # a decorator with arguments


def of_distribution(site: CallSite, target: Object, receiver: Value, name: str) -> Value | None:
    """Return what a distribution of torch draws or computes; None for other objects and methods.

    `sample` runs under `no_grad` (torch/distributions/distribution.py); `rsample` passes gradients on.
    """
    if not str(target.about).startswith("torch.distributions."):
        return None
    given = sources_of(site.state, [receiver])
    if name in _COMPUTED:
        given |= sources_of(site.state, site.arguments.all())
        return Value(graph=computed(site.frame, site.state, given, site.point), open=True)
    if name not in _DRAWS:
        return None
    site.frame.read(given, Reading.DISCRETE)
    return Value(graph=discrete(site.frame, site.state, given, site.point).graph, open=True)


def _got(site: CallSite, getter: Object) -> Value:
    """Call what `operator.itemgetter` or `operator.attrgetter` gave: parts of the argument."""
    whole, found = site.value(0), []
    for _, key in list(visible(site.state.heap.edges(getter))):
        if getter.about == "operator.itemgetter":
            found.append(site.item(whole, key_of(key)))
            continue
        part = whole
        for name in key.constant.split(".") if isinstance(key.constant, str) else ():
            part = site.machine.attribute(site.frame, site.state, part, name, site.point)
        found.append(part)
    return found[0] if len(found) == 1 else containers.row(site, "parts", found)


def _record(site: CallSite, cls: Object) -> Value:
    row = Object.of(Kind.TUPLE, site.point.site, site.point.context, "record")
    heap = site.state.heap
    heap.drop(row)
    names = heap.get(cls, "fields")
    fields = names.constant.replace(",", " ").split() if names is not None and isinstance(names.constant, str) else []
    given = containers.spread(site.state, Arguments(site.arguments.positional, star=site.arguments.star))
    for number, value in enumerate(given.positional):
        heap.put(row, number, value)
        if number < len(fields):
            heap.put(row, fields[number], value)
    for name, value in site.arguments.named.items():
        heap.put(row, name, value)
        if name in fields:
            heap.put(row, fields.index(name), value)
    if given.star is not None:
        heap.put(row, ELEMENT, site.iterate(given.star))
    return of(row)

"""Optimizers: who holds which parameters, and when they step."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Step
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Code, Object, Parameters, Point, Ref
from torchmemlint.flow.domain.values import NOTHING, PLAIN, UNKNOWN, Value, join, of
from torchmemlint.flow.models import containers, files, gradients


def construct(site: CallSite, qualified: str) -> Value:
    """Return a new optimizer."""
    site = containers.consumed(site)
    made = Object.of(Kind.OPTIMIZER, site.point.site, site.point.context, qualified)
    gradients.use_of_all(site.frame, site.state, site.arguments.all(), site.point)
    site.state.heap.put(made, "param_groups", site.value(0, "params"))
    return of(made)


def factory(site: CallSite, qualified: str) -> Value:
    """Return the optimizer that a library's function makes of a network, or of parameters."""
    arguments = Arguments([_parameters_of(site, site.arguments.joined())])
    return construct(CallSite(site.frame, site.state, site.point, arguments), qualified)


def engine(site: CallSite) -> Value:
    """`deepspeed.initialize`: a network that steps itself, its optimizer, a loader and a scheduler.

    Without parameters and an optimizer only its settings say whether it is trained: then the one that steps is.
    """
    network = site.value(1, "model")
    taught = site.arguments.get(3, "model_parameters")
    given = site.arguments.get(2, "optimizer") or NOTHING
    if taught is None and given is NOTHING:
        return containers.row(site, "engine", [network, UNKNOWN, UNKNOWN, UNKNOWN])
    arguments = Arguments([_parameters_of(site, network) if taught is None else taught])
    made = construct(CallSite(site.frame, site.state, site.point, arguments), "deepspeed.initialize")
    return containers.row(site, "engine", [network, join(given, made), UNKNOWN, UNKNOWN])


def _parameters_of(site: CallSite, given: Value) -> Value:
    """Return what is given, with the parameters of the networks among it in their place."""
    refs = (Parameters.of(r) if gradients.is_network(site.frame, r) else r for r in given.refs)
    return Value(frozenset(refs), given.graph, open=given.open)


FUNCTIONS = {"deepspeed.initialize": engine}


def method(site: CallSite, target: Object, name: str) -> Value:
    """Return the value of an optimizer's method."""
    if name == "step" and (closure := site.arguments.get(0, "closure")) is not None and closure.refs:
        return _step_with(site, target, closure)
    if name in ("step", "zero_grad"):
        step(site.frame, of(target), name, site.point)
        return PLAIN
    if name == "add_param_group":
        gradients.use_of_all(site.frame, site.state, site.arguments.all(), site.point)
        site.state.heap.add(target, "param_groups", site.value(0, "param_group"))
        return PLAIN
    if name == "load_state_dict":
        return files.restore(site, of(target))
    return files.state_of(site, target) if name == "state_dict" else UNKNOWN


def of_closure(site: CallSite, target: Ref, name: str) -> Value | None:
    """Return what `step(closure)` of something that was not seen gives: with a function, it is an optimizer's."""
    closure = site.arguments.get(0, "closure") if name == "step" else None
    if closure is None or not closure.refs or not all(type(r) is Code for r in closure.refs):
        return None
    return _step_with(site, target, closure)


def _step_with(site: CallSite, target: Ref, closure: Value) -> Value:
    """Perform the closure, and the step that uses the gradients which it leaves."""
    given = site.call(closure)
    step(site.frame, of(target), "step", site.point)
    return given


def step(frame: Frame, holder: Value, name: str, point: Point) -> None:
    """Log a step or zero_grad."""
    frame.log(Step(point, holder, name))


def configured(site: CallSite, target: Object, name: str) -> Value | None:
    """Lightning's `self.optimizers()`: what `configure_optimizers` returns, with or without schedulers."""
    index, cls = site.machine.index, target.about.cls
    if name != "optimizers" or not any(base.endswith("LightningModule") for base in index.libraries(cls)):
        return None
    if index.method(cls, "configure_optimizers") is None:
        return None
    receiver = of(target)
    made = site.machine.call_method(site.frame, site.state, receiver, "configure_optimizers", Arguments(), site.point)
    boxes = {r.kind for r in made.refs if type(r) is Object}
    if boxes == {Kind.DICT}:
        return site.item(made, "optimizer")
    first = site.item(made, 0) if boxes <= {Kind.LIST, Kind.TUPLE} else made
    return first if any(type(r) is Object and r.kind is Kind.LIST for r in first.refs) else made

"""Parameters of modules, and whether they require gradients."""

from __future__ import annotations

from torchmemlint.flow.domain.effects import Note
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import State
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.manners import Remark
from torchmemlint.flow.domain.refs import Leaf, Object, Parameters, Point, Ref
from torchmemlint.flow.domain.values import Value, constant, of
from torchmemlint.flow.models import gradients, hooks, tensors

HOOKS = frozenset({"register_hook", "register_post_accumulate_grad_hook"})


def parameter(frame: Frame, state: State, parameters: Parameters, point: Point) -> Value:
    """Return one parameter of a module: a leaf, unless the module is frozen."""
    if gradients.is_frozen(state, parameters.module):
        return of(parameters)
    return Value(parameters.alone, Leaf.of(point.site, point.context).alone)


def parameter_method(site: CallSite, target: Parameters, name: str) -> Value:
    """Return the value of a method of a parameter, or of the iterator over them."""
    if name == "requires_grad_":
        flag = site.arguments.get(0, "requires_grad") or constant(True)
        gradients.set_requires_grad(site.frame, site.state, of(target), flag, site.point)
        return of(target)
    if name == "detach_":  # of a leaf: it requires no gradients from then on
        gradients.set_requires_grad(site.frame, site.state, of(target), constant(False), site.point)
        return of(target)
    if name in ("__next__", "values", "items"):
        return parameter(site.frame, site.state, target, site.point)
    if name in HOOKS:
        return hooks.handle(site, target, name)
    return tensors.method(site, parameter(site.frame, site.state, target, site.point), name)


def assign_requires_grad(frame: Frame, state: State, base: Value, flag: Value, point: Point) -> None:
    """`x.requires_grad = flag`: of a module, nothing looks at that attribute."""
    wholes = frozenset(r for r in base.refs if _is_whole(frame, state, r))
    if wholes and wholes == base.refs and not base.open and isinstance(flag.constant, bool):
        frame.log(Note(point, Remark.MODULE_ATTRIBUTE))
    others = base._replace(refs=base.refs - wholes)
    gradients.set_requires_grad(frame, state, others, flag, point, assigned=True)


def _is_whole(frame: Frame, state: State, reference: Ref) -> bool:
    """Is it a module for certain? What a module has as an attribute may be a parameter."""
    if type(reference) is not Object or reference.kind is not Kind.MODULE:
        return gradients.is_network(frame, reference)
    whole, contracts = str(reference.about).rstrip("[]"), frame.machine.index.contracts  # what it is, or is iterated
    if ":" in whole:  # "class: parameter"
        return "." not in whole.partition(":")[2]
    made = Object.of(Kind.MODULE, reference.site, reference.context, whole)
    is_made = state.heap.get(made, Special.MADE) is not None
    return is_made and (contracts.is_module_class(whole) or contracts.is_module_factory(whole))

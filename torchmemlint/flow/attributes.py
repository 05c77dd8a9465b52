"""Attributes: reading `owner.name`, and assigning to it."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow import configurations, containers, properties
from torchmemlint.flow.graphs import detached, tensor_from
from torchmemlint.flow.interpreter import KEPT, Interpreter, class_of
from torchmemlint.flow.program import ClassInfo
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import (
    NUMBER,
    ClassValue,
    Constant,
    Container,
    External,
    Flag,
    FunctionValue,
    Graph,
    Instance,
    Known,
    Method,
    ModuleValue,
    Step,
    Tensor,
    TrainingMode,
    Unknown,
    Value,
)
from torchmemlint.knowledge import torch_api
from torchmemlint.syntax.outline import dotted_text

_COMPUTED_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real", "imag"})


def attribute(it: Interpreter, node: cst.Attribute) -> Value:
    """The value of `owner.name`."""
    return read(it, node, it.evaluate(node.value), node.attr.value)


def read(it: Interpreter, node: cst.Attribute, owner: Value, name: str, *, called: bool = False) -> Value:
    """The value of attribute `name` of an evaluated owner; `called` where it is the function of a call."""
    match owner:
        case External(qualified=qualified):
            return it.external(f"{qualified}.{name}")
        case Tensor():
            return _of_tensor(it, node, owner, name, called)
        case ModuleValue() | Instance():
            return _of_object(it, node, owner, name, called)
        case Container() | Known():
            return _of_known(it, node, owner, name, called)
        case ClassValue(cls=cls):
            function = cls.method(name)
            if function is not None:
                bound = owner if "classmethod" in function.decorator_texts() else None
                return FunctionValue(function, bound)
            value = it.heap_value(Instance(cls.oid, cls), name) or _setting(it, cls, name)
            return value or Method(owner, name, dotted_text(node.value))
        case Unknown():
            return _of_unknown(it, node, owner, name, called)
        case Constant():
            return Method(owner, name)
        case _:
            return Unknown()


def _setting(it: Interpreter, cls: ClassInfo, name: str) -> Value | None:
    """`Config.num_workers`: a number or string in a class body, which others may have changed."""
    for ancestor in cls.ancestors():
        value = ancestor.setting(name)
        if value is not None:
            known = it.evaluate(value)
            return Known("default", element=known) if isinstance(known, Constant) and known.known else None
    return None


def _of_tensor(it: Interpreter, node: cst.Attribute, owner: Tensor, name: str, called: bool) -> Value:
    if name in torch_api.METADATA_ATTRIBUTES:
        return NUMBER
    if name == "data" and owner.producer in torch_api.RECURRENT:
        return replace(owner, made=it.site(node), graph=Graph.UNKNOWN, exact=True, producer="getitem")
    if name == "data":
        return cut(it, node, owner)
    if name == "grad":
        return Tensor(Graph.NONE, producer="grad", made=it.site(node))
    if name in _COMPUTED_ATTRIBUTES:
        return tensor_from((owner,), producer=name, made=it.site(node))
    if name == "grad_fn":
        return Unknown()
    if not owner.exact:
        if (path := dotted_text(node)) in it.state.vars:
            return it.state.vars[path]
        # `outputs.logits` is a part of a structure of tensors, `outputs.mean()` the method of one.
        if called:
            return Method(owner, name, dotted_text(node.value))
        tensor = name in ("loss", "logits", "last_hidden_state") or it.proved(it.site(node), 0) is not None
        return replace(owner, made=it.site(node), exact=tensor, part=-1 if tensor else 0)
    return Method(owner, name, dotted_text(node.value))


def cut(it: Interpreter, node: cst.CSTNode, value: Tensor) -> Tensor:
    """A detach: the tensor without its graph."""
    return replace(detached(value), made=it.site(node))


def _of_object(it: Interpreter, node: cst.Attribute, owner: ModuleValue | Instance, name: str, called: bool) -> Value:
    value = it.heap_value(owner, name)
    if isinstance(value, Flag):
        now = it.state.heap.get((owner.oid, name)) if name == "training" else None
        return TrainingMode(now.on, True, owner.oid) if isinstance(now, Flag) else NUMBER
    path = dotted_text(node)
    if isinstance(value, Unknown):
        component = _pipeline_component(it, node, owner, name)
        if component is not None:
            return component
    if value is not None:
        if isinstance(value, Unknown) and path:
            shown = it.with_behaviour(replace(value, path=path), path, it.site(node))
            if not isinstance(shown, Unknown):
                slot = it.slot(owner, name)
                if slot is not None:
                    it.state.heap[slot] = shown
            return shown
        return value
    cls = class_of(owner)
    if cls is not None:
        function = cls.method(name)
        if function is not None:
            if properties.is_one(function):
                from torchmemlint.flow import calls

                return calls.inline(it, node, FunctionValue(function, owner), [])
            bound = None if "staticmethod" in function.decorator_texts() else owner
            return FunctionValue(function, bound)
    component = _pipeline_component(it, node, owner, name)
    if component is not None:
        return component
    if path:
        shown = it.with_behaviour(Unknown(path=path), path, it.site(node))
        if not isinstance(shown, Unknown):
            return shown
    if called:
        return Method(owner, name, dotted_text(node.value))
    if isinstance(owner, ModuleValue):
        if name in ("weight", "bias") and owner.qualified.startswith("torch.nn.") and owner.parameters:
            return _parameter(it, node, owner)
        if name == "training":
            return NUMBER
        return Unknown(made=it.origin(node), path=path, part_of=owner)
    return Unknown(made=it.origin(node), path=path)


def _parameter(it: Interpreter, node: cst.Attribute, owner: ModuleValue) -> Tensor:
    """`layer.weight` of a torch layer."""
    origin = it.origin(node)
    frozen = it.heap_value(owner, "frozen") is not None
    return Tensor(
        Graph.NONE if frozen else Graph.LIVE,
        frozenset({origin}),
        () if frozen else (Step(it.site(node), "is a parameter"),),
        producer="parameter",
        made=it.site(node),
        parameter_of=owner.oid,
    )


def _pipeline_component(it: Interpreter, node: cst.Attribute, owner: Value, name: str) -> Value | None:
    """`self.unet` of a diffusers pipeline: a module in evaluation mode."""
    cls = class_of(owner)
    if cls is None or name not in it.contracts.names("pipeline-modules").plain or not cls.is_pipeline:
        return None
    site = it.site(node)
    oid = it.oid("component", cls.oid, name)
    if it.contracts.names("pipeline-inference").plain & {
        f.function.name for f in (*it.frames[1:2], it.frame) if f.function
    }:
        it.state.heap.setdefault((oid, "training"), Flag(False, site))
    return ModuleValue(oid, why=Step(site, f"`{name}` is a component of a diffusers pipeline"), made=site)


def _of_known(it: Interpreter, node: cst.Attribute, owner: Container | Known, name: str, called: bool) -> Value:
    value = it.heap_value(owner, name)
    if value is not None:
        return value
    if isinstance(owner, Container) and owner.attributes and (value := containers.entry(it, owner, f"[{name}]")):
        return replace(value, attributes=True) if isinstance(value, Container) else value
    if name == "__dict__" and (owner.attributes if isinstance(owner, Container) else owner.role == "arguments"):
        return configurations.mapping(it, node, owner)
    if isinstance(owner, Known) and not called:
        if owner.role == "object":
            return Unknown(made=it.origin(node), path=dotted_text(node))
        if owner.role == "batch":
            return replace(owner, qualified="part" if owner.qualified != "computed" else "computed")
        if owner.role == "optimizer" and name == "param_groups":
            return Unknown()
        if owner.element is not None and owner.role == "record":
            return owner.element
    return Method(owner, name, dotted_text(node.value))


def _of_unknown(it: Interpreter, node: cst.Attribute, owner: Unknown, name: str, called: bool) -> Value:
    path = dotted_text(node)
    if path:
        value = it.state.vars.get(path)
        if value is not None:
            return value
        shown = it.with_behaviour(Unknown(path=path), path, it.site(node))
        if not isinstance(shown, Unknown):
            return shown
    if called:
        return Method(owner, name, dotted_text(node.value))
    if name in torch_api.METADATA_ATTRIBUTES and name != "device":
        return Unknown()
    if name == "data" and owner.origins:
        return cut(it, node, Tensor(Graph.UNKNOWN, owner.origins))
    made = it.entry(node, owner, f".{name}")
    if it.proved(made.site, switches=it.switched_as(made, owner)) is not None:
        return containers.proved_tensor(it, made, owner)
    return replace(containers.entry_of(it, owner, made, path), part_of=owner.part_of)


_ONLY_WEIGHT = frozenset({"torch.nn.Embedding", "torch.nn.EmbeddingBag"})  # layers with a single parameter


def _freezes(layer: ModuleValue, weight: Value) -> bool:
    """`self.emb.weight = nn.Parameter(table, requires_grad=False)`: nothing is left that trains."""
    frozen = isinstance(weight, Tensor) and weight.producer == "parameter" and weight.graph is Graph.NONE
    return frozen and layer.qualified in _ONLY_WEIGHT


# -- assignment ------------------------------------------------------------------------------------------------------


def assign(it: Interpreter, target: cst.Attribute, value: Value, node: cst.BaseExpression | None) -> None:
    """`owner.name = value`."""
    owner = it.evaluate(target.value)
    name = target.attr.value
    if name == "requires_grad":
        _set_requires_grad(it, target, owner, value)
        return
    if name == "training":
        it.effect("restores training mode")
    if isinstance(owner, Tensor):
        if name == "data":
            return
        if name == "grad":
            return
        if not owner.exact and (path := dotted_text(target)):
            it.state.vars[path] = value
        return
    if isinstance(owner, ModuleValue) and isinstance(value, ModuleValue):
        it.state.heap.pop((owner.oid, "frozen"), None)  # a fresh head on a frozen trunk trains
    if isinstance(owner, ModuleValue) and name == "weight" and _freezes(owner, value):
        it.state.heap[(owner.oid, "frozen")] = Flag(True, it.site(target))
    path = dotted_text(target)
    if isinstance(value, Unknown) and path:
        value = it.with_behaviour(value, path, it.site(target))
    if isinstance(owner, Container) and owner.attributes:
        containers.store(it, owner, f"[{name}]", value, it.site(target))
    slot = it.slot(owner, name)
    if slot is not None and not _intercepts(owner):
        kept = it.origin(target, KEPT)
        it.state.heap[slot] = containers.marked(it, value, kept)
        it.written(slot)
        cls = class_of(owner)
        if cls is not None:
            it.written((cls.oid, name))
            if configurations.is_dataclass(cls):
                configurations.replaced(it, slot, value)
    elif slot is None and path:
        it.state.bind(path, value)


def _intercepts(owner: Value) -> bool:
    """Does a class of the project say itself what an assignment to its attributes does (a dict with dots)?"""
    cls = class_of(owner)
    return cls is not None and cls.method("__setattr__") is not None


def _freeze_own(it: Interpreter, target: cst.Attribute, parameter: Tensor) -> None:
    """`self.scale.requires_grad = False`, of a parameter that the class has made."""
    slot = it.slot(it.evaluate(target.value), target.attr.value)
    if slot is not None and parameter.producer == "parameter":
        it.state.heap[slot] = replace(parameter, graph=Graph.NONE, origins=frozenset(), history=())


def _set_requires_grad(it: Interpreter, target: cst.Attribute, owner: Value, value: Value) -> None:
    on = value.value if isinstance(value, Constant) and value.known else None
    if on is False:
        it.effect("freezes")
    if isinstance(owner, Tensor):
        if owner.parameter_of and on is not True:
            it.state.heap[(owner.parameter_of, "frozen")] = Flag(True, it.site(target))
        elif owner.parameter_of:
            it.state.heap.pop((owner.parameter_of, "frozen"), None)
        elif isinstance(target.value, cst.Attribute) and on is False:
            _freeze_own(it, target.value, owner)
        elif isinstance(target.value, cst.Name) and on is not False:
            it.effect("input-gradient")
            it.state.vars[target.value.value] = replace(
                owner, graph=Graph.LIVE, origins=owner.origins | {it.origin(target)}, producer="requires_grad"
            )
        return
    if isinstance(owner, Unknown):
        if on is not False:
            it.effect("input-gradient")
        if owner.part_of is not None:
            it.state.heap[(owner.part_of.oid, "partly frozen")] = Flag(True, it.site(target))

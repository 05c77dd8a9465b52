"""Bareness: modules without parameters. Such a module passes graphs on and begins none."""

from __future__ import annotations

from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.heap import ELEMENT, State, visible
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Input, Object, Ref
from torchmemlint.flow.ir.defuse import default_of, definitions
from torchmemlint.flow.ir.ops import Constant
from torchmemlint.flow.models import gradients
from torchmemlint.knowledge import modules as known
from torchmemlint.knowledge.contracts import Contracts


def is_transparent(state: State, module: Ref, depth: int = 3) -> bool:
    """Has a module no parameters that are trained? It passes graphs on and begins none."""
    if type(module) is Object and module.kind is Kind.INSTANCE:
        return depth > 0 and _is_bare(state, module, depth)
    if type(module) is not Object or module.kind is not Kind.MODULE:
        return False
    if gradients.is_frozen(state, module):
        return True
    qualified = str(module.about)
    if qualified.rpartition(".")[2] in known.CONTAINERS and depth:
        held = parts(state, module)
        return bool(held) and all(is_transparent(state, r, depth - 1) for r in held)
    return is_bare_class(qualified)


def is_bare_class(qualified: str) -> bool:
    """Have the modules of a library's class no parameters? Those of `torch.nn.Module` have what they are given."""
    return known.has_parameters(qualified) is False or qualified.endswith("Loss") or qualified == "torch.nn.Module"


def _is_bare(state: State, instance: Object, depth: int) -> bool:
    """Has an instance of a network of the project no attributes but transparent modules and plain values?"""
    held = [value for _, value in visible(state.heap.edges(instance))]
    return all(map(is_bare_class, instance.about.cls.bases)) and all(
        not value.graph and not value.open and all(is_transparent(state, r, depth - 1) for r in value.refs)
        for value in held
    )


def has_none(site: CallSite, network: Object) -> bool:
    """Has a network of the project no parameters: does it hold only plain values, and tools that are no modules?"""
    index = site.machine.index
    held = [value for _, value in visible(site.state.heap.edges(network))] if network.kind is Kind.INSTANCE else []
    tools = {r for value in held for r in value.refs if is_tool(index.contracts, r)}
    return (
        bool(tools)
        and all(map(is_bare_class, index.libraries(network.about.cls)))
        and all(
            all(r in tools or _is_plain(r) for r in value.refs)
            if value.refs
            else value.known or not (value.graph or value.open)
            for value in held
        )
    )


def is_tool(known_as: Contracts, held: Ref) -> bool:
    """Is it an object of a library that is known to be no module, such as a tokenizer?"""
    return type(held) is Object and held.kind is Kind.OPAQUE and known_as.is_no_module(str(held.about))


def _is_plain(held: Ref) -> bool:
    """Is it a parameter that is a number or a text if nothing is given?"""
    default = default_of(held.function, str(held.name)) if type(held) is Input else None
    made = definitions(default[0]).made.get(default[1]) if default is not None else None
    return isinstance(made, Constant) and made.value is not None


def parts(state: State, holder: Ref) -> list[Ref]:
    """Return the parts that a ModuleList, ModuleDict or Sequential was given, in order."""
    found: dict[Ref, None] = {}
    for name, value in visible(state.heap.edges(holder)):
        if type(name) is int or name is ELEMENT:
            for r in value.each():
                if type(r) is Object and r.kind in (Kind.LIST, Kind.TUPLE, Kind.DICT):
                    for _, held in visible(state.heap.edges(r)):
                        found.update(dict.fromkeys(held.each()))
                else:
                    found[r] = None
    return list(found)

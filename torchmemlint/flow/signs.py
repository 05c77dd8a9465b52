"""What the syntax of a function shows of the facts that could come from it (`flow.relevance` asks).

Each sign errs on the side of being there: without it, no rule can report the function.
"""

from __future__ import annotations

import ast
from collections.abc import Set
from functools import lru_cache

from torchmemlint.flow.program import Program
from torchmemlint.flow.units import Unit, names_in
from torchmemlint.knowledge import torch_api
from torchmemlint.knowledge.contracts import Contracts
from torchmemlint.syntax.outline import dotted

_GRADIENT_MODES = frozenset({"no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autograd"})
_NOT_TELLING = frozenset(
    "len isinstance type id repr str hasattr callable int bool format input all any round byte".split()
)
_READING = (torch_api.READERS | torch_api.READING_BUILTINS | torch_api.DISCRETE) - _NOT_TELLING
_OF_MODULES = frozenset("parameters named_parameters state_dict load_state_dict named_modules named_children".split())


def cuts(unit: Unit) -> bool:
    """A detach, a module that calls itself, or a gradient mode that may do nothing."""
    outline = unit.outline
    if not outline.calls.isdisjoint(torch_api.CUTS) or _takes_data(unit):
        return True
    return "self" in outline.called or "self.forward" in outline.called or changes_nothing(unit)


def changes_nothing(unit: Unit) -> bool:
    """Is a gradient mode set that may be without effect?"""
    names = unit.outline.names
    if "volatile" in names or _switches_a_module(unit):
        return True
    if not sets_mode(unit):
        return False
    return any(_sets_mode_for_nothing(node) for kind in (ast.Expr, ast.With) for node in unit.nodes(kind))


def sets_mode(unit: Unit) -> bool:
    """Does it name what sets the gradient mode?"""
    return not unit.outline.names.isdisjoint(_GRADIENT_MODES)


def _is_decorated(unit: Unit, names: Set[str]) -> bool:
    """Has the function a decorator that ends in one of these names?"""
    return any(text.rpartition(".")[2] in names for text in unit.function.decorator_texts())


def asks_for_gradients(unit: Unit) -> bool:
    """Does it change what requires gradients? No fact by itself: it tells of what others do."""
    outline = unit.outline
    return "requires_grad_" in outline.calls or ("requires_grad" in outline.names and _asks_for_gradients(unit))


def _asks_for_gradients(unit: Unit) -> bool:
    """`x.requires_grad = True`, `torch.zeros(3, requires_grad=True)`; not `nn.Parameter(x, requires_grad=flag)`."""
    if any(_is_switched(node) for node in unit.nodes(ast.Attribute)):
        return True
    return any(
        keyword.arg == "requires_grad"
        for call in unit.nodes(ast.Call)
        if dotted(call.func).rpartition(".")[2] != "Parameter"
        for keyword in call.keywords
    )


def _is_switched(node: ast.Attribute) -> bool:
    """`x.requires_grad = ...`"""
    return node.attr == "requires_grad" and isinstance(node.ctx, ast.Store)


def _switches_a_module(unit: Unit) -> bool:
    """`x.requires_grad = ...`, which nobody reads if it is a module; not in `for x in module.parameters():`."""
    if "requires_grad" not in unit.outline.names:
        return False
    parameters: set[str] = set()
    for loop in unit.nodes(ast.For):
        walked = loop.iter.func if isinstance(loop.iter, ast.Call) else None
        if isinstance(walked, ast.Attribute) and walked.attr.endswith("parameters"):
            parameters |= names_in(loop.target)
    return any(
        _is_switched(node) and not (isinstance(node.value, ast.Name) and node.value.id in parameters)
        for node in unit.nodes(ast.Attribute)
    )


def _takes_data(unit: Unit) -> bool:
    """`x.data`, but neither `x.data.zero_()` nor `x.data = y`."""
    if "data" not in unit.outline.names:
        return False
    written = [
        call.func.value
        for call in unit.nodes(ast.Call)
        if isinstance(call.func, ast.Attribute) and _works_in_place(call.func)
    ]
    return any(
        node.attr == "data" and isinstance(node.ctx, ast.Load) and not any(node is owner for owner in written)
        for node in unit.nodes(ast.Attribute)
    )


def _sets_mode_for_nothing(node: ast.stmt) -> bool:
    """`torch.no_grad()` as a statement, `with torch.no_grad:`."""
    if isinstance(node, ast.With):
        return any(not isinstance(item.context_expr, ast.Call) for item in node.items)
    assert isinstance(node, ast.Expr)
    value = node.value.func if isinstance(node.value, ast.Call) else node.value
    return dotted(value).rpartition(".")[2] in _GRADIENT_MODES


@lru_cache(maxsize=4)
def _reading(contracts: Contracts) -> frozenset[str]:
    """Functions and methods by which something is read off as a number."""
    told = contracts.names("reads").methods | contracts.names("runs-without-gradients").methods
    return _READING | (told - _NOT_TELLING)


def reads(unit: Unit) -> bool:
    """Is something read off as a number, or detached?"""
    calls = unit.outline.calls
    return (
        not calls.isdisjoint(_reading(unit.function.program.contracts))
        or not calls.isdisjoint(torch_api.CUTS)
        or _takes_data(unit)
    )


def measures(unit: Unit) -> bool:
    """Outside of modules, and with gradients: something is read off, or grows in a loop."""
    if unit.in_module or _is_decorated(unit, torch_api.TURNING_GRADIENTS_OFF):
        return False
    growing: list[ast.AugAssign | ast.Compare | ast.JoinedStr] = [
        *unit.nodes(ast.AugAssign),
        *unit.nodes(ast.Compare),
        *unit.nodes(ast.JoinedStr),
    ]
    return reads(unit) or any(_in_loop(unit, node.lineno) for node in growing)


def _in_loop(unit: Unit, row: int) -> bool:
    return any(loop.lineno <= row <= (loop.end_lineno or row) for loop in unit.loops())


def shows_module(unit: Unit, names: Set[str], program: Program) -> bool:
    """Is a module built, annotated or named here, or shown to be one by the methods called on it?"""
    outline = unit.outline
    if not names.isdisjoint(outline.names) or not outline.calls.isdisjoint(_OF_MODULES):
        return True
    for path in outline.called:
        qualified = program.qualify(path)
        if program.contracts.is_module_class(qualified) or program.contracts.is_module_factory(qualified):
            return True
    return False


_HARMLESS = frozenset("requires_grad_ detach_ share_memory_ set_ resize_ unscale_".split())


def _works_in_place(method: ast.Attribute) -> bool:
    """`x.add_`, but not `nn.init.zeros_`."""
    name = method.attr
    if not name.endswith("_") or name.endswith("__") or name in _HARMLESS:
        return False
    return dotted(method.value).rpartition(".")[2] != "init"

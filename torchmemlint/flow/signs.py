"""What the syntax of a function shows of the facts that could come from it (`flow.relevance` asks).

Each sign errs on the side of being there: without it, no rule can report the function.
"""

from __future__ import annotations

import ast
from collections.abc import Set
from functools import lru_cache

from torchmemlint.flow.program import Program
from torchmemlint.flow.units import Unit, names_in
from torchmemlint.knowledge import activations, saved_tensors, torch_api
from torchmemlint.knowledge.contracts import Contracts
from torchmemlint.syntax.outline import defaults, dotted

_GRADIENT_MODES = frozenset({"no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autograd"})
_NOT_TELLING = frozenset(
    "len isinstance type id repr str hasattr callable int bool format input all any round byte".split()
)
_READING = (torch_api.READERS | torch_api.READING_BUILTINS | torch_api.DISCRETE) - _NOT_TELLING
_LAYERS_IN_PLACE = activations.WITH_INPLACE
_OF_MODULES = frozenset("parameters named_parameters state_dict load_state_dict named_modules named_children".split())
_IN_PLACE_FUNCTIONS = activations.FUNCTIONS | {f"{name}_" for name in activations.FUNCTIONS}


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


# -- activations -----------------------------------------------------------------------------------------------------


def activates_in_place(unit: Unit) -> bool:
    """Does an activation that is applied or built work in place?"""
    outline = unit.outline
    if "inplace" in outline.names:
        return not outline.names.isdisjoint(_LAYERS_IN_PLACE) or not outline.calls.isdisjoint(_IN_PLACE_FUNCTIONS)
    called = outline.calls & _IN_PLACE_FUNCTIONS
    if any(name.endswith("_") for name in called):
        return True
    return bool(called) and any(_is_told_to(call) for call in unit.nodes(ast.Call))


def _is_told_to(call: ast.Call) -> bool:
    """`F.selu(x, True)`"""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    return name in _IN_PLACE_FUNCTIONS and any(isinstance(a, ast.Constant) and a.value is True for a in call.args)


def activation_attributes(unit: Unit) -> set[str]:
    """The attributes that a method gives activations to, also by way of parameters and local names."""
    names = set(_LAYERS_IN_PLACE)
    names.update(name for name, default in defaults(unit.syntax.args).items() if names_in(default) & _LAYERS_IN_PLACE)
    found: set[str] = set()
    for target, value in unit.stores:
        if value is None or names.isdisjoint(names_in(value)):
            continue
        if isinstance(target, ast.Name):
            names.add(target.id)
        elif isinstance(target, ast.Attribute):
            found.add(target.attr)
    return found


# -- tensors that are overwritten ------------------------------------------------------------------------------------


def overwrites(unit: Unit) -> bool:
    """Is a tensor changed in place that something else may have kept?"""
    builds = unit.name == "__init__"
    own_leaves = (builds or unit.name == "forward") and _has_parameters(unit)
    changed: dict[str, int] = {}  # the last row in which a name's tensor is changed
    for augmented in unit.nodes(ast.AugAssign):
        if isinstance(augmented.target, ast.Attribute) and own_leaves:
            return True
        if isinstance(augmented.target, ast.Name) and isinstance(augmented.op, _TENSOR_OPERATORS) and not builds:
            changed[augmented.target.id] = max(changed.get(augmented.target.id, 0), augmented.lineno)
    for call in unit.nodes(ast.Call):
        if not isinstance(call.func, ast.Attribute) or not _works_in_place(call.func):
            continue
        owner = _root(call.func.value)
        if isinstance(owner, ast.Name):
            changed[owner.id] = max(changed.get(owner.id, 0), call.lineno)
        elif (isinstance(owner, ast.Attribute) and own_leaves) or (
            isinstance(owner, ast.Call) and _keeps_output(owner, unit)
        ):
            return True
    if changed:
        texts = _texts(unit)
        changed = {name: row for name, row in changed.items() if name not in texts}
    if changed and asks_for_gradients(unit):
        return True  # it may be a leaf
    return any(_is_kept(name, row, unit) for name, row in changed.items())


def _texts(unit: Unit) -> set[str]:
    """Local names of texts: `lines += f"{name}\\n"`."""
    added = ((augmented.target, augmented.value) for augmented in unit.nodes(ast.AugAssign))
    return {target.id for target, value in (*unit.stores, *added) if isinstance(target, ast.Name) and _is_text(value)}


def _is_text(value: ast.expr | None) -> bool:
    match value:
        case ast.JoinedStr() | ast.Constant(value=str() | bytes()):
            return True
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _is_text(left) or _is_text(right)
    return False


def _has_parameters(unit: Unit) -> bool:
    classes = unit.cls.ancestors() if unit.cls is not None else ()
    return any(not cls.outline.names.isdisjoint(("Parameter", "register_parameter")) for cls in classes)


_TENSOR_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.MatMult, ast.FloorDiv, ast.Mod)
_HARMLESS = frozenset("requires_grad_ detach_ share_memory_ set_ resize_ unscale_".split())
_LOOKING = frozenset("len isinstance print range type id hasattr int float bool str zip enumerate min max".split())


def _works_in_place(method: ast.Attribute) -> bool:
    """`x.add_`, but not `nn.init.zeros_`."""
    name = method.attr
    if not name.endswith("_") or name.endswith("__") or name in _HARMLESS:
        return False
    return dotted(method.value).rpartition(".")[2] != "init"


def _keeps_output(call: ast.Call, unit: Unit) -> bool:
    """May the call's result be one that its backward needs, or an expanded view?"""
    path = dotted(call.func)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else path
    if name.rstrip("_") in saved_tensors.OUTPUT_KEPT or name in ("expand", "expand_as", "broadcast_to", "Parameter"):
        return True
    if not path.startswith("self.") or unit.cls is None:
        return False
    return any(not cls.outline.names.isdisjoint(saved_tensors.OUTPUT_KEPT) for cls in unit.cls.ancestors())


def _is_kept(name: str, row: int, unit: Unit) -> bool:
    """May the tensor behind a local name, overwritten in `row` at the latest, be kept, or known under a second name?"""
    last = max([row, *(loop.end_lineno or row for loop in unit.loops() if loop.lineno <= row)])
    counts = False  # is it a number?
    for assign in unit.nodes(ast.Assign):
        own = any(isinstance(target, ast.Name) and target.id == name for target in assign.targets)
        value = assign.value
        counts |= own and isinstance(value, ast.Constant)
        if isinstance(value, ast.Name) and (own or value.id == name):
            return True
        if own and isinstance(value, ast.Call) and _keeps_output(value, unit):
            return True
        if not own and not counts and assign.lineno <= last and _is_operand(name, value):
            return True
    if counts:
        return False
    statements: list[ast.Return | ast.Expr | ast.AnnAssign] = [
        *unit.nodes(ast.Return),
        *unit.nodes(ast.Expr),
        *unit.nodes(ast.AnnAssign),
    ]
    for statement in statements:
        if statement.value is not None and statement.lineno <= last and _is_operand(name, statement.value):
            return True
    for augmented in unit.nodes(ast.AugAssign):
        own = isinstance(augmented.target, ast.Name) and augmented.target.id == name
        if not own and augmented.lineno <= last and _is_operand(name, augmented.value):
            return True
    return False


def _is_operand(name: str, value: ast.expr) -> bool:
    """Does an operation in the expression take the name as it is?"""
    for node in ast.walk(value):
        match node:
            case ast.Call(func=func, args=args, keywords=keywords):
                if isinstance(func, ast.Name) and func.id in _LOOKING:
                    continue
                operands = [*args, *(keyword.value for keyword in keywords)]
                operands += [func.value] if isinstance(func, ast.Attribute) else []
            case ast.BinOp(left=left, op=ast.Mult() | ast.MatMult() | ast.Div() | ast.Pow(), right=right):
                operands = [left, right]
            case _:
                continue
        if any(isinstance(operand, ast.Name) and operand.id == name for operand in operands):
            return True
    return False


def _root(node: ast.expr) -> ast.expr:
    """What is subscripted: `self.cache` of `self.cache[key][0]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node

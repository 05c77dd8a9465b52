"""What the syntax of a function shows of the facts that could come from it (`flow.relevance` asks).

Each sign errs on the side of being there: without it, no rule can report the function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.knowledge import activations, saved_tensors, torch_api
from torchmemlint.knowledge.contracts import Contracts
from torchmemlint.syntax.outline import Outline, defaults, dotted

_Node = TypeVar("_Node", bound=ast.AST)

_GRADIENT_MODES = frozenset({"no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autograd"})
_NOT_TELLING = frozenset(
    "len isinstance type id repr str hasattr callable int bool format input all any round byte".split()
)
_READING = (torch_api.READERS | torch_api.READING_BUILTINS | torch_api.DISCRETE) - _NOT_TELLING
_COLLECTING = frozenset("append extend add update insert put setdefault appendleft extendleft put_nowait".split())
_QUIET_LAYERS = frozenset(f"torch.nn.{name}" for name in activations.SAVES_NOTHING)
_LAYERS_IN_PLACE = activations.WITH_INPLACE
_OF_MODULES = frozenset("parameters named_parameters state_dict load_state_dict named_modules named_children".split())
_IN_PLACE_FUNCTIONS = activations.FUNCTIONS | {f"{name}_" for name in activations.FUNCTIONS}
_QUIET_FUNCTIONS = frozenset(
    name for name in activations.FUNCTIONS if activations.functional(f"torch.{name}") in _QUIET_LAYERS
)


@dataclass(eq=False, slots=True)
class Unit:
    """A top-level function or a method."""

    function: Function
    syntax: ast.FunctionDef | ast.AsyncFunctionDef
    cls: ClassInfo | None
    attributes: set[str] = field(default_factory=set)  # that its sign is about
    folds: bool = False  # may it make an attribute's or global's value of the old one?
    _by_kind: dict[type[ast.AST], list[ast.AST]] | None = None

    @property
    def outline(self) -> Outline:
        """What it calls and names."""
        return self.function.outline

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.function.name

    @property
    def in_module(self) -> bool:
        """Is it a method of an `nn.Module`?"""
        return self.cls is not None and self.cls.is_module

    def nodes(self, kind: type[_Node]) -> list[_Node]:
        """All nodes of a kind (not of names and constants), outer ones first."""
        if self._by_kind is None:
            self._by_kind = {}
            for node in self.outline.nodes:
                self._by_kind.setdefault(node.__class__, []).append(node)
        return self._by_kind.get(kind, [])  # type: ignore[return-value]

    def loops(self) -> list[ast.For | ast.AsyncFor | ast.While]:
        """Its loops, also those of functions within it."""
        return [*self.nodes(ast.For), *self.nodes(ast.AsyncFor), *self.nodes(ast.While)]


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
    if names.isdisjoint(_GRADIENT_MODES):
        return False
    return any(_sets_mode_for_nothing(node) for kind in (ast.Expr, ast.With) for node in unit.nodes(kind))


def asks_for_gradients(unit: Unit) -> bool:
    """Does it change what requires gradients? No fact by itself: it tells of what others do."""
    outline = unit.outline
    return "requires_grad_" in outline.calls or ("requires_grad" in outline.names and _asks_for_gradients(unit))


def handles_failures(unit: Unit) -> bool:
    """Is something done in an `except` clause of memory that ran out (or may be one)?"""
    return any(
        not isinstance(statement, ast.Raise | ast.Pass | ast.Continue | ast.Break)
        for attempt in unit.nodes(ast.Try)
        for handler in attempt.handlers
        for statement in handler.body
    )


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
            parameters |= _identifiers(loop.target)
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
    """Outside of modules: something is read off, or grows in a loop."""
    if unit.in_module:
        return False
    growing: list[ast.AugAssign | ast.Compare | ast.JoinedStr] = [
        *unit.nodes(ast.AugAssign),
        *unit.nodes(ast.Compare),
        *unit.nodes(ast.JoinedStr),
    ]
    return reads(unit) or any(_in_loop(unit, node.lineno) for node in growing)


def grows(unit: Unit) -> bool:
    """Is something in a loop made of its own earlier value, or put into a container?"""
    for loop in unit.loops():
        for node in ast.walk(loop):
            match node:
                case ast.AugAssign() | ast.Subscript(ctx=ast.Store()):
                    return True
                case ast.Call(func=ast.Attribute(attr=method)) if method in _COLLECTING:
                    return True
                case ast.Assign(targets=targets, value=value):
                    if any(not _identifiers(target).isdisjoint(_identifiers(value)) for target in targets):
                        return True
    return False


def _in_loop(unit: Unit, row: int) -> bool:
    return any(loop.lineno <= row <= (loop.end_lineno or row) for loop in unit.loops())


def read_attributes(units: list[Unit]) -> set[str]:
    """Attributes that may be read off as numbers, here or by what they are handed to."""
    functions = {unit.name for unit in units if reads(unit)}
    reading = torch_api.CUTS | functions
    if units:
        reading |= _reading(units[0].function.program.contracts)
    found: set[str] = set()
    for unit in units:
        does = reads(unit)
        if not does and unit.outline.calls.isdisjoint(functions):
            continue
        for node in unit.outline.nodes:
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in reading:
                    part: ast.AST = node
                case ast.Assign(value=part) | ast.For(iter=part) | ast.AnnAssign(value=ast.expr() as part) if does:
                    pass
                case ast.Attribute(attr="data", value=part) | ast.NamedExpr(value=part) | ast.comprehension(iter=part):
                    pass
                case _:
                    continue
            found.update(inner.attr for inner in ast.walk(part) if isinstance(inner, ast.Attribute))
    return found


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


def keeps(unit: Unit, read: Set[str], defined: Set[str], *, given_tensors: bool) -> bool:
    """Is something that may have a graph kept in an attribute or global, where somebody could read it?

    `read`: the attributes that are read off somewhere; `defined`: what functions of the file are called;
    `given_tensors`: may its parameters have a graph?
    """
    if unit.name in ("__init__", "__new__", "__setstate__", "__post_init__"):
        return False
    stores = list(_stores(unit))
    given = _parameters(unit.syntax)
    local = {target.id for target, _ in stores if isinstance(target, ast.Name)} - given.keys()
    local.update(star.arg for star in (unit.syntax.args.vararg, unit.syntax.args.kwarg) if star is not None)
    settings = _settings(unit, stores)
    new = _new_objects(unit, stores, defined) - given.keys()
    counted = {id(node.target) for node in unit.nodes(ast.AugAssign) if _is_plain(node.value, settings)}
    found: set[str] = set()
    kept = False
    for target, value in stores:
        root = _root(target)
        if _is_plain(value, settings, stored=root is target) or id(target) in counted or _owner(root) in new:
            continue
        if root is target:
            if isinstance(target, ast.Attribute) and not _without_graph(target, unit):
                unit.folds |= (folds := _folds(unit, target.attr, value))
                found.update([target.attr] if folds or target.attr in read else [])
        elif isinstance(root, ast.Attribute):
            found.add(root.attr)
        elif isinstance(root, ast.Name) and root.id not in local:
            kept |= root.id not in given or (given_tensors and not unit.in_module)
            found.update([root.id] if root.id not in given else [])
    declarations: list[ast.Global | ast.Nonlocal] = [*unit.nodes(ast.Global), *unit.nodes(ast.Nonlocal)]
    for name in {name for declared in declarations for name in declared.names} - settings:
        unit.folds = True
        found.add(name)
    for call in unit.nodes(ast.Call) if not unit.in_module else ():
        if isinstance(call.func, ast.Attribute) and call.func.attr in _COLLECTING:
            root = _root(call.func.value)
            if all(_is_plain(argument, settings) for argument in call.args) and not call.keywords:
                continue
            if _owner(root) in new:
                continue
            if isinstance(root, ast.Attribute):
                found.add(root.attr)
            elif isinstance(root, ast.Name) and root.id not in local:
                kept |= root.id not in given or given_tensors
                found.update([root.id] if root.id not in given else [])
    unit.attributes |= found
    return kept or bool(found)


def _without_graph(target: ast.Attribute, unit: Unit) -> bool:
    """`x.grad = ...`, written without a graph; `self.conv = ...` where the class calls it, so that it is no tensor."""
    if target.attr in ("grad", "data"):
        return True
    return unit.cls is not None and "__call__" in unit.cls.methods_called_on(dotted(target))


def _stores(unit: Unit) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """All targets that are assigned to, with the value where there is one of its own."""
    for assign in unit.nodes(ast.Assign):
        for target in assign.targets:
            yield from _single(target, assign.value)
    for annotated in unit.nodes(ast.AnnAssign):
        if annotated.value is not None:
            yield annotated.target, annotated.value
    for augmented in unit.nodes(ast.AugAssign):
        yield augmented.target, None
    loops: list[ast.For | ast.AsyncFor | ast.comprehension] = [
        *unit.nodes(ast.For),
        *unit.nodes(ast.AsyncFor),
        *unit.nodes(ast.comprehension),
    ]
    for loop in loops:
        yield from _single(loop.target, None)
    for walrus in unit.nodes(ast.NamedExpr):
        yield walrus.target, walrus.value
    for item in unit.nodes(ast.withitem):
        if item.optional_vars is not None:
            yield from _single(item.optional_vars, None)


def _single(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
        for index, element in enumerate(target.elts):
            yield from _single(element, parts[index] if parts is not None else value)
    else:
        yield target, value


def _parameters(syntax: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.expr | None]:
    """The parameters with their annotations, but for `*args` and `**kwargs`, which each call makes anew."""
    named = (*syntax.args.posonlyargs, *syntax.args.args, *syntax.args.kwonlyargs)
    return {node.arg: node.annotation for node in named}


def _root(node: ast.expr) -> ast.expr:
    """What is subscripted: `self.cache` of `self.cache[key][0]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _owner(node: ast.expr) -> str:
    """`out` of `out.loss`, on whatever level; "" of a name."""
    name = ""
    while isinstance(node, ast.Attribute):
        node = node.value
        name = node.id if isinstance(node, ast.Name) else ""
    return name


def _new_objects(unit: Unit, stores: list[tuple[ast.expr, ast.expr | None]], defined: Set[str]) -> set[str]:
    """The local names of what nothing else knows of: what modules, classes and other libraries' functions return.

    A function of the file (`defined`) may return what it keeps.
    """
    imported = unit.function.program.imported
    found: set[str] = set()
    others: set[str] = set()
    for target, value in stores:
        if isinstance(target, ast.Name):
            (found if _makes_anew(value, imported, defined) else others).add(target.id)
    return found - others


def _makes_anew(value: ast.expr | None, imported: Mapping[str, str], defined: Set[str]) -> bool:
    match value:
        case ast.Call(func=ast.Name(id=name)):
            return name not in defined and (name in imported or name[:1].isupper())
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)):
            return (owner == "self" and name not in defined) or owner in imported
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")))):
            return True
    return False


def _folds(unit: Unit, attribute: str, value: ast.expr | None) -> bool:
    """May the value assigned to an attribute be made of its old one (and not be merely an item or slice of it)?"""
    if value is None:
        return True  # augmented, or taken from a loop
    while isinstance(value, ast.Subscript):
        value = value.value
    if isinstance(value, ast.Attribute):
        return False
    if _mentions(value, attribute, frozenset()):
        return True
    made: set[str] = set()  # local names whose values are made of the attribute's
    while True:
        more = {
            target.id
            for target, given in _stores(unit)
            if isinstance(target, ast.Name) and target.id not in made and given and _mentions(given, attribute, made)
        }
        if not more:
            return _mentions(value, attribute, made)
        made |= more


def _mentions(value: ast.expr, attribute: str, names: Set[str]) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr == attribute)
        or (isinstance(node, ast.Name) and node.id in names)
        for node in ast.walk(value)
    )


def _settings(unit: Unit, stores: list[tuple[ast.expr, ast.expr | None]]) -> set[str]:
    """The names in a function that hold no tensor, whatever it is called with."""
    given = _parameters(unit.syntax)
    unless_given = defaults(unit.syntax.args)
    found = {
        name
        for name, annotation in given.items()
        if _declares_setting(annotation) or _is_switch(unless_given.get(name))
    }
    other = given.keys() - found
    assigned: dict[str, list[ast.expr | None]] = {}
    for target, value in stores:
        if isinstance(target, ast.Name):
            assigned.setdefault(target.id, []).append(value)
    for name, values in assigned.items():  # in the order of their first assignment, so that one may build on another
        if name not in other and all(value is not None and _is_plain(value, found) for value in values):
            found.add(name)
        else:
            found.discard(name)
    return found


def _declares_setting(annotation: ast.expr | None) -> bool:
    """Does an annotation name nothing but numbers, strings and structures of them (`Optional[Tuple[int, int]]`)?"""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return False
    if annotation is None:
        return False
    names = _identifiers(annotation)
    return not names.isdisjoint(_SETTINGS) and names <= _SETTINGS | _STRUCTURES


def _is_switch(default: ast.expr | None) -> bool:
    """Is it a string or boolean? A number may stand for a tensor that is not there yet (`loss=0.0`)."""
    return isinstance(default, ast.Constant) and isinstance(default.value, bool | str)


def _is_plain(value: ast.expr | None, settings: Set[str], *, stored: bool = False) -> bool:
    """Is it no tensor: a constant, a setting, a new layer or other object? `settings` are names of such.

    `stored`: or what is stored elsewhere already, an attribute or an item of one? A second name keeps nothing more
    alive; a collection or a sum of such does.
    """
    match value:
        case ast.Constant() | ast.Lambda() | ast.Compare() | ast.JoinedStr() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Name(id=name):
            return name in settings
        case ast.Attribute():
            return stored
        case ast.Subscript(value=owner):
            return _is_plain(owner, settings, stored=stored)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return (name[:1].isupper() and not name.endswith("Tensor")) or name in _NUMBERS
        case ast.BinOp(left=left, right=right):
            return _is_plain(left, settings) and _is_plain(right, settings)
        case ast.IfExp(body=body, orelse=orelse):
            return _is_plain(body, settings, stored=stored) and _is_plain(orelse, settings, stored=stored)
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.BoolOp(values=elements):
            return all(_is_plain(element, settings, stored=stored) for element in elements)
        case ast.Dict(values=elements):
            return all(_is_plain(element, settings, stored=stored) for element in elements)
    return False


_SETTINGS = frozenset("int bool str float bytes Path".split())
_STRUCTURES = frozenset("Optional Union Tuple List Dict Sequence Iterable Set None tuple list dict set typing".split())
_NUMBERS = frozenset("int float bool str len isinstance hasattr id type repr".split())


# -- activations -----------------------------------------------------------------------------------------------------


def activates(unit: Unit) -> bool:
    """Is an activation applied or built that has an in-place form worth speaking of, or works in place?"""
    outline = unit.outline
    named = outline.names & _LAYERS_IN_PLACE
    called = {name.rstrip("_") for name in outline.calls if name in _IN_PLACE_FUNCTIONS}
    if not named and not called:
        return False
    if activates_in_place(unit):
        return True
    return bool(named - activations.SAVES_NOTHING) or any(name not in _QUIET_FUNCTIONS for name in called)


def activates_in_place(unit: Unit) -> bool:
    """Does an activation that is applied or built work in place?"""
    outline = unit.outline
    if "inplace" in outline.names:
        return not outline.names.isdisjoint(_LAYERS_IN_PLACE) or not outline.calls.isdisjoint(_IN_PLACE_FUNCTIONS)
    return any(name.endswith("_") for name in outline.calls & _IN_PLACE_FUNCTIONS)


def activation_attributes(unit: Unit) -> set[str]:
    """The attributes that a method gives activations to, also by way of parameters and local names."""
    names = set(_LAYERS_IN_PLACE)
    names.update(
        name for name, default in defaults(unit.syntax.args).items() if _identifiers(default) & _LAYERS_IN_PLACE
    )
    found: set[str] = set()
    for target, value in _stores(unit):
        if value is None or names.isdisjoint(_identifiers(value)):
            continue
        if isinstance(target, ast.Name):
            names.add(target.id)
        elif isinstance(target, ast.Attribute):
            found.add(target.attr)
    return found


def _identifiers(node: ast.expr) -> set[str]:
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


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
    if changed and asks_for_gradients(unit):
        return True  # it may be a leaf
    return any(_is_kept(name, row, unit) for name, row in changed.items())


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

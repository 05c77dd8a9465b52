"""What a function stores that holds no graph, whatever the function is called with: numbers, text, new objects.

Only the syntax is looked at, and where it does not tell, a value may have a graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Set
from functools import cached_property

from torchmemlint.flow import bindings
from torchmemlint.flow.units import Unit, names_in
from torchmemlint.knowledge import torch_api
from torchmemlint.syntax.outline import defaults, dotted

_SETTINGS = frozenset("int bool str float bytes Path".split())
_STRUCTURES = frozenset("Optional Union Tuple List Dict Sequence Iterable Set None tuple list dict set typing".split())
_NUMBERS = frozenset("int float bool str len isinstance hasattr id type repr range ord chr hash callable".split())
_NUMBERS_OF_OBJECTS = torch_api.METADATA | torch_api.READERS
_TEXTS = frozenset("format join strip lstrip rstrip lower upper startswith endswith splitlines casefold title".split())
_GATHERING = frozenset("tuple list set frozenset dict sorted reversed zip enumerate min max sum abs round".split())
_FILLED = frozenset("list dict set sorted deque defaultdict".split())


class Plain:
    """What is known of the values in one function.

    `defined`: what functions of the file are called, and whether they say that they return no tensor; `numbers`:
    attributes of `self` that never hold a tensor, as of `attributes`. `objects`: are new objects plain? A parameter is
    one, and a list may be filled.
    """

    def __init__(
        self, unit: Unit, defined: Mapping[str, bool], numbers: Set[str] = frozenset(), *, objects: bool = True
    ) -> None:
        # The parameters with their annotations; `*args` and `**kwargs` are made anew by each call.
        self.given = {node.arg: node.annotation for node in bindings.parameters(unit.syntax)}
        self._defined = defined
        self._numbers = numbers
        self._objects = objects
        self._imported = unit.function.program.imported
        self._settings = {
            name
            for name, default in defaults(unit.syntax.args).items()
            if _is_switch(default, numbers_too=unit.name == "__init__")
        }
        self._settings.update(name for name, annotation in self.given.items() if _declares_setting(annotation))
        self._unit = unit
        self._settle(unit)

    def _settle(self, unit: Unit) -> None:
        """Find the local names that hold no tensor."""
        other = self.given.keys() - self._settings
        assigned: dict[str, list[ast.expr | None]] = {}
        for target, value in unit.stores:
            if isinstance(target, ast.Name):
                assigned.setdefault(target.id, []).append(value)
        for loop in unit.iterations():
            if self.is_plain(loop.iter):
                for name in {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}:
                    values = assigned.get(name, [])
                    if None in values:  # not `*rest`
                        values[values.index(None)] = loop.iter  # as plain as its elements
        for name, values in assigned.items():  # in the order of their first assignment: one may build on another
            if name not in other and all(value is not None and self.is_plain(value) for value in values):
                self._settings.add(name)
            else:
                self._settings.discard(name)

    def is_setting(self, name: str) -> bool:
        """Does a local name or parameter hold no tensor?"""
        return name in self._settings

    @cached_property
    def new(self) -> set[str]:
        """The local names of what nothing else knows of: what modules, classes and other libraries' functions return.

        A function of the file may return what it keeps.
        """
        found: set[str] = set()
        others: set[str] = set(self.given)
        for target, value in self._unit.stores:
            if isinstance(target, ast.Name):
                (found if self._makes_anew(value) else others).add(target.id)
        return found - others

    def _makes_anew(self, value: ast.expr | None) -> bool:
        match value:
            case ast.Call(func=ast.Name(id=name)):
                return name not in self._defined and (name in self._imported or name[:1].isupper())
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)):
                return (owner == "self" and name not in self._defined) or owner in self._imported
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")))):
                return True
        return False

    def is_plain(self, value: ast.expr | None, *, stored: bool = False) -> bool:
        """Is it no tensor: a constant, a setting, a new layer or other object?

        `stored`: or what is stored elsewhere already, an attribute or an item of one? A second name keeps nothing more
        alive; a collection or a sum of such does.
        """
        match value:
            case ast.Constant() | ast.Lambda() | ast.Compare() | ast.JoinedStr():
                return True
            case ast.UnaryOp(op=op, operand=operand):
                return isinstance(op, ast.Not) or self.is_plain(operand)
            case ast.Name(id=name):
                return name in self._settings
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in self._numbers:
                return True
            case ast.Attribute(attr=name):
                return stored or name in torch_api.METADATA_ATTRIBUTES
            case ast.Subscript(value=owner):
                return self.is_plain(owner, stored=stored)
            case ast.Call():
                return self._gives_plain(value)
            case ast.BinOp(left=left, right=right):
                return self.is_plain(left) and self.is_plain(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_plain(body, stored=stored) and self.is_plain(orelse, stored=stored)
            case ast.Tuple(elts=elements) | ast.BoolOp(values=elements):
                return all(self.is_plain(element, stored=stored) for element in elements)
            case ast.GeneratorExp(elt=element):
                return self.is_plain(element)
            case ast.List(elts=elements) | ast.Set(elts=elements) | ast.Dict(values=elements):
                return self._objects and all(self.is_plain(element, stored=stored) for element in elements)
            case ast.ListComp(elt=element) | ast.SetComp(elt=element) | ast.DictComp(value=element):
                return self._objects and self.is_plain(element)
        return False

    def _gives_plain(self, call: ast.Call) -> bool:
        match call.func:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                if name in _NUMBERS:
                    return True
                if name[:1].isupper():
                    return self._objects and not name.endswith("Tensor")
            case _:
                return False
        if isinstance(call.func, ast.Attribute) and (name in _NUMBERS_OF_OBJECTS or name in _TEXTS):
            return True
        path = dotted(call.func)
        if self._defined.get(name) and path in (name, f"self.{name}"):
            return True
        if name in _FILLED and not self._objects:
            return False
        known = (path in _GATHERING or path.partition(".")[0] in self._imported) and name not in self._defined
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not known or not given or any(keyword.arg == "requires_grad" for keyword in call.keywords):
            return False
        return all(self.is_plain(one.value if isinstance(one, ast.Starred) else one) for one in given)


def owner(node: ast.expr) -> str:
    """`out` of `out.loss`, on whatever level; "" of a name."""
    name = ""
    while isinstance(node, ast.Attribute):
        node = node.value
        name = node.id if isinstance(node, ast.Name) else ""
    return name


def attributes(units: Iterable[Unit], defined: Mapping[str, bool]) -> set[str]:
    """The attributes that never hold a tensor: every value that the file gives them is plain."""
    units = list(units)
    hidden = {name for unit in units for name in _set_by_name(unit)}
    written = [(unit, _attributes_written(unit)) for unit in units]
    found = {name for _, values in written for name in values} - hidden
    while True:
        others = {
            name
            for unit, values in written
            if not found.isdisjoint(values) and (known := Plain(unit, defined, found, objects=False))
            for name, given in values.items()
            if name in found and not all(known.is_plain(value) for value in given)
        }
        if not others:
            return found
        found -= others


def definitions(units: Iterable[Unit]) -> dict[str, bool]:
    """What the functions are called, and whether all of that name are declared to return no tensor."""
    found: dict[str, bool] = {}
    for unit in units:
        found[unit.name] = found.get(unit.name, True) and _declares_setting(unit.syntax.returns)
    return found


def _attributes_written(unit: Unit) -> Mapping[str, list[ast.expr | None]]:
    found: dict[str, list[ast.expr | None]] = {}
    added = {id(node.target): node.value for node in unit.nodes(ast.AugAssign)}
    for target, value in unit.stores:
        if isinstance(target, ast.Attribute):
            found.setdefault(target.attr, []).append(added.get(id(target), value))
    return found


def _set_by_name(unit: Unit) -> set[str]:
    """`self.register_buffer("mean", ...)`, `setattr(self, "mean", ...)`."""
    calls = unit.outline.calls
    if calls.isdisjoint(_SETTERS):
        return set()
    return {
        argument.value
        for call in unit.nodes(ast.Call)
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


_SETTERS = frozenset("register_buffer register_parameter setattr __setattr__ add_module register_module".split())


def _declares_setting(annotation: ast.expr | None) -> bool:
    """Does an annotation name nothing but numbers, strings and structures of them (`Optional[Tuple[int, int]]`)?"""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return False
    if annotation is None or isinstance(annotation, ast.Attribute):
        return False
    if isinstance(annotation, ast.Name):
        return annotation.id in _SETTINGS
    names = names_in(annotation)
    return not names.isdisjoint(_SETTINGS) and names <= _SETTINGS | _STRUCTURES


def _is_switch(default: ast.expr, *, numbers_too: bool) -> bool:
    """Is it a string or boolean? A number may stand for a tensor that is not there yet (`loss=0.0`)."""
    kinds = bool | str | int | float if numbers_too else bool | str
    return isinstance(default, ast.Constant) and isinstance(default.value, kinds)

"""What a function computes, operation by operation: for rules about results that need not be written out in memory.

A value is told from others by the place that made it. While a function that shows a sign of such a rule is walked
(`flow.written_out`), the value of every expression in it is noted; what takes what is worked out when a rule asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchmemlint.flow import written_out
from torchmemlint.flow.values import Mode, ModuleValue, Tensor, Unknown, Value
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import torch_api
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.walking import children

if TYPE_CHECKING:
    from torchmemlint.flow.interpreter import Interpreter
    from torchmemlint.flow.program import Function

_LOOKS = torch_api.METADATA_ATTRIBUTES | torch_api.METADATA
_LAYER = "torch.nn."


@immutable()
class Noted:
    """The value that an expression had when the walk last came by."""

    node: cst.BaseExpression
    value: Tensor | Unknown
    mode: Mode

    @property
    def made(self) -> Site | None:
        """The place that made the value; None where it is one of several."""
        made = self.value.made
        return made if isinstance(made, Site) or made is None else made.site


@immutable(eq=False)
class Operation:
    """An operation with the tensors that it takes."""

    site: Site
    name: str  # "softmax" of functions, methods and layers alike; "Subtract"; "getitem"
    operands: tuple[cst.BaseExpression, ...]  # without keywords; of a layer: of the call
    keywords: tuple[tuple[str, cst.BaseExpression], ...]
    mode: Mode
    layer: ModuleValue | None = None  # of torch.nn
    qualified: str = ""  # of a function or layer

    @property
    def node(self) -> cst.BaseExpression:
        """The expression."""
        assert isinstance(self.site.node, cst.BaseExpression)
        return self.site.node

    def __eq__(self, other: object) -> bool:
        """Is it the same place?"""
        return isinstance(other, Operation) and other.site.node is self.site.node

    def __hash__(self) -> int:
        return id(self.site.node)

    def argument(self, name: str, position: int) -> cst.BaseExpression | None:
        """The argument of this name or, among the operands, at this position."""
        for keyword, node in self.keywords:
            if keyword == name:
                return node
        return self.operands[position] if position < len(self.operands) else None

    def keyword(self, name: str) -> cst.BaseExpression | None:
        """The argument given by this keyword."""
        return self.argument(name, len(self.operands))


@immutable()
class Taking:
    """A place where a value is taken: by which operation (None: by something else), and as which operand."""

    node: cst.BaseExpression
    operation: Operation | None
    index: int = 0  # among the operands; -1: by keyword


@dataclass(eq=False)
class Formula:
    """The expressions of one function with their values."""

    function: Function
    noted: dict[int, Noted] = field(default_factory=dict)
    layers: dict[int, ModuleValue] = field(default_factory=dict)  # called, by the call
    _operations: tuple[int, list[Operation]] = (-1, [])  # how much was noted when they were asked for, and they

    def operations(self) -> list[Operation]:
        """All operations, as the walk first came to them; several rules ask."""
        if self._operations[0] != len(self.noted):
            made = ((self.of(noted.node), noted.node) for noted in list(self.noted.values()))
            found = [operation for operation, node in made if operation is not None and operation.site.node is node]
            self._operations = (len(self.noted), found)
        return self._operations[1]

    def of(self, node: cst.CSTNode | None) -> Operation | None:
        """The operation in this function that made the value of an expression; None where that is not known."""
        noted = self.noted.get(id(node))
        if noted is None:
            return None
        if isinstance(noted.value, Unknown):  # what is unknown may have an identity (`x * 2` that of `x`), or none
            bound = self._bound_to(noted.node)
            if bound is not None:
                return self.of(bound)
            if isinstance(noted.node, _OPERATIONS):
                return self._read(noted)
        made = self.noted.get(id(noted.made.node)) if noted.made is not None else None
        return self._read(made) if made is not None else None

    def value(self, node: cst.CSTNode | None) -> Tensor | Unknown | None:
        """The value that was noted of an expression."""
        noted = self.noted.get(id(node))
        return noted.value if noted is not None else None

    def takings(self, operation: Operation) -> list[Taking]:
        """All places where an operation's result is taken, but for looks at its shape and the like."""
        made = operation.node
        found: list[Taking] = []
        name = self._bound_name(made)
        if name is None:
            found += self._taken(made)
        for node in self._names.get(name, []) if name is not None else ():
            noted = self.noted.get(id(node))
            if noted is not None and self._bound_to(node) is made:
                found += self._taken(node)
            elif noted is None or noted.made is None:
                found.append(Taking(node, None))  # not walked, or one of several values
            elif noted.made.node is made:
                found += self._taken(node)
        for noted in self.noted.values():
            if noted.node is made or noted.made is None or noted.made.node is not made:
                continue
            other = isinstance(noted.node, cst.Name) and noted.node.value != name
            if not other and not isinstance(noted.node, cst.Attribute | cst.Subscript):
                continue
            if self._bound_to(noted.node) in (None, made):
                found += self._taken(noted.node)  # under another name
        return found

    def _bound_to(self, node: cst.CSTNode) -> cst.BaseExpression | None:
        """The expression that a name stands for, where all that a function does is to bind it once."""
        if not isinstance(node, cst.Name) or node.value not in self._bindings:
            return None
        noted = self.noted.get(id(node))
        return self._bindings[node.value] if noted is not None and isinstance(noted.value, Unknown) else None

    @cached_property
    def _bindings(self) -> dict[str, cst.BaseExpression]:
        """What names are bound to that are bound just once, by an assignment of their own, and otherwise only read."""
        found: dict[str, list[cst.BaseExpression | None]] = {}
        for below, around in self._inside:
            if type(below) is not cst.Name:  # `isinstance` is slow on these classes where the answer is no
                continue
            if type(around) is cst.AugAssign and around.target is below:
                found.setdefault(below.value, []).append(None)
            if id(below) in self.noted:
                continue
            match around:
                case cst.AssignTarget():
                    statement = self._parents.get(id(around))
                    found.setdefault(below.value, []).append(
                        statement.value if isinstance(statement, cst.Assign) else None
                    )
                case cst.AnnAssign(target=target, value=value) if target is below:
                    found.setdefault(below.value, []).append(value)
                case _ if not _is_no_reading(below, around):
                    found.setdefault(below.value, []).append(None)
                case cst.NamedExpr() | cst.FunctionDef() | cst.ImportAlias():
                    found.setdefault(below.value, []).append(None)
        params = self.function.node.params
        taken = {p.name.value for p in (*params.posonly_params, *params.params, *params.kwonly_params)}
        return {n: v[0] for n, v in found.items() if len(v) == 1 and v[0] is not None and n not in taken}

    def _taken(self, node: cst.BaseExpression) -> list[Taking]:
        around = self._parents.get(id(node))
        if isinstance(around, cst.Attribute) and around.attr.value in _LOOKS:
            return []
        if isinstance(around, cst.Assign) and all(isinstance(t.target, cst.Name) for t in around.targets):
            return []  # the names are followed
        if isinstance(around, cst.Expr):
            return []
        above = around
        if isinstance(above, cst.Arg | cst.Attribute):
            above = self._parents.get(id(around))
        operation = self.of(above) if isinstance(above, _OPERATIONS) else None
        if operation is None or operation.site.node is not above:
            return [Taking(node, None)]
        if node in operation.operands:
            return [Taking(node, operation, operation.operands.index(node))]
        if any(node is given for _, given in operation.keywords):
            return [Taking(node, operation, -1)]
        return [Taking(node, None)]

    def _bound_name(self, node: cst.BaseExpression) -> str | None:
        """The one name that a statement binds to an expression's value."""
        around = self._parents.get(id(node))
        match around:
            case cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=method))):
                return name if method.value.endswith("_") else None
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                return name
            case cst.AnnAssign(target=cst.Name(value=name)):
                return name
        return None

    @cached_property
    def _names(self) -> dict[str, list[cst.Name]]:
        """The places that read each name."""
        found: dict[str, list[cst.Name]] = {}
        for below, around in self._inside:
            if type(below) is cst.Name and not _is_no_reading(below, around):
                found.setdefault(below.value, []).append(below)
        return found

    @cached_property
    def _parents(self) -> dict[int, cst.CSTNode]:
        """What stands directly around each node; subscripts and the like are no node of their own here."""
        return {id(below): around for below, around in self._inside}

    @cached_property
    def _inside(self) -> list[tuple[cst.CSTNode, cst.CSTNode]]:
        found: list[tuple[cst.CSTNode, cst.CSTNode]] = []
        pending: list[cst.CSTNode] = [self.function.node.body]
        while pending:
            around = pending.pop()
            for below in children(around):
                found.append((below, around))
                pending.append(below)
        return found

    def _read(self, noted: Noted) -> Operation | None:
        """An expression as an operation."""
        node = noted.node
        site = Site(self.function.piece, node)
        match node:
            case cst.BinaryOperation(left=left, operator=operator, right=right):
                return Operation(site, type(operator).__name__, (left, right), (), noted.mode)
            case cst.UnaryOperation(operator=operator, expression=operand):
                return Operation(site, type(operator).__name__, (operand,), (), noted.mode)
            case cst.Subscript(value=owner):
                return Operation(site, "getitem", (owner,), (), noted.mode)
            case cst.Call():
                return self._read_call(site, node, noted.mode)
        return None

    def _read_call(self, site: Site, node: cst.Call, mode: Mode) -> Operation | None:
        if any(argument.star for argument in node.args):
            return None
        given = tuple(argument.value for argument in node.args if argument.keyword is None)
        keywords = tuple((a.keyword.value, a.value) for a in node.args if a.keyword is not None)
        layer = self.layers.get(id(node))
        if layer is not None and layer.qualified.startswith(_LAYER):
            name = layer.qualified.rpartition(".")[2]
            return Operation(site, _FUNCTIONAL.get(name, name), given, keywords, mode, layer, layer.qualified)
        qualified = self.function.program.qualify(dotted_text(node.func))
        if qualified.startswith("torch."):
            return Operation(site, qualified.rpartition(".")[2], given, keywords, mode, None, qualified)
        if isinstance(node.func, cst.Attribute) and id(node.func.value) in self.noted:
            return Operation(site, node.func.attr.value, (node.func.value, *given), keywords, mode)
        return None


_OPERATIONS = (cst.BinaryOperation, cst.UnaryOperation, cst.Subscript, cst.Call)
_FUNCTIONAL = {"Softmax": "softmax", "Softmax2d": "softmax", "Sigmoid": "sigmoid", "CrossEntropyLoss": "cross_entropy"}


_NAMING = frozenset({cst.AssignTarget, cst.AnnAssign, cst.Param, cst.FunctionDef, cst.ImportAlias})


def _is_no_reading(name: cst.Name, around: cst.CSTNode) -> bool:
    """Is it a target, a keyword, an attribute's name?"""
    if type(around) is cst.Attribute:
        return around.attr is name
    if type(around) is cst.Arg:
        return around.keyword is name
    if type(around) is cst.NamedExpr:
        return around.target is name
    return type(around) in _NAMING


def note(it: Interpreter, node: cst.BaseExpression, value: Value) -> None:
    """Take down the value of an expression."""
    if it.formula is not None and isinstance(value, Tensor | Unknown):
        it.formula.noted[id(node)] = Noted(node, value, it.state.mode)


def begun(it: Interpreter, function: Function) -> Formula | None:
    """The formula that a walk of a function fills; None where no rule would ask for it."""
    if function.program.is_test or not written_out.shows(function.outline, function.cls):
        return None
    formula = it.facts.formulas[function] = Formula(function)
    return formula

"""Expressions, read for what they do to the scores and weights of attentions."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchmemlint.flow.program import ClassInfo, Program
from torchmemlint.rules.activations.attention import axes, einsums, judging, numbers
from torchmemlint.rules.activations.attention.numbers import Factor
from torchmemlint.rules.activations.attention.operations import Operations, Owner, integer
from torchmemlint.rules.activations.attention.stages import (
    Attention,
    Branch,
    Definition,
    Kind,
    Names,
    Path,
    Product,
    Stage,
    Step,
)
from torchmemlint.syntax.outline import dotted

_CASTS = frozenset({"float", "half", "bfloat16", "to", "type", "type_as", "contiguous", "double"})
_OPERATORS = {"mul": ast.Mult(), "div": ast.Div(), "add": ast.Add(), "sub": ast.Sub(), "multiply": ast.Mult()}


class Reader:
    """What is known at one point of a function, and the expressions there."""

    def __init__(
        self, program: Program, cls: ClassInfo | None, function: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> None:
        self.program = program
        self.cls = cls
        self.function = function
        self.operations = Operations(program, Owner(program, cls))
        self.stages: dict[str, Stage] = {}
        self.names: Names = {}
        self.path: Path = ()
        self.statement: ast.stmt = function
        self.found: list[Attention] = []
        self.loops: list[tuple[set[str], set[str]]] = []  # names assigned so far, and read before that

    def read(self, node: ast.expr) -> Stage | None:
        """The scores or weights that an expression gives; whatever else happens to such makes them escape."""
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                return self._load(name)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if (
                name in self.stages and attribute in judging.LOOKING
            ):
                self.stages[name].looked_at = True
                return None
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if (
                name in self.stages and method in judging.ASKING
            ):
                self.stages[name].looked_at = True
                return None
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self._product(node, left, right, "@")
            case ast.BinOp(left=left, op=op, right=right):
                return self.combined(node, left, op, right)
            case ast.Attribute(value=value, attr="mT"):
                return self._swapped(node, self.read(value))
            case ast.Call():
                return self._call(node)
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self.escape_all(node)
                return None
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.escape(self.read(child))
            elif not isinstance(child, ast.expr_context | ast.operator | ast.boolop | ast.unaryop | ast.cmpop):
                self.escape_all(child)
        return None

    def _load(self, name: str) -> Stage | None:
        for assigned, exposed in self.loops:
            if name not in assigned:
                exposed.add(name)
        stage = self.stages.get(name)
        if stage is None:
            return None
        stage.reads.append(self.path)
        if stage.mixed or _loops(stage.path) != _loops(self.path):
            self.escape(stage)
        return stage

    def _call(self, call: ast.Call) -> Stage | None:
        product = self.operations.product(call)
        if product is not None:
            made = self._product(call, product.left, product.right, product.spelling, product.equation)
            if made is not None and product.alpha is not None:
                made = self._scaled(call, made, product.alpha, negated=False)
            if product.added is not None:
                given = self.read(product.added)
                self.escape(given)
                if made is not None:
                    made = self._next(made, Step(Kind.ADD, call, product.added))
            return made
        softmax = self.operations.softmax(call, self.names)
        if softmax is not None:
            self._arguments(call, softmax.operand)
            stage = self.read(softmax.operand)
            if stage is None:
                return None
            if stage.weights or stage.swapped or not self._is_last(softmax.dim, stage):
                return self.escape(stage)
            return self._next(stage, Step(Kind.SOFTMAX, call, None, softmax.dtype, dim=softmax.dim), weights=True)
        dropout = self.operations.dropout(call, self.names)
        if dropout is not None:
            self._arguments(call, dropout.operand)
            stage = self.read(dropout.operand)
            if stage is None:
                return None
            if not stage.weights:
                return self.escape(stage)
            p = dropout.p
            if dropout.module:
                p = ast.parse(f"{dropout.module}.p", mode="eval").body
            return self._next(
                stage, Step(Kind.DROPOUT, call, p, dropout.training, bool(dropout.module), plain=dropout.sure)
            )
        if self.operations.qualified(call.func) == "torch.where" and len(call.args) == 3:
            return self._where(call)
        if self.operations.qualified(call.func) == "torch.transpose" and len(call.args) == 3:
            return self._transposed(call, self.read(call.args[0]), call.args[1:])
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.expr):
            owner = call.func.value
            if self._holds(owner):
                return self._method(call, owner, call.func.attr)
        self._inside_call(call)
        return None

    def _method(self, call: ast.Call, owner: ast.expr, method: str) -> Stage | None:
        """A method of something with scores or weights in it."""
        stage = self.read(owner)
        bare = method.rstrip("_")
        self._arguments(call, owner)
        if stage is None:
            return None
        if bare == "masked_fill" and len(call.args) == 2:
            return self._fill(call, stage, call.args[0], call.args[1], negated=False)
        if bare in _OPERATORS and len(call.args) == 1 and not call.keywords:
            return self._operated(call, stage, _OPERATORS[bare], call.args[0])
        if method in _CASTS:
            return self._next(stage, Step(Kind.CAST, call, plain=_restores(call)))
        if method in ("view", "reshape") and call.args and not stage.swapped:
            return self._next(stage, Step(Kind.VIEW, call, plain=False))
        if method in ("transpose", "swapaxes", "permute"):
            return self._transposed(call, stage, call.args)
        return self.escape(stage)

    def _transposed(self, call: ast.Call, stage: Stage | None, given: Sequence[ast.expr]) -> Stage | None:
        """The weights, turned round: `bmm(value, weights.permute(0, 2, 1))`."""
        if stage is None:
            return None
        if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List):
            given = given[0].elts
        order = [integer(item) for item in given]
        pair = set(order) in ({-1, -2}, {1, 2}, {2, 3}, {1, -1}, {2, -1}) and len(order) == 2
        turned = order in ([0, 2, 1], [0, 1, 3, 2], [0, 1, 2, 4, 3])
        return self._swapped(call, stage) if pair or turned else self.escape(stage)

    def _swapped(self, node: ast.expr, stage: Stage | None) -> Stage | None:
        if stage is None or not stage.weights or stage.swapped:
            return self.escape(stage)
        found = self._next(stage, Step(Kind.SWAP, node, plain=False))
        found.swapped = True
        return found

    def _where(self, call: ast.Call) -> Stage | None:
        condition, first, second = call.args
        self.escape(self.read(condition))
        kept, other = self.read(first), self.read(second)
        if kept is not None and other is None:
            return self._fill(call, kept, condition, second, negated=True)
        if other is not None and kept is None:
            return self._fill(call, other, condition, first, negated=False)
        self.escape(kept)
        return self.escape(other)

    def _fill(
        self, call: ast.Call, stage: Stage, condition: ast.expr, value: ast.expr, *, negated: bool
    ) -> Stage | None:
        if stage.weights:  # zeros where the scores were masked: nothing for rows with something to see
            same = ast.dump(condition)
            before = [s.step for s in stage.past() if s.step.kind is Kind.FILL and not s.weights]
            nought = isinstance(value, ast.Constant) and value.value == 0
            if not nought or not any(step.operand is not None and ast.dump(step.operand) == same for step in before):
                return self.escape(stage)
            return self._next(stage, Step(Kind.FILL, call, condition, value, negated, plain=False))
        return self._next(stage, Step(Kind.FILL, call, condition, value, negated))

    def combined(self, node: ast.BinOp, left: ast.expr, op: ast.operator, right: ast.expr) -> Stage | None:
        """What an operator makes of two operands."""
        first, second = self.read(left), self.read(right)
        if first is not None and second is None:
            return self._operated(node, first, op, right)
        if second is not None and first is None and isinstance(op, ast.Mult | ast.Add):
            return self._operated(node, second, op, left)
        self.escape(first)
        return self.escape(second)

    def _operated(self, node: ast.expr, stage: Stage, op: ast.operator, operand: ast.expr) -> Stage | None:
        match op:
            case ast.Mult() | ast.Div():
                return self._scaled(node, stage, operand, negated=isinstance(op, ast.Div))
            case ast.Add() | ast.Sub() if not stage.weights and self._is_given(operand, stage):
                return self._next(stage, Step(Kind.ADD, node, operand, negated=isinstance(op, ast.Sub)))
        return self.escape(stage)

    def _scaled(self, node: ast.expr, stage: Stage, operand: ast.expr, *, negated: bool) -> Stage | None:
        kind = numbers.factor(operand, self.names, self.operations, self.function)
        if stage.weights or kind not in (Factor.NUMBER, Factor.TENSOR):
            return self.escape(stage)
        return self._next(stage, Step(Kind.SCALE, node, operand, negated=negated, plain=kind is Factor.NUMBER))

    def _product(
        self, node: ast.expr, left: ast.expr, right: ast.expr, spelling: str, equation: str = ""
    ) -> Stage | None:
        first, second = self.read(left), self.read(right)
        if first is None and second is None:
            subscripts = einsums.scores(equation) if spelling == "einsum" else None
            if spelling == "einsum" and subscripts is None:
                return None
            product = Product(node, left, right, spelling, subscripts, self.names)
            if subscripts is not None and subscripts[0] != einsums.parts(equation)[0]:
                product = Product(node, right, left, spelling, subscripts, self.names)
            return Stage(Step(Kind.PRODUCT, node), self.path, self.statement, False, product)
        weights, value = (first, right) if first is not None else (second, left)
        assert weights is not None
        alone = (first is None or second is None) and not self._mentions_stages(value)
        if not alone or not weights.weights or weights.product is None:
            self.escape(first)
            return self.escape(second)
        subscripts = None
        if spelling == "einsum":
            subscripts = einsums.summed(equation, 0 if first is not None else 1, weights)
            fits = subscripts is not None and not weights.swapped
        else:
            fits = weights.swapped is (first is None)
        if not fits:
            return self.escape(weights)
        self.found.append(
            Attention(
                self.program, self.cls, self.function, weights.product, weights, value, node, spelling, subscripts,
                self.statement, self.path,
            )
        )  # fmt: skip
        return None

    # What happens to stages

    def _next(self, stage: Stage, step: Step, *, weights: bool = False) -> Stage:
        return Stage(step, self.path, self.statement, weights or stage.weights, stage.product, (stage,), stage.swapped)

    def escape(self, stage: Stage | None) -> Stage | None:
        """The scores or weights are used for something that is not followed: what comes of it is nothing known."""
        if stage is not None:
            for one in stage.past():
                one.escaped = True
        return None

    def escape_all(self, node: ast.AST) -> None:
        """Code that is not followed: what it mentions is used there."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                self.escape(self.stages.get(inner.id))
                if isinstance(inner.ctx, ast.Store):
                    self.bind(inner.id, None, None)

    def _arguments(self, call: ast.Call, operand: ast.expr) -> None:
        for item in [*call.args, *(keyword.value for keyword in call.keywords)]:
            if item is not operand:
                self.escape(self.read(item))

    def _inside_call(self, call: ast.Call) -> None:
        self.escape(self.read(call.func)) if not dotted(call.func) else None
        if isinstance(call.func, ast.Attribute):
            root: ast.expr = call.func
            while isinstance(root, ast.Attribute):
                root = root.value
            self.escape(self.read(root))
        for item in [*call.args, *(keyword.value for keyword in call.keywords)]:
            self.escape(self.read(item))

    def _holds(self, node: ast.expr) -> bool:
        """May the receiver of a method be scores or weights?"""
        match node:
            case ast.Name(id=name):
                return name in self.stages
            case ast.Call() | ast.BinOp():
                return True
        return False

    def _mentions_stages(self, node: ast.expr) -> bool:
        """Are the values computed from other weights, as in approximations of attention?"""
        return any(isinstance(inner, ast.Name) and inner.id in self.stages for inner in ast.walk(node))

    def _is_given(self, operand: ast.expr, stage: Stage) -> bool:
        """Is what is added to the scores a mask or bias, and not made of the queries or keys?"""
        return stage.product is not None and not judging.is_of_content(operand, stage.product, self.names)

    def _is_last(self, dim: ast.expr | None, stage: Stage) -> bool:
        """Is a softmax over the last axis?"""
        place = integer(dim)
        if place is None or place < 0:
            return place == -1
        product = stage.product
        assert product is not None
        if any(one.step.kind is Kind.VIEW for one in stage.past()):
            return False
        if product.spelling in ("bmm", "baddbmm"):
            return place == 2
        if product.subscripts is not None:
            return "." not in product.subscripts[2] and place == len(product.subscripts[2]) - 1
        known = axes.axes(product.left, product.names or {}, self.operations) or axes.axes(
            product.right, product.names or {}, self.operations
        )
        if known is not None:
            return place == len(known) - 1
        match product.right:
            case ast.Call(func=ast.Attribute(attr="transpose"), args=[first, second]):
                return {integer(first), integer(second)} == {place - 1, place}
            case ast.Call(func=ast.Attribute(attr="permute"), args=order):
                return place == len(order) - 1
        return place == 3

    def bind(self, name: str, stage: Stage | None, definition: Definition | None) -> None:
        """A local name is given something."""
        self.names = {**self.names, name: definition}
        for assigned, _ in self.loops:
            assigned.add(name)
        if stage is None:
            self.stages.pop(name, None)
        else:
            self.stages[name] = stage


def _loops(path: Path) -> list[Branch]:
    return [branch for branch in path if isinstance(branch[0], ast.For | ast.AsyncFor | ast.While)]


def _restores(call: ast.Call) -> bool:
    """Does a cast go back to the dtype of a tensor: `.to(q.dtype)`, `.type_as(q)`? (`.contiguous()` changes none.)"""
    match call:
        case ast.Call(func=ast.Attribute(attr="contiguous" | "type_as")):
            return True
        case ast.Call(func=ast.Attribute(attr="to" | "type"), args=[ast.Attribute(attr="dtype")]):
            return True
    return False

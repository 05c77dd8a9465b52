"""What becomes of tensors that are computed under `torch.no_grad()`: do any leave the block or function as tensors?

A tensor of `torch.inference_mode()` must not meet autograd later. So this asks for more than that no graph hangs on the
results: they end as numbers, arrays or text, or are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow.facts import FileFacts, GuardedCall
from torchmemlint.flow.program import Function
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import torch_api
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.walking import around, children, inside, parents

NO_GRAD = frozenset({"torch.no_grad", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad"})
_PLAIN = torch_api.READERS  # methods that give a number, list or array
_ARITHMETIC = frozenset("abs all any enumerate max min range sum tqdm zip".split())
_SILENT = (cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.Yield, cst.Global, cst.Nonlocal, cst.Await)


@immutable()
class Closed:
    """A block (or function) under `torch.no_grad()` that lets no tensor out."""

    guard: Site  # `torch.no_grad`, in the `with` or decorator
    calls: tuple[GuardedCall, ...]  # forward passes in it


def closed(facts: FileFacts) -> Iterator[Closed]:
    """The blocks with forward passes, in the order of these."""
    blocks: dict[int, tuple[Site, cst.CSTNode, cst.CSTNode, list[GuardedCall]]] = {}
    trees: dict[Function, dict[int, cst.CSTNode]] = {}
    for call in facts.guarded_calls:
        function = call.scope.function
        if function is None or function.parent is not None or function.piece is not call.site.piece:
            continue
        above = trees.get(function)
        if above is None:
            above = trees[function] = parents(function.node)
        found = _guard(facts, call, function, above)
        if found is not None:
            guard, block = found
            blocks.setdefault(id(block), (guard, block, function.node, []))[3].append(call)
    for guard, block, whole, calls in blocks.values():
        if _keeps_to_itself(facts, block, whole, calls):
            yield Closed(guard, tuple(calls))


def _guard(
    facts: FileFacts, call: GuardedCall, function: Function, above: dict[int, cst.CSTNode]
) -> tuple[Site, cst.CSTNode] | None:
    """`torch.no_grad` and what it guards; None where gradients are off for another reason."""
    for node in around(call.site.node, above):
        if isinstance(node, cst.With):
            for item in node.items:
                spelled = _no_grad(facts, item.item)
                if spelled is not None:
                    return Site(function.piece, spelled), node.body
        elif isinstance(node, cst.FunctionDef):
            for decorator in node.decorators:
                spelled = _no_grad(facts, decorator.decorator)
                if spelled is not None:
                    return Site(function.piece, spelled), node.body
            return None
    return None


def _no_grad(facts: FileFacts, node: cst.BaseExpression) -> cst.BaseExpression | None:
    match node:
        case cst.Call(func=func, args=[]):
            return func if facts.program.qualify(dotted_text(func)) in NO_GRAD else None
    return None


# -- does anything leave? ----------------------------------------------------------------------------------------------


def _keeps_to_itself(facts: FileFacts, block: cst.CSTNode, whole: cst.CSTNode, calls: list[GuardedCall]) -> bool:
    nodes = list(inside(block))
    if any(isinstance(node, _SILENT) for node in nodes):
        return False
    passes = {id(call.site.node) for call in calls}
    read = [node.value for node in nodes if isinstance(node, cst.Name)]
    for node in nodes:
        match node:
            case cst.Expr(value=value) if id(value) in passes:
                return False  # it is run for what it leaves behind: in hooks, buffers or the module itself
            case cst.Assign(targets=[target], value=value) if id(value) in passes:
                if all(read.count(name) == 1 for name in _names(target.target)):
                    return False
    flow = _Block(facts, block, calls)
    return not any(flow.lets_out(node) for node in nodes) and not flow.used_after(whole)


class _Block:
    """Names in a block that may stand for tensors made in it."""

    def __init__(self, facts: FileFacts, block: cst.CSTNode, calls: list[GuardedCall]) -> None:
        self._facts = facts
        self._block = block
        self._modules = {id(call.site.node) for call in calls}
        self._tensors: set[str] = set()
        while True:
            before = len(self._tensors)
            for node in inside(block):
                self._bind(node)
            if len(self._tensors) == before:
                break

    def _bind(self, node: cst.CSTNode) -> None:
        match node:
            case cst.Assign(targets=targets, value=value) if self._may_be_tensor(value):
                for target in targets:
                    self._tensors |= _names(target.target)
            case cst.AnnAssign(target=target, value=cst.BaseExpression() as value) if self._may_be_tensor(value):
                self._tensors |= _names(target)
            case cst.AugAssign(target=target, value=value) if self._may_be_tensor(value):
                self._tensors |= _names(target)
            case cst.For(target=target, iter=over) | cst.CompFor(target=target, iter=over) if self._may_be_tensor(over):
                self._tensors |= _names(target)
            case cst.NamedExpr(target=target, value=value) if self._may_be_tensor(value):
                self._tensors |= _names(target)

    def _may_be_tensor(self, node: cst.CSTNode) -> bool:
        """May an expression be, or hold, a tensor that the block has computed?"""
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))) if method in _PLAIN:
                return False
            case cst.Call(func=cst.Name(value=name)) if name in torch_api.READING_BUILTINS:
                return False
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))) if method in torch_api.METADATA:
                return False
            case cst.Call(func=cst.Name(value=name)) if name in _ARITHMETIC:
                pass
            case cst.Call():
                return True  # what it runs may be a module
            case cst.Name(value=name):
                return name in self._tensors
            case cst.Attribute(value=owner, attr=cst.Name(value=name)):
                return name not in torch_api.METADATA_ATTRIBUTES and self._may_be_tensor(owner)
            case cst.FormattedString():
                return False
            case cst.Arg(value=value):
                return self._may_be_tensor(value)
        return any(self._may_be_tensor(child) for child in children(node))

    def lets_out(self, node: cst.CSTNode) -> bool:
        """Does a statement or call keep a tensor, hand it to code that may, or change one that was there before?"""
        match node:
            case cst.Return(value=cst.BaseExpression() as value):
                return self._may_be_tensor(value)
            case cst.Assign(targets=targets, value=value):
                return any(_stores(target.target) for target in targets) and self._may_be_tensor(value)
            case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
                return not isinstance(target, cst.Name) and self._may_be_tensor(value)
            case cst.AugAssign(target=target, value=value):
                return not isinstance(target, cst.Name) and self._may_be_tensor(value)
            case cst.Call(func=func, args=args):
                name = dotted_text(func)
                last = name.rpartition(".")[2]
                if last.endswith("_") and not last.endswith("__"):
                    return True  # a parameter may be what is changed
                given = any(self._may_be_tensor(arg.value) for arg in args)
                return given and not self._only_computes(node, func, name)
        return False

    def _only_computes(self, call: cst.Call, func: cst.BaseExpression, name: str) -> bool:
        if id(call) in self._modules or (isinstance(func, cst.Attribute) and self._may_be_tensor(func.value)):
            return True
        qualified = self._facts.program.qualify(name)
        if qualified in torch_api.READING_BUILTINS or qualified in _ARITHMETIC:
            return True
        return qualified.startswith("torch.") and torch_api.is_known(qualified)

    def used_after(self, whole: cst.CSTNode) -> bool:
        """Does one of the names stand for its tensor outside of the block?"""
        pending: list[cst.CSTNode] = [whole]
        while pending:
            node = pending.pop()
            if node is self._block:
                continue
            match node:
                case cst.Name(value=name) if name in self._tensors:
                    return True
                case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))) if method in _PLAIN:
                    continue
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=value):
                    pending.append(value)  # bound anew
                case cst.Arg(value=value):
                    pending.append(value)
                case _:
                    pending += children(node)
        return False


def _stores(target: cst.CSTNode) -> bool:
    """Does an assignment to it give the value to an object?"""
    return any(isinstance(node, cst.Attribute | cst.Subscript) for node in inside(target))


def _names(target: cst.CSTNode) -> set[str]:
    match target:
        case cst.Name(value=name):
            return {name}
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return set().union(*(_names(element.value) for element in elements))
    return set()

"""Results of a forward pass that are still bound when the loop comes to the next one.

With gradients off the peak lies in forward, so that whatever of the last iteration is alive there counts, if it is
large. How large a result is, its dimensions tell: scores of a few classes are nothing beside a model's activations,
scores of every pixel or token may be more than these.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow.facts import FileFacts, GuardedCall
from torchmemlint.flow.values import ModuleValue
from torchmemlint.immutable import immutable
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.walking import around, inside, names_in, parents

_PARTS = frozenset({"logits", "sample", "out", "prediction", "predictions"})  # of a structured output: its bulk
_OF_IMAGES = frozenset(
    "torchvision.utils.save_image torchvision.utils.make_grid torch.nn.functional.interpolate "
    "torch.nn.functional.grid_sample torch.nn.functional.pixel_shuffle".split()
)
_KEEPING = frozenset("append extend add put".split())
_LEAST = 3  # dimensions of what is predicted for every token or pixel


@immutable()
class StepLocal:
    """A name that holds a large result over the end of an iteration."""

    site: Site  # the statement that binds it
    call: GuardedCall
    name: str
    loop: Site
    large: tuple[Site, str]  # what shows that it is


def kept(facts: FileFacts) -> Iterator[StepLocal]:
    """The names, in the order of the calls."""
    trees: dict[int, dict[int, cst.CSTNode]] = {}
    for call in facts.guarded_calls:
        loop = _loop(call)
        if loop is None:
            continue
        above = trees.get(id(loop))
        if above is None:
            above = trees[id(loop)] = parents(loop)
        found = _bound(call, loop, above)
        if found is None:
            continue
        statement, name = found
        if _let_go(name, statement, loop, above):
            continue
        large = _large(facts, call, name, loop, above)
        if large is not None:
            piece = call.site.piece
            yield StepLocal(Site(piece, statement), call, name, Site(piece, loop), large)


def _loop(call: GuardedCall) -> cst.For | cst.While | None:
    """The innermost loop statement around the call, of the same function."""
    for mark in reversed(call.scope.loops):
        if isinstance(mark.node, cst.For | cst.While):
            return mark.node
        if mark.node is None:
            return None  # the calls of the function itself
    return None


def _bound(call: GuardedCall, loop: cst.CSTNode, above: dict[int, cst.CSTNode]) -> tuple[cst.Assign, str] | None:
    """The assignment that gives the result a name, as it is or one part of it."""
    node: cst.CSTNode = call.site.node
    for parent in around(node, above):
        match parent:
            case cst.Attribute(attr=cst.Name(value=part)) if part in _PARTS:
                pass
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]):
                pass
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value) if value is node:
                return parent, name
            case _:
                return None
        node = parent
    return None


def _let_go(name: str, statement: cst.Assign, loop: cst.CSTNode, above: dict[int, cst.CSTNode]) -> bool:
    """Is the name free of the result before the loop comes round, or is the result kept elsewhere anyway?"""
    given = next((p for p in around(statement, above) if isinstance(p, cst.FunctionDef | cst.Lambda)), None)
    if given is not None:
        return True
    for node in inside(loop):
        match node:
            case cst.Del() if any(below.value == name for below in inside(node) if isinstance(below, cst.Name)):
                return True
            case cst.Assign(targets=targets) if node is not statement and any(
                name in names_in(target.target) for target in targets
            ):
                return True
            case cst.For(target=target) if node is not loop and name in names_in(target):
                return True
            case cst.AugAssign(target=cst.Name(value=target)) if target == name:
                return True
            case cst.Return() | cst.Yield():
                if any(isinstance(below, cst.Name) and below.value == name for below in inside(node)):
                    return True
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method)), args=args) if method in _KEEPING:
                if any(isinstance(arg.value, cst.Name) and arg.value.value == name for arg in args):
                    return True
            case cst.Break() if _breaks(node, loop, above):
                return _last(loop, node, above)
    return False


def _breaks(node: cst.CSTNode, loop: cst.CSTNode, above: dict[int, cst.CSTNode]) -> bool:
    return next(p for p in around(node, above) if isinstance(p, cst.For | cst.While)) is loop


def _last(loop: cst.CSTNode, node: cst.CSTNode, above: dict[int, cst.CSTNode]) -> bool:
    """Does the loop always end after one round?"""
    line = above.get(id(node))
    return line is not None and above.get(id(line)) is getattr(loop, "body", None)


# -- how large it is ---------------------------------------------------------------------------------------------------


def _large(
    facts: FileFacts, call: GuardedCall, name: str, loop: cst.CSTNode, above: dict[int, cst.CSTNode]
) -> tuple[Site, str] | None:
    module, piece = call.module, call.site.piece
    if module.made is not None and _class_of(module) in facts.program.contracts.names("wide-outputs"):
        shown = _class_of(module).rpartition(".")[2]
        return module.made, f"a `{shown}` predicts something for every token or pixel"
    for node in inside(loop):
        if not isinstance(node, cst.Name) or node.value != name:
            continue
        parent = above.get(id(node))
        outer = above.get(id(parent)) if parent is not None else None
        if _has_dimensions(facts, node, parent, outer):
            place = outer if isinstance(outer, cst.Call) else parent
            return Site(piece, place or node), f"`{name}` has at least {_LEAST} dimensions: something for each position"
    return None


def _class_of(module: ModuleValue) -> str:
    """The class of a library's module, also where a method of it makes it: `AutoModel.from_pretrained`."""
    owner, _, last = module.qualified.rpartition(".")
    return owner if last[:1].islower() else module.qualified


def _has_dimensions(facts: FileFacts, node: cst.Name, parent: cst.CSTNode | None, outer: cst.CSTNode | None) -> bool:
    """`x[:, :, 0]`, `x.permute(0, 2, 3, 1)`, `x.transpose(1, 2)`, `x.size(2)`, `F.interpolate(x, ...)`."""
    match parent, outer:
        case cst.Subscript(value=value, slice=parts), _ if value is node:
            return len(parts) >= _LEAST and not any(_is_new_axis(part) for part in parts)
        case cst.Attribute(attr=cst.Name(value="permute")), cst.Call(args=args):
            return len(args) >= _LEAST
        case cst.Attribute(attr=cst.Name(value="transpose" | "size" | "flatten" | "softmax" | "argmax")), cst.Call(
            args=args
        ):
            return any(_is_number(arg.value, _LEAST - 1) for arg in args)
        case cst.Arg(), cst.Call(func=func, args=[first, *_]):
            return first is parent and facts.program.qualify(dotted_text(func)) in _OF_IMAGES
    return False


def _is_new_axis(part: cst.SubscriptElement) -> bool:
    match part.slice:
        case cst.Index(value=cst.Name(value="None") | cst.Ellipsis()):
            return True
    return False


def _is_number(node: cst.BaseExpression, least: int) -> bool:
    match node:
        case cst.Integer(value=text):
            return text.isdecimal() and int(text) >= least
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value=text)):
            return text.isdecimal() and int(text) >= least + 1
    return False

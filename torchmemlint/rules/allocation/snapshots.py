"""Copies of a model's state that are taken again and again, to be put back later: of the best epoch, say.

They are told by their syntax: a copy of `state_dict()` that is assigned under a comparison, is only ever put back,
saved or returned, in code that brings something to a device.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow.program import Program
from torchmemlint.immutable import immutable
from torchmemlint.knowledge.checkpoints import WITHOUT_TENSORS
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Piece, Site
from torchmemlint.syntax.text import string_value, text_of
from torchmemlint.syntax.walking import children, inside


@immutable()
class Snapshot:
    """A copy of a state that stays on the device."""

    site: Site  # the copying expression
    owner: str  # source text of what the state is of
    target: str  # source text of what it is assigned to
    clone: Site | None  # `value.clone()` of a comprehension; None: `copy.deepcopy`
    test: Site  # the condition that says when one is taken
    restored: Site  # where it is put back, saved or returned
    on_device: Site  # what is brought to a device


class _Tree:
    """The nodes of a top-level statement, and what is above each."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.nodes = list(inside(piece.module))
        self.above = {id(child): node for node in self.nodes for child in children(node)}

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        above = self.above.get(id(node))
        while above is not None:
            yield above
            above = self.above.get(id(above))

    def around(self, node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> cst.CSTNode | None:
        """The innermost node of a kind that it stands in."""
        return next((above for above in self.ancestors(node) if isinstance(above, kinds)), None)


def find(program: Program) -> Iterator[Snapshot]:
    """The snapshots of a file, in its order."""
    for piece in program.source.pieces:
        if "state_dict()" not in piece.text or not ("deepcopy(" in piece.text or ".clone()" in piece.text):
            continue
        tree = _Tree(piece)
        for node in tree.nodes:
            found = _snapshot(program, tree, node)
            if found is not None:
                yield found


def _snapshot(program: Program, tree: _Tree, node: cst.CSTNode) -> Snapshot | None:
    owner, clone = _copied(program, node)
    assign = tree.above.get(id(node))
    if owner is None or not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    if any(word in owner.lower() for word in WITHOUT_TENSORS):
        return None
    target = dotted_text(assign.targets[0].target)
    function = tree.around(node, cst.FunctionDef)
    test = _test(tree, node, function)
    if not target or test is None or not _repeats(tree, node, function):
        return None
    whole = tree.around(node, cst.ClassDef) if "." in target else function
    restored = _restored(tree, target, whole if whole is not None else tree.piece.module, test)
    on_device = _on_device(tree, function, tree.around(node, cst.ClassDef))
    if restored is None or on_device is None:
        return None
    site = (Site(tree.piece, part) for part in (node, test, restored, on_device))
    place, condition, back, moved = site
    return Snapshot(
        place, owner, target, Site(tree.piece, clone) if clone is not None else None, condition, back, moved
    )


def _copied(program: Program, node: cst.CSTNode) -> tuple[str | None, cst.Call | None]:
    """What a state is copied of, and the call that clones each value."""
    match node:
        case cst.Call(func=func, args=[cst.Arg(value=state, star="")]) if (owner := _state_of(state)) is not None:
            return (
                (owner, None) if program.qualify(dotted_text(func)) in ("copy.deepcopy", "deepcopy") else (None, None)
            )
        case cst.DictComp(
            value=cst.Call(func=cst.Attribute(value=source, attr=cst.Name(value="clone")), args=[]) as clone,
            for_in=cst.CompFor(
                target=cst.Tuple(elements=[_, cst.Element(value=cst.Name(value=name))]),
                iter=cst.Call(func=cst.Attribute(value=state, attr=cst.Name(value="items"))),
                inner_for_in=None,
            ),
        ) if text_of(source) in (name, f"{name}.detach()", f"{name}.data"):
            return _state_of(state), clone
    return None, None


def _state_of(node: cst.BaseExpression) -> str | None:
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="state_dict")), args=[]):
            return text_of(owner)
    return None


def _test(tree: _Tree, node: cst.CSTNode, function: cst.CSTNode | None) -> cst.BaseExpression | None:
    """The comparison under which it is taken: a better result than before."""
    below = node
    for above in tree.ancestors(node):
        if above is function:
            break
        if isinstance(above, cst.If) and below is above.body:
            orders = (cst.LessThan, cst.GreaterThan, cst.LessThanEqual, cst.GreaterThanEqual)
            if any(isinstance(part, orders) for part in inside(above.test)):
                return above.test
        below = above
    return None


def _repeats(tree: _Tree, node: cst.CSTNode, function: cst.CSTNode | None) -> bool:
    """Is it in a loop, or in a method without one, which somebody calls again and again?"""
    for above in tree.ancestors(node):
        if isinstance(above, cst.For | cst.While):
            return True
        if above is function:
            loops = any(isinstance(part, cst.For | cst.While) for part in inside(above))
            return not loops and tree.around(above, cst.ClassDef) is not None
    return False


def _restored(tree: _Tree, target: str, whole: cst.CSTNode, test: cst.CSTNode) -> cst.CSTNode | None:
    """Where the copy is put back, returned, or saved later on; None where it is not, or more is done with it."""
    found: cst.CSTNode | None = None
    for node in inside(whole):
        if not isinstance(node, cst.Name | cst.Attribute) or dotted_text(node) != target:
            continue
        above = tree.above.get(id(node))
        call = tree.above.get(id(above)) if isinstance(above, cst.Arg) else None
        if isinstance(above, cst.AssignTarget | cst.AnnAssign | cst.Comparison | cst.If | cst.UnaryOperation):
            continue
        if isinstance(above, cst.Element) and isinstance(tree.around(above, cst.AssignTarget), cst.AssignTarget):
            continue  # `best, state = 0.0, None`
        if isinstance(above, cst.ComparisonTarget | cst.Del | cst.Param):
            continue
        if isinstance(above, cst.Attribute) and above.attr is node:
            continue
        if isinstance(above, cst.Return):
            found = found or node
        elif isinstance(call, cst.Call) and text_of(call.func).endswith(("load_state_dict", "save")):
            at_once = any(isinstance(one, cst.If) and one.test is test for one in tree.ancestors(call))
            found = found if at_once else call
        else:
            return None
    return found


def _on_device(tree: _Tree, *scopes: cst.CSTNode | None) -> cst.CSTNode | None:
    """Something that is brought to a device, in the function, else in its class."""
    for scope in scopes:
        for node in inside(scope) if scope is not None else ():
            match node:
                case cst.Call(func=cst.Attribute(attr=cst.Name(value="cuda"))):
                    return node
                case cst.Call(func=cst.Attribute(attr=cst.Name(value="to")), args=[cst.Arg(value=place), *_]):
                    if _is_device(place):
                        return node
    return None


def _is_device(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.SimpleString):
        return str(string_value(node)).startswith(("cuda", "xpu", "mps"))
    return dotted_text(node).rpartition(".")[2].endswith("device")

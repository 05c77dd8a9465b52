"""What stands around the nodes of a piece: for rules that are off by default, and told from the syntax if asked for."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from torchmemlint.syntax.source_module import Piece
from torchmemlint.syntax.walking import children, inside


class Surroundings:
    """The nodes of a piece, outer ones first, each with the one around it."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.nodes: list[cst.CSTNode] = []
        self._around: dict[int, cst.CSTNode] = {}
        pending: list[cst.CSTNode] = [piece.module]
        while pending:
            node = pending.pop()
            self.nodes.append(node)
            below = children(node)
            self._around.update((id(child), node) for child in below)
            pending += reversed(below)

    def around(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node directly around one."""
        return self._around.get(id(node))

    def nearest(self, node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> cst.CSTNode | None:
        """The innermost node of these kinds around one."""
        found = self.around(node)
        while found is not None and not isinstance(found, kinds):
            found = self.around(found)
        return found

    def scope(self, node: cst.CSTNode) -> cst.CSTNode:
        """The function that a node stands in, or the whole piece."""
        return self.nearest(node, cst.FunctionDef, cst.Lambda) or self.piece.module

    @cached_property
    def names(self) -> dict[str, list[cst.Name]]:
        """All places of each identifier, attributes and keywords aside."""
        found: dict[str, list[cst.Name]] = {}
        for node in self.nodes:
            if not isinstance(node, cst.Name):
                continue
            around = self.around(node)
            if (isinstance(around, cst.Attribute) and around.attr is node) or (
                isinstance(around, cst.Arg) and around.keyword is node
            ):
                continue
            found.setdefault(node.value, []).append(node)
        return found

    def bound_once(self, name: str, scope: cst.CSTNode) -> tuple[cst.BaseExpression, list[cst.Name]] | None:
        """The value of a name that a scope binds once, by an assignment, and the places that read it; else None."""
        within = {id(node) for node in inside(scope)}
        places = [node for node in self.names.get(name, ()) if id(node) in within]
        targets = [node for node in places if isinstance(self.around(node), cst.AssignTarget)]
        statement = self.around(self.around(targets[0]) or targets[0]) if len(targets) == 1 else None
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
            return None
        readings = [node for node in places if node is not targets[0]]
        if any(self._binds(node) for node in readings):
            return None
        return statement.value, readings

    def _binds(self, name: cst.Name) -> bool:
        """May it be a target, a parameter or the like?"""
        around = self.around(name)
        while isinstance(around, cst.Element | cst.Tuple | cst.List | cst.StarredElement):
            around = self.around(around)
        match around:
            case cst.AugAssign(target=target) | cst.For(target=target) | cst.CompFor(target=target):
                return target is name or not isinstance(target, cst.Name)
            case cst.NamedExpr(target=target):
                return target is name
            case cst.Param() | cst.AsName() | cst.NameItem() | cst.Del() | cst.FunctionDef() | cst.AssignTarget():
                return True
        return False

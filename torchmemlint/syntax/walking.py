"""What stands inside a node."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst


def contains(node: cst.CSTNode, wanted: cst.CSTNode) -> bool:
    """Is it the node itself, or one below it?"""
    return node is wanted or any(contains(child, wanted) for child in node.children)


def inside(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it. (`libcst.matchers` would do, and takes as long to import as the rest of libcst.)"""
    yield node
    for child in node.children:
        yield from inside(child)

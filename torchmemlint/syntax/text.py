"""Source text of a node, for messages and fixes."""

from __future__ import annotations

import libcst as cst

_EMPTY = cst.Module([])


def text_of(node: cst.CSTNode) -> str:
    """The node's own source text, on one line where it spans several."""
    return " ".join(code_of(node).split())


def code_of(node: cst.CSTNode) -> str:
    """The node's own source text as written."""
    if isinstance(node, cst.Name):
        return node.value
    return _EMPTY.code_for_node(node)


def shortened(text: str, limit: int = 60) -> str:
    """The text, with its middle left out where it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    return text[: limit * 2 // 3].rstrip() + "…" + text[-(limit // 4) :].lstrip()

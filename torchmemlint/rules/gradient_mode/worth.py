"""Wasted passes whose graphs are not worth much: they are small, or not in an accelerator's memory."""

from __future__ import annotations

import libcst as cst

from torchmemlint.findings import Span
from torchmemlint.flow.facts import Detach, FileFacts, ModuleCall
from torchmemlint.rules.gradient_mode.small_graphs import is_small
from torchmemlint.syntax.text import text_of


def is_little(facts: FileFacts, span: Span) -> bool:
    """Is the graph of the pass that stands there small, or in the host's memory, for certain?"""
    for one in facts.passes_at(span):
        detaches = [d for d in facts.detaches if one.origin in d.value.origins]
        if detaches and all(_is_on_the_host(facts, detach) for detach in detaches):
            return True
        if isinstance(one, ModuleCall) and is_small(facts, one):
            return True
    return False


def _is_on_the_host(facts: FileFacts, detach: Detach) -> bool:
    """`y.data.numpy()`, and nothing of a `cpu` before it: numpy takes no tensor of an accelerator."""
    node, end = detach.site.node, detach.site.span.end
    if not facts.source.rows[end.row - 1][end.column - 1 :].startswith((".numpy(", "().numpy(")):
        return False
    owner = node.value if isinstance(node, cst.Attribute) else node
    return "cpu" not in (detach.site.piece.text if isinstance(owner, cst.Name) else text_of(owner))

"""What a caller gives for a parameter, told from the standard parser's trees."""

from __future__ import annotations

import ast

from torchmemlint.flow.call_sites import CallSite


def call_at(site: CallSite) -> ast.Call | None:
    """The call whose function a mention is."""
    roots: list[ast.AST] = [site.syntax] if site.syntax is not None else []
    if site.syntax is None:
        roots = [piece.outline for piece in site.program.source.pieces if piece.outline is not None]
    calls = (node for root in roots for node in ast.walk(root) if isinstance(node, ast.Call))
    return next((call for call in calls if call.func is site.node), None)

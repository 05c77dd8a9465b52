"""Calls that build or apply an activation or dropout with `inplace=True`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.flow.program import Program
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import activations
from torchmemlint.syntax.outline import dotted
from torchmemlint.syntax.source_module import Site


@immutable()
class InPlaceCall:
    """Such a call, and the argument."""

    site: Site
    kind: str  # the short name of the module class: "SiLU"
    callee: str  # as the file spells it
    argument: Site  # the `True`


def calls(program: Program, kinds: frozenset[str]) -> Iterator[InPlaceCall]:
    """The calls of these activations that work in place for certain, in order."""
    if "inplace" not in program.source.text:
        return
    for piece in program.source.pieces:
        if piece.outline is None or "inplace" not in piece.text:
            continue
        nodes = [node for node in program.outline_of(piece).nodes if isinstance(node, ast.Call)]
        for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
            callee = dotted(node.func)
            kind = _kind(program.qualify(callee)) if callee else None
            given = next((keyword.value for keyword in node.keywords if keyword.arg == "inplace"), None)
            if kind not in kinds or not isinstance(given, ast.Constant) or given.value is not True:
                continue
            site, argument = (piece.site_of(part, program.source.rows) for part in (node, given))
            if site is not None and argument is not None:
                yield InPlaceCall(site, kind, callee, argument)


def _kind(qualified: str) -> str | None:
    owner, _, name = qualified.rpartition(".")
    if owner.startswith("torch.nn") and name in activations.WITH_INPLACE | activations.IGNORES_INPLACE:
        return name
    function = activations.functional(qualified)
    return function.rpartition(".")[2] if function is not None else None

"""Calls of `torch.utils.checkpoint`, which recompute activations in backward, and the form that they choose."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.flow.program import Program
from torchmemlint.immutable import immutable
from torchmemlint.syntax.outline import dotted
from torchmemlint.syntax.source_module import Piece, Site

_POSITIONS = {  # of `use_reentrant`; None: by keyword only
    "torch.utils.checkpoint.checkpoint": None,
    "torch.utils.checkpoint.checkpoint_sequential": 3,
}
# The keywords that the reentrant form of `checkpoint` takes; for others, which it could not hand on, it raises.
_REENTRANT = frozenset({"function", "use_reentrant", "preserve_rng_state", "determinism_check", "early_stop"})


@immutable()
class Recomputation:
    """A call that leaves it to torch's default which form is taken."""

    site: Site
    qualified: str
    callee: str  # as the file spells it
    refused: tuple[str, ...]  # its keywords for which the reentrant form raises


def undecided(program: Program) -> Iterator[Recomputation]:
    """The calls that for certain give no `use_reentrant`, in order."""
    if "checkpoint" not in program.source.text:
        return
    ends = {qualified.rpartition(".")[2] for qualified in _POSITIONS}
    ends.update(name for name, qualified in program.imported.items() if qualified in _POSITIONS)
    for piece in program.source.pieces:
        summary = program.outline_of(piece)
        if summary.names.isdisjoint(ends):
            continue
        calls = [node for node in summary.nodes if isinstance(node, ast.Call)]
        for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
            callee = dotted(call.func)
            qualified = program.qualify(callee) if callee else ""
            if qualified not in _POSITIONS or not _is_undecided(call, _POSITIONS[qualified]):
                continue
            if _is_rebound(callee.partition(".")[0], piece, program):
                continue
            site = piece.site_of(call, program.source.rows)
            if site is not None:
                yield Recomputation(site, qualified, callee, tuple(_refused(call, _POSITIONS[qualified])))


def _is_undecided(call: ast.Call, position: int | None) -> bool:
    if any(keyword.arg in (None, "use_reentrant") for keyword in call.keywords):
        return False
    if position is None:
        return True
    return len(call.args) <= position and not any(isinstance(item, ast.Starred) for item in call.args)


def _refused(call: ast.Call, position: int | None) -> Iterator[str]:
    for keyword in call.keywords if position is None else ():
        off = keyword.arg == "debug" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        if keyword.arg is not None and keyword.arg not in _REENTRANT and not off:
            yield keyword.arg


def _is_rebound(name: str, piece: Piece, program: Program) -> bool:
    """Is the imported name given another value in the file: `checkpoint = partial(checkpoint, use_reentrant=False)`?"""
    others = [other.outline for other in program.source.pieces if other.kind == "code" and other is not piece]
    for tree in (piece.outline, *others):
        for node in ast.walk(tree) if tree is not None else ():
            match node:
                case ast.Name(id=other, ctx=ast.Store()) | ast.arg(arg=other) if other == name:
                    return True
                case ast.FunctionDef(name=other) | ast.ClassDef(name=other) if other == name:
                    return True
    return False

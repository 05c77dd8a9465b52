"""Optimizers that a file builds for the parameters of a model, found when a rule that is off by default asks."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow.program import Program
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import optimizers
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Piece, Site
from torchmemlint.syntax.text import text_of
from torchmemlint.syntax.walking import inside

_NAMES = frozenset(qualified.rpartition(".")[2] for qualified in optimizers.KEEPS)
_OF_MODELS = frozenset({"parameters", "named_parameters"})
_SETTINGS = frozenset(setting for known in optimizers.KEEPS.values() for setting, _ in known.settings)


@immutable()
class OptimizerBuilt:
    """A call that builds one."""

    site: Site
    callee: str
    keeps: int  # numbers for each number of a parameter
    parameters: Site  # `model.parameters()`


def built(program: Program) -> Iterator[OptimizerBuilt]:
    """Optimizers of whole models' parameters, in the order of the file."""
    for piece in program.source.pieces:
        if any(name in piece.text for name in _NAMES):
            for node in inside(piece.module):
                if isinstance(node, cst.Call):
                    found = _built(program, piece, node)
                    if found is not None:
                        yield found


def _built(program: Program, piece: Piece, node: cst.Call) -> OptimizerBuilt | None:
    callee = dotted_text(node.func)
    if callee.rpartition(".")[2] not in _NAMES or any(arg.star for arg in node.args):
        return None  # settings that are not in view may ask for more, or for less
    settings = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
    known = {name: value for name in _SETTINGS & settings.keys() if (value := _switch(settings[name])) is not None}
    if len(known) < len(_SETTINGS & settings.keys()):
        return None
    kept = optimizers.keeps(program.qualify(callee), known)
    given = settings.get("params", node.args[0].value if node.args and node.args[0].keyword is None else None)
    if kept is None or given is None:
        return None
    for part in inside(given):
        if isinstance(part, cst.Call) and dotted_text(part.func).rpartition(".")[2] in _OF_MODELS:
            return OptimizerBuilt(Site(piece, node), callee, kept, Site(piece, part))
    return None


def _switch(node: cst.BaseExpression) -> bool | None:
    """Does a setting ask for anything? None where that is not known."""
    match node:
        case cst.Name(value="True" | "False"):
            return text_of(node) == "True"
        case cst.Integer() | cst.Float():
            return float(node.evaluated_value) != 0
    return None

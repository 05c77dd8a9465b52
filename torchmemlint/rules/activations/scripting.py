"""Functions that TorchScript compiles: by their decorators, also where the file gives those names of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.flow.program import Function, Program
from torchmemlint.syntax.outline import dotted

_COMPILING = frozenset({"torch.jit.script", "torch.jit.script_method"})


def is_scripted(function: Function | None) -> bool:
    """Is a function, or one around it, compiled where it is defined, or can it be (`if use_jit: compiled = ...`)?"""
    if function is None:
        return False
    decorators = (text for one in (function, *function.parents()) for text in one.decorator_texts())
    return any(not _COMPILING.isdisjoint(_meanings(text, function.program)) for text in decorators)


def _meanings(decorator: str, program: Program) -> Iterator[str]:
    """The qualified names that a decorator may stand for: `compiled = torch.jit.script`, in a branch or not."""
    yield program.qualify(decorator)
    for piece in program.source.pieces:
        if piece.kind != "code" or piece.outline is None or decorator not in piece.text:
            continue
        for node in ast.walk(piece.outline):
            match node:
                case ast.Assign(targets=targets, value=ast.Attribute() | ast.Name() as value):
                    if any(isinstance(target, ast.Name) and target.id == decorator for target in targets):
                        yield program.qualify(dotted(value))

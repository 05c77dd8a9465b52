"""Calls by which a program manages its memory or watches itself (`knowledge.services`), taken down as they are met."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.facts import ServiceCall
from torchmemlint.flow.gradient_modes import called_per_batch
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.syntax.text import text_of


def note(it: Interpreter, node: cst.Call, qualified: str, arguments: Arguments) -> None:
    """Also what a followed function does is taken down, for the loops that its caller runs."""
    function = it.frame.function
    if it.program is not it.main:
        return
    site = it.site(node)
    frames = (*it.frames, it.frame)
    statement = it.frame.statement
    it.facts.services[(site, it.frame.loops)] = ServiceCall(
        site,
        it.scope,
        qualified,
        text_of(node.func),
        arguments.pairs(),
        tuple(test for frame in frames for test in frame.tests),
        any(frame.handling for frame in frames),
        statement.node if statement is not None else None,
        function is not None and called_per_batch(function),
    )

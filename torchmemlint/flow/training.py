"""What a training step does to gradients, in order: backwards and optimizer steps."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow.facts import TrainingEvent
from torchmemlint.flow.interpreter import Interpreter


def differentiated(it: Interpreter, node: cst.CSTNode) -> None:
    """A backward."""
    _note(it, "backward", node)


def stepped(it: Interpreter, node: cst.CSTNode) -> None:
    """`optimizer.step()`."""
    _note(it, "step", node)


def _note(it: Interpreter, kind: str, node: cst.CSTNode) -> None:
    """Take it down for the function whose analysis this is, also where it happens in a function called from there."""
    root = [*it.frames, it.frame][0]
    if root.recording:
        site = it.site(node)
        event = TrainingEvent(kind, site, root.function, it.tick())
        it.facts.training[(kind, site, root.function, it.frame.path)] = event

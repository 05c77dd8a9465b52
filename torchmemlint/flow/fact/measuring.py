"""Measuring: passes that are run to see how much memory they take, which depends on the graph that they record."""

from __future__ import annotations

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.refs import Source
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.knowledge import services


def measured(run: Run) -> set[Source]:
    """Return the passes between two looks at the memory in use, with no loop and no backward pass between them.

    Looks that are further apart give the peak of a whole program. A network in evaluation mode is measured as it will
    be used, which needs no graph.
    """
    found, between = set[Source](), set[Source]()
    begun: Event | None = None
    for event in run.events if any(map(_is_look, run.effects(fx.Serve))) else ():
        effect = event.effect
        if isinstance(effect, fx.Serve) and _is_look(effect):
            if begun is not None and _is_beside(begun, event):
                found |= between
            begun, between = event, set()
        elif isinstance(effect, fx.Differentiate | fx.Step):
            begun = None
        elif begun is not None and _is_beside(begun, event):
            match effect:
                case fx.Forward(graph=source, evaluating=False):
                    between.add(source)
                case fx.Invoke(result=source, evaluating=False) | fx.InvokeMethod(result=source, evaluating=False):
                    between.add(source)
    return found


def _is_look(serve: fx.Serve) -> bool:
    return serve.name in services.MEASURING


def _is_beside(one: Event, other: Event) -> bool:
    """Do two things happen as often, and under the same tests?"""
    return one.loops == other.loops and one.branches == other.branches

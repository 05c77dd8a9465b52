"""Questions about one place of a file."""

from __future__ import annotations

import ast

from torchmemlint.findings import Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.plugins.calling import Call
from torchmemlint.plugins.places import operations_at
from torchmemlint.rules.separating import place_of


def gradients_on(facts: FileFacts, place: Call | Span | ast.expr | ast.stmt) -> bool | None:
    """Whether gradients are on where this is run; None if that is not known.

    Contexts around it decide, then decorators of its function, then the calls of that function which the analysis has
    seen. True if they are on for one of these.
    """
    asking = facts.asking()
    return None if asking is None else asking.gradients(_at(facts, place))


def carries_graph(facts: FileFacts, value: Call | Span | ast.expr) -> bool | None:
    """Whether this value carries an autograd graph; None if that is not known.

    It does if operations of torch made it from a parameter, or from a forward pass that records a graph. True if it
    does on one of several paths.
    """
    asking = facts.asking()
    return None if asking is None else asking.carries_graph(_at(facts, value))


def made_by(facts: FileFacts, value: Call | Span | ast.expr) -> list[Span]:
    """The places where this value may have been made, in the order of the text.

    The list is empty if one of the places is not known. The search follows names, attributes that a class sets, and
    variables of the file to what they were given.
    """
    asking = facts.asking()
    found = asking.origins(_at(facts, value)) if asking is not None else []
    return [facts.source.span_of(span) for span in found]


def _at(facts: FileFacts, place: Call | Span | ast.expr | ast.stmt) -> tuple[int, int, int, int]:
    if isinstance(place, Span):
        return operations_at(facts, place)
    return place_of(place.node if isinstance(place, Call) else place)

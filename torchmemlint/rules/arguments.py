"""Arguments of calls as rules see them: their known values, and the edits that add, change or remove one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import libcst as cst

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of


def node_of(site: Site, name: str, position: int | None = None) -> cst.BaseExpression | None:
    """The expression that a call gives for an argument, where it stands in the call itself."""
    call = site.node
    if not isinstance(call, cst.Call):
        return None
    for index, argument in enumerate(call.args):
        if argument.star:
            position = None if argument.star == "*" else position
        elif argument.keyword.value == name if argument.keyword is not None else index == position:
            return argument.value
    return None


def given_at(site: Site, position: int) -> cst.BaseExpression | None:
    """The expression that a call gives in a position; None where a `*` may shift it."""
    call = site.node
    if not isinstance(call, cst.Call) or any(argument.star for argument in call.args):
        return None
    return call.args[position].value


def adding(facts: FileFacts, site: Site, text: str) -> tuple[Edit, ...]:
    """Edits that add `text` ("pin_memory=True") as the last argument of the call at `site`, in the call's own style."""
    call = site.node
    if not isinstance(call, cst.Call):
        return ()
    if not call.args:
        end = site.span.end
        inside = Position(end.row, end.column - 1)
        return (Edit(Span(inside, inside), text),)
    last = site.piece.span(call.args[-1])  # not that of its value, which leaves the parentheses of a tuple out
    before = facts.source.rows[last.start.row - 1][: last.start.column - 1]
    joint = f",\n{before}" if not before.strip() else ", "
    return (Edit(Span(last.end, last.end), joint + text),)


def replacing(site: Site, node: cst.CSTNode, text: str) -> tuple[Edit, ...]:
    """Edits that put `text` in the place of `node`."""
    return (Edit(site.piece.span(node), text),)


def without(site: Site, *names: str) -> tuple[Edit, ...]:
    """Edits that take keyword arguments of these names out of a call; () where it has none."""
    call = site.node
    if not isinstance(call, cst.Call):
        return ()
    return removing(site, [a for a in call.args if a.keyword is not None and a.keyword.value in names])


def shown(node: cst.BaseExpression | None) -> str:
    """The argument's source text, "" where there is none."""
    return text_of(node) if node is not None else ""


def removing(site: Site, arguments: Sequence[cst.Arg]) -> tuple[Edit, ...]:
    """Edits that take arguments out of a call, with their commas."""
    call = site.node
    if not isinstance(call, cst.Call):
        return ()
    gone = [any(argument is one for one in arguments) for argument in call.args]
    edits: list[Edit] = []
    for first, last in _runs(gone):
        begin = site.piece.span(call.args[first]).start if first == 0 else _value_end(site, call.args[first - 1])
        end = _value_end(site, call.args[last])
        if first == 0 and last + 1 < len(gone):
            end = site.piece.span(call.args[last + 1]).start
        edits.append(Edit(Span(begin, end), ""))
    return tuple(edits)


def _runs(marks: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """The first and last place of each run of marks."""
    for value, places in itertools.groupby(range(len(marks)), key=marks.__getitem__):
        run = list(places)
        if value:
            yield run[0], run[-1]


def _value_end(site: Site, argument: cst.Arg) -> Position:
    return site.piece.span(argument).end

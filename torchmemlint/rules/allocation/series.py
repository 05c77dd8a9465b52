"""Tensors that are made in a row, one on each line, as buffers are: what is changed of one is changed of all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.flow.fact.creating import ALIKE
from torchmemlint.immutable import immutable
from torchmemlint.rules.arguments import WrittenCall, call_at
from torchmemlint.rules.separating import place_of
from torchmemlint.rules.told import Told
from torchmemlint.syntax import statements


def beside(told: Told) -> Iterator[tuple[WrittenCall | None, WrittenCall | None]]:
    """Yield the tensors that the lines around make and move likewise, each as the calls that move and make it."""
    facts, source = told.facts, told.facts.source
    *outer, own = (None, *statements.around(source.statements, told.span, source.rows))
    wanted = _Series.of(own)
    if own is None or wanted is None:
        return
    head = outer[-1]
    blocks = [source.statements] if head is None else statements.blocks(head)
    block = next((block for block in blocks if own in block), [own])
    at = block.index(own)
    for others in (reversed(block[:at]), block[at + 1 :]):
        before: ast.stmt = own
        for one in others:
            found = _Series.of(one)
            if found is None or not found.goes_on(wanted) or not _touch(before, one):
                break
            yield (
                call_at(facts, source.span_of(place_of(found.moved))),
                call_at(facts, source.span_of(place_of(found.made))),
            )
            before = one


@immutable()
class _Series:
    """`name = torch.zeros(n).to(device)`: the call that makes a tensor and the one that moves it."""

    made: ast.Call
    moved: ast.Call
    module: str  # of the factory
    device: str  # what the tensor is moved by, and to

    @classmethod
    def of(cls, statement: ast.stmt | None) -> _Series | None:
        """What a statement is, if it is one of a series."""
        match statement:
            case ast.Assign(
                targets=[ast.Name() | ast.Attribute()],
                value=ast.Call(
                    func=ast.Attribute(
                        attr=way,
                        value=ast.Call(
                            func=ast.Attribute(value=ast.Name(id=module), attr=name), keywords=named
                        ) as made,
                    )
                ) as moved,
            ) if name in ALIKE and {one.arg for one in named} <= {"dtype"}:
                return cls(made, moved, module, ast.unparse(ast.Call(ast.Name(way), moved.args, moved.keywords)))
        return None

    def goes_on(self, other: _Series) -> bool:
        """Are both made and moved in the same way?"""
        return (self.module, self.device) == (other.module, other.device)


def _touch(one: ast.stmt, other: ast.stmt) -> bool:
    """Do two statements stand on lines that follow each other?"""
    first, second = sorted((one, other), key=lambda statement: statement.lineno)
    return second.lineno == (first.end_lineno or first.lineno) + 1

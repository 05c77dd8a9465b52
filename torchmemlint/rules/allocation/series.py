"""Tensors that are made in a row, one on each line, as buffers are: what is changed of one is changed of all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.flow.fact.creating import ALIKE
from torchmemlint.rules.arguments import WrittenCall, call_at
from torchmemlint.rules.separating import place_of
from torchmemlint.rules.told import Told
from torchmemlint.syntax import statements


def beside(told: Told) -> Iterator[tuple[WrittenCall | None, WrittenCall | None]]:
    """Yield the tensors that the lines around make and move likewise, each as the calls that move and make it."""
    facts, source = told.facts, told.facts.source
    *outer, own = (None, *statements.around(source.statements, told.span, source.rows))
    head = outer[-1] if outer else None
    blocks = [source.statements] if head is None else list(statements.blocks(head))
    block = next((block for block in blocks if own in block), [])
    wanted = _moved(own)
    for step in (-1, 1) if wanted is not None else ():
        number = block.index(own) + step
        while 0 <= number < len(block) and (found := _moved(block[number])) is not None:
            before, after = sorted((block[number - step], block[number]), key=lambda one: one.lineno)
            if after.lineno != (before.end_lineno or 0) + 1 or _said(found) != _said(wanted):
                break
            yield tuple(call_at(facts, source.span_of(place_of(one))) for one in (found, found.func.value))
            number += step


def _moved(statement: ast.stmt | None) -> ast.Call | None:
    """The call of `.to` in a statement `name = torch.zeros(n).to(device)`."""
    match statement:
        case ast.Assign(
            targets=[ast.Name() | ast.Attribute()], value=ast.Call(func=ast.Attribute(value=made)) as moved
        ):
            match made:
                case ast.Call(func=ast.Attribute(value=ast.Name(), attr=name), keywords=named) if name in ALIKE:
                    return moved if {one.arg for one in named} <= {"dtype"} else None
    return None


def _said(moved: ast.Call) -> tuple[str, str]:
    """Of what module the factory is, and how the tensor is moved."""
    assert isinstance(moved.func, ast.Attribute)
    assert isinstance(moved.func.value, ast.Call)
    factory = moved.func.value.func
    assert isinstance(factory, ast.Attribute)
    arguments = ast.Call(ast.Name(moved.func.attr), moved.args, moved.keywords)
    return ast.unparse(factory.value), ast.unparse(arguments)

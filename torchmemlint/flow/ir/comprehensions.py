"""Comprehensions and generator expressions: loops that fill a container."""

from __future__ import annotations

import ast

from .building import Builder, expression, span
from .keys import dict_key
from .narrowing import mark_tested, narrowings
from .ops import Collect, For, If, Make, Temp
from .scopes import restore
from .targets import assign, names_in

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_KINDS = {ast.ListComp: "list", ast.SetComp: "set", ast.DictComp: "dict", ast.GeneratorExp: "stream"}
_NO_NAMES: frozenset[str] = frozenset()


@expression("ListComp", "SetComp", "DictComp", "GeneratorExp")
def comprehension(b: Builder, node: Comprehension) -> Temp:
    """`[f(x) for x in y if z]`. The first iterable is evaluated outside, all else in a scope of its own."""
    source = b.expression(node.generators[0].iter)
    box = b.temp()
    outer = b.block
    outer.append(Make(b.function, span(node), box, _KINDS[node.__class__], ()))
    class_scope = b.class_scope
    if class_scope is not None:
        class_scope.hide()
        b.class_scope = None
    names, frame = b.names, b.frame
    outer_variables = frame.variables
    variables = {text: frame.rename(text, box) for gen in node.generators for text in names_in(gen.target)}
    before = {text: names.get(text) for text in variables}
    names.update(variables)
    frame.variables = {**outer_variables, **variables}
    b.mentions.update(variables)
    _rounds(b, node, 0, source, box)
    restore(names, before)
    frame.variables = outer_variables
    if class_scope is not None:
        b.class_scope = class_scope
        class_scope.reveal()
    b.block = outer
    return box


def _rounds(b: Builder, node: Comprehension, index: int, source: Temp, box: Temp) -> None:
    """One `for` of a comprehension, with what stands behind it."""
    generator = node.generators[index]
    item = b.temp()
    op = For(b.function, span(node), source, item, [], [], _NO_NAMES, True)
    b.block.append(op)
    b.block = op.body
    binds, touched = b.binds, b.frame.touched
    first, first_touched = len(binds), len(touched)
    assign(b, generator.target, item)
    for test in generator.ifs:
        value = b.expression(test)
        mark_tested(b, test)
        branch = If(b.function, span(test), value, [], [], narrowings(b, test))
        b.block.append(branch)
        b.block = branch.then
    if index + 1 < len(node.generators):
        _rounds(b, node, index + 1, b.expression(node.generators[index + 1].iter), box)
    elif isinstance(node, ast.DictComp):
        key = dict_key(b, node.key)
        b.block.append(Collect(b.function, span(node.value), box, key, b.expression(node.value)))
    else:
        b.block.append(Collect(b.function, span(node.elt), box, None, b.expression(node.elt)))
    b.scopes.loops.append((op, binds[first:] + touched[first_touched:]))

"""Comprehensions, which are loops that fill a container, and generator expressions, which are functions."""

from __future__ import annotations

import ast

from .building import Builder, expression, given_plainly, span
from .control import For, If, Yield
from .keys import dict_key
from .narrowing import mark_tested, narrowings
from .ops import FIRST, Call, Collect, Define, Function, Load, Make, Parameter, Passing
from .places import NO_TEMP, Name, Temp
from .scopes import restore
from .targets import assign, names_in

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp
_KINDS = {ast.ListComp: "list", ast.SetComp: "set", ast.DictComp: "dict"}
_NO_NAMES: frozenset[str] = frozenset()


@expression("GeneratorExp")
def generator_expression(b: Builder, node: ast.GeneratorExp) -> Temp:
    """`(f(x) for x in y)`: a generator function that is called with the first iterable."""
    place = span(node)
    source = b.expression(node.generators[0].iter)
    function = Function("<genexpr>", place, b.unit, b.function, None)
    function.generator = True
    function.parameters.append(Parameter(FIRST, Passing.POSITIONAL, "", False))
    function.bound.add(FIRST)
    walruses = {inner.target.id for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)}
    for text in walruses:
        b.target(text)
    b.enter(function)
    if b.frame.outer is not None and b.frame.outer.outer is None:
        b.frame.globals = frozenset(walruses)
    else:
        b.frame.nonlocals = frozenset(walruses)
    own = [FIRST, *(text for generator in node.generators for text in names_in(generator.target))]
    for text in own:  # whatever comprehensions around call theirs
        b.names[text] = Name(text)
        b.frame.made.append(b.names[text])
    first = b.make(Load, place, b.names[FIRST])
    body = b.block
    _rounds(b, node, 0, first, NO_TEMP)
    b.block = body
    b.leave()
    b.function.nested.append(function)
    made, dst = b.temp(), b.temp()
    b.block.append(Define(b.function, place, made, function, ()))
    b.block.append(Call(b.function, place, dst, made, (given_plainly[source],)))
    return dst


@expression("ListComp", "SetComp", "DictComp")
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


def _rounds(b: Builder, node: Comprehension | ast.GeneratorExp, index: int, source: Temp, box: Temp) -> None:
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
    elif isinstance(node, ast.GeneratorExp):
        src, dst = b.expression(node.elt), b.temp()
        b.block.append(Yield(b.function, span(node.elt), dst, src, False))
    else:
        b.block.append(Collect(b.function, span(node.elt), box, None, b.expression(node.elt)))
    b.scopes.loops.append((op, binds[first:] + touched[first_touched:]))

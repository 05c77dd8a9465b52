"""From expressions to operations. Each function appends what it takes and answers with the temporary of the value."""

from __future__ import annotations

import ast

from .building import EXPRESSIONS, Builder, expression, plain_entry, span, where
from .conditions import collect_tested
from .control import Await, If, Yield
from .keys import dict_key, key_of
from .narrowing import lacking, mark_tested, narrowings
from .ops import GAP, Choose, Compare, Constant, Format, GetAttribute, GetItem, Load, Make, Move, Operate
from .places import NO_TEMP, Entry, Spread, Temp

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
}
COMPARISONS: dict[type[ast.AST], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


@expression("Constant")
def constant(b: Builder, node: ast.Constant) -> Temp:
    """A literal."""
    b.temps = (dst := b.temps) + 1
    b.block.append(Constant(b.function, where(node.__dict__), dst, node.value))
    return dst


@expression("Name")
def load(b: Builder, node: ast.Name) -> Temp:
    """A name that is read."""
    b.temps = (dst := b.temps) + 1
    b.block.append(Load(b.function, where(node.__dict__), dst, b.names[node.id]))
    return dst


@expression("Attribute")
def attribute(b: Builder, node: ast.Attribute) -> Temp:
    """`x.a`."""
    value = node.value
    if value.__class__ is ast.Name:
        base = b.temps
        dst = base + 1
        b.temps = base + 2
        b.block.append(Load(b.function, where(value.__dict__), base, b.names[value.id]))
    else:
        base = EXPRESSIONS[value.__class__](b, value)
        b.temps = (dst := b.temps) + 1
    b.mentions.add(node.attr)
    b.block.append(GetAttribute(b.function, where(node.__dict__), dst, base, node.attr))
    return dst


@expression("Subscript")
def item(b: Builder, node: ast.Subscript) -> Temp:
    """`x[i]`."""
    base = EXPRESSIONS[node.value.__class__](b, node.value)
    key = key_of(b, node.slice)
    b.temps = (dst := b.temps) + 1
    b.block.append(GetItem(b.function, span(node), dst, base, key))
    return dst


@expression("BinOp")
def binary(b: Builder, node: ast.BinOp) -> Temp:
    """`x + y`. Sums of many terms lean to the left: they are gone through without recursion."""
    chain = [node]
    left = node.left
    while left.__class__ is ast.BinOp:
        chain.append(left)
        left = left.left
    result = EXPRESSIONS[left.__class__](b, left)
    while chain:
        node = chain.pop()
        right = EXPRESSIONS[node.right.__class__](b, node.right)
        b.temps = (dst := b.temps) + 1
        b.block.append(Operate(b.function, span(node), dst, OPERATORS[node.op.__class__], (result, right), None))
        result = dst
    return result


@expression("UnaryOp")
def unary(b: Builder, node: ast.UnaryOp) -> Temp:
    """`-x`, `not x`."""
    operand = EXPRESSIONS[node.operand.__class__](b, node.operand)
    b.temps = (dst := b.temps) + 1
    if node.op.__class__ is ast.Not:
        b.block.append(Compare(b.function, span(node), dst, "not", (operand,)))
    else:
        b.block.append(Operate(b.function, span(node), dst, OPERATORS[node.op.__class__], (operand,), None))
    return dst


@expression("Compare")
def compare(b: Builder, node: ast.Compare) -> Temp:
    """`x < y`, `x < y < z`."""
    operands = [EXPRESSIONS[node.left.__class__](b, node.left)]
    for other in node.comparators:
        operands.append(EXPRESSIONS[other.__class__](b, other))  # noqa: PERF401  (a loop is faster than a comprehension)
    operators = node.ops
    kind = operators[0].__class__
    if len(operators) > 1:
        kind = next((o.__class__ for o in operators if not isinstance(o, (ast.Is, ast.IsNot))), kind)
    b.temps = (dst := b.temps) + 1
    b.block.append(Compare(b.function, span(node), dst, COMPARISONS[kind], tuple(operands)))
    return dst


@expression("BoolOp")
def choice(b: Builder, node: ast.BoolOp) -> Temp:
    """`x and y`, `x or y`. All but the last are tests."""
    operands = [EXPRESSIONS[value.__class__](b, value) for value in node.values]
    for value in node.values[:-1]:
        collect_tested(value, b.frame.tested)
    b.temps = (dst := b.temps) + 1
    operator = "and" if node.op.__class__ is ast.And else "or"
    b.block.append(Choose(b.function, span(node), dst, operator, tuple(operands)))
    return dst


@expression("IfExp")
def conditional(b: Builder, node: ast.IfExp) -> Temp:
    """`x if test else y`."""
    test = b.expression(node.test)
    mark_tested(b, node.test)
    place = span(node)
    dst = b.temp()
    found = narrowings(b, node.test)
    op = If(b.function, place, test, [], [], found)
    outer = b.block
    outer.append(op)
    for taken, block, value in ((True, op.then, node.body), (False, op.orelse, node.orelse)):
        b.block = block
        src = b.expression(value)
        block.append(Move(b.function, place, dst, src, lacking(found, node.test, value, taken)))
    b.block = outer
    return dst


@expression("NamedExpr")
def walrus(b: Builder, node: ast.NamedExpr) -> Temp:
    """`(x := y)`."""
    value = b.expression(node.value)
    b.bind(node.target.id, value, span(node))
    return value


@expression("JoinedStr", "TemplateStr")
def text(b: Builder, node: ast.JoinedStr) -> Temp:
    """An f-string."""
    operands: list[Temp] = []
    _formatted(b, node.values, operands)
    return b.make(Format, span(node), tuple(operands), "".join(map(_part, node.values)))


def _part(value: ast.expr) -> str:
    """Return a literal part of an f-string, or a GAP; two where a value is formatted in a way of its own."""
    if isinstance(value, ast.Constant):
        return str(value.value)
    plain = getattr(value, "format_spec", None) is None and getattr(value, "conversion", -1) == -1
    return GAP if plain else GAP + GAP


def _formatted(b: Builder, values: list[ast.expr], operands: list[Temp]) -> None:
    for value in values:
        if value.__class__ is not ast.Constant:
            operands.append(b.expression(value.value))  # type: ignore[attr-defined]
            if value.format_spec is not None:  # type: ignore[attr-defined]
                _formatted(b, value.format_spec.values, operands)  # type: ignore[attr-defined]


@expression("FormattedValue", "Interpolation")
def formatted(b: Builder, node: ast.FormattedValue) -> Temp:
    """A part of an f-string, where a tree that was not parsed has it alone."""
    operands: list[Temp] = []
    _formatted(b, [node], operands)
    return b.make(Format, span(node), tuple(operands))


@expression("Starred")
def alone(b: Builder, node: ast.Starred) -> Temp:
    """`*x` by itself, which the parser lets pass and the compiler does not."""
    return b.expression(node.value)


@expression("Await")
def wait(b: Builder, node: ast.Await) -> Temp:
    """`await x`."""
    src = b.expression(node.value)
    return b.make(Await, span(node), src)


@expression("Yield")
def hand_out(b: Builder, node: ast.Yield) -> Temp:
    """`yield x`."""
    b.function.generator = True
    src = NO_TEMP if node.value is None else b.expression(node.value)
    return b.make(Yield, span(node), src, False)


@expression("YieldFrom")
def hand_out_all(b: Builder, node: ast.YieldFrom) -> Temp:
    """`yield from x`."""
    b.function.generator = True
    src = b.expression(node.value)
    return b.make(Yield, span(node), src, True)


PLAIN = Spread.PLAIN
KINDS = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}


@expression("List", "Tuple", "Set")
def display(b: Builder, node: ast.List | ast.Tuple | ast.Set) -> Temp:
    """`[x, y]`, `(x, y)`, `{x, y}`."""
    entries: list[Entry] = []
    for element in node.elts:
        if element.__class__ is ast.Starred:
            element = element.value
            entries.append(Entry(Spread.STAR, None, EXPRESSIONS[element.__class__](b, element)))
        else:
            entries.append(plain_entry[EXPRESSIONS[element.__class__](b, element)])
    b.temps = (dst := b.temps) + 1
    b.block.append(Make(b.function, span(node), dst, KINDS[node.__class__], tuple(entries)))
    return dst


@expression("Dict")
def dictionary(b: Builder, node: ast.Dict) -> Temp:
    """`{k: x, **y}`."""
    entries: list[Entry] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            entries.append(Entry(Spread.STARS, None, b.expression(value)))
        else:
            where = dict_key(b, key)
            entries.append(Entry(PLAIN, where, EXPRESSIONS[value.__class__](b, value)))
    b.temps = (dst := b.temps) + 1
    b.block.append(Make(b.function, span(node), dst, "dict", tuple(entries)))
    return dst

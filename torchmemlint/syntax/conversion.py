"""libcst's nodes made of the standard parser's: the tree that libcst would parse, but for blanks and comments.

The standard parser has read the file already, and making libcst's nodes of its nodes takes an eighth of the time that
libcst takes to parse the same text (timm 1.0.31, 6.1 MB: 0.95 s instead of 7.6 s, the standard parser itself 0.95 s).
All that the analysis asks of a tree is the same: kinds of nodes, names, numbers
and strings as they are written, what stands in what. Blanks are those that libcst gives to nodes made by hand, and
brackets stand where the expression needs them. Blanks and operators are shared by all nodes that have them. Where a
node stands and how it is written, the tree that libcst parses tells (`syntax.trees`).
`tests/syntax/test_conversion.py` holds both trees against each other.

What is rare, or what the standard parser's tree does not tell enough about (strings of several literals, `match`, type
parameters), libcst parses here, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar, cast

import libcst as cst

from torchmemlint.syntax.literals import Field, literals
from torchmemlint.syntax.standard import parse
from torchmemlint.syntax.text import without_form_feeds

T = TypeVar("T", bound=cst.CSTNode)

_STRING = re.compile(r"[a-zA-Z]{0,2}(?P<quotes>'''|\"\"\"|'|\")")  # how a literal begins
_DOTTED = re.compile(r"[a-zA-Z_]\w*(?:\.[a-zA-Z_]\w*)*", re.ASCII)


def convert(statements: Sequence[ast.stmt], lines: Sequence[str], first_row: int = 1) -> cst.Module:
    """Statements of one level as a libcst module.

    `lines` are those of the text, each with a line feed, from the row on that the statements count as `first_row`.
    Raises what libcst raises where it cannot read what Python can.
    """
    return _module(_Conversion(lines, first_row).statements(statements))


def convert_method(owner: str, method: ast.stmt, lines: Sequence[str], first_row: int) -> cst.Module:
    """A method as the only one of a class of this name."""
    return _module([_class(_name(owner), _block([_Conversion(lines, first_row).compound(method)]), (), (), ())])


def _maker(kind: type[T], *given: str, **others: object) -> Callable[..., T]:
    """A function that makes a node of these fields, in this order, and of `others`; the rest have their defaults.

    Blanks are shared between nodes. It does not call the constructor, which looks at each field: a third of the time.
    """
    names: dict[str, object] = {"new": object.__new__, "kind": kind}
    lines = [f"def make({', '.join(given)}):", " node = new(kind)"]
    for field in fields(kind):
        if field.name not in given:
            default = others.get(field.name, field.default)
            if default is MISSING:
                default = cast(Any, field.default_factory)()
            names[f"default_{field.name}"] = default
        names[f"set_{field.name}"] = getattr(kind, field.name).__set__
        value = field.name if field.name in given else f"default_{field.name}"
        lines.append(f" set_{field.name}(node, {value})")
    exec("\n".join([*lines, " return node"]), names)
    return cast(Callable[..., T], names["make"])


_NOTHING = cst.SimpleWhitespace("")
_EQUAL = cst.AssignEqual(_NOTHING, _NOTHING)  # of a keyword argument
_OPEN, _CLOSE = (cst.LeftParen(),), (cst.RightParen(),)

_name = _maker(cst.Name, "value")
_attribute = _maker(cst.Attribute, "value", "attr")
_call = _maker(cst.Call, "func", "args")
_positional = _maker(cst.Arg, "value")
_named = _maker(cst.Arg, "value", "keyword", equal=_EQUAL)
_starred = _maker(cst.Arg, "value", "star")
_subscript = _maker(cst.Subscript, "value", "slice")
_subscript_element = _maker(cst.SubscriptElement, "slice", "comma")
_index = _maker(cst.Index, "value")
_starred_index = _maker(cst.Index, "value", star="*")
_slice = _maker(cst.Slice, "lower", "upper", "step")
_binary = _maker(cst.BinaryOperation, "left", "operator", "right")
_unary = _maker(cst.UnaryOperation, "operator", "expression")
_boolean = _maker(cst.BooleanOperation, "left", "operator", "right")
_comparison = _maker(cst.Comparison, "left", "comparisons")
_comparison_target = _maker(cst.ComparisonTarget, "operator", "comparator")
_conditional = _maker(cst.IfExp, "test", "body", "orelse")
_lambda = _maker(cst.Lambda, "params", "body")
_parameters = _maker(
    cst.Parameters, "params", "star_arg", "kwonly_params", "star_kwarg", "posonly_params", "posonly_ind"
)
_parameter = _maker(cst.Param, "name", "annotation", "equal", "default", "star")
_tuple = _maker(cst.Tuple, "elements", lpar=(), rpar=())
_list = _maker(cst.List, "elements")
_set = _maker(cst.Set, "elements")
_dict = _maker(cst.Dict, "elements")
_entry = _maker(cst.DictElement, "key", "value")
_starred_entry = _maker(cst.StarredDictElement, "value")
_element = _maker(cst.Element, "value")
_starred_element = _maker(cst.StarredElement, "value")
_generator = _maker(cst.GeneratorExp, "elt", "for_in")
_bare_generator = _maker(cst.GeneratorExp, "elt", "for_in", lpar=(), rpar=())
_list_comprehension = _maker(cst.ListComp, "elt", "for_in")
_set_comprehension = _maker(cst.SetComp, "elt", "for_in")
_dict_comprehension = _maker(cst.DictComp, "key", "value", "for_in")
_loop = _maker(cst.CompFor, "target", "iter", "ifs", "inner_for_in", "asynchronous")
_condition = _maker(cst.CompIf, "test")
_await = _maker(cst.Await, "expression")
_yield = _maker(cst.Yield, "value")
_from = _maker(cst.From, "item")
_walrus = _maker(cst.NamedExpr, "target", "value")
_string = _maker(cst.SimpleString, "value")
_concatenated = _maker(cst.ConcatenatedString, "left", "right", whitespace_between=cst.SimpleWhitespace(" "))
_formatted = _maker(cst.FormattedString, "parts", "start", "end")
_text_part = _maker(cst.FormattedStringText, "value")
_field = _maker(cst.FormattedStringExpression, "expression", "conversion", "format_spec")
_integer = _maker(cst.Integer, "value")
_float = _maker(cst.Float, "value")
_imaginary = _maker(cst.Imaginary, "value")
_ellipsis = _maker(cst.Ellipsis)
_assign = _maker(cst.Assign, "targets", "value")
_target = _maker(cst.AssignTarget, "target")
_annotated = _maker(cst.AnnAssign, "target", "annotation", "value")
_annotation = _maker(cst.Annotation, "annotation")
_augmented = _maker(cst.AugAssign, "target", "operator", "value")
_expression = _maker(cst.Expr, "value")
_return = _maker(cst.Return, "value")
_raise = _maker(cst.Raise, "exc", "cause")
_assert = _maker(cst.Assert, "test", "msg")
_del = _maker(cst.Del, "target")
_pass = _maker(cst.Pass)
_break = _maker(cst.Break)
_continue = _maker(cst.Continue)
_global = _maker(cst.Global, "names")
_nonlocal = _maker(cst.Nonlocal, "names")
_name_item = _maker(cst.NameItem, "name")
_import = _maker(cst.Import, "names")
_import_from = _maker(cst.ImportFrom, "module", "names", "relative")
_alias = _maker(cst.ImportAlias, "name", "asname")
_as_name = _maker(cst.AsName, "name")
_star_import = _maker(cst.ImportStar)
_if = _maker(cst.If, "test", "body", "orelse")
_else = _maker(cst.Else, "body")
_for = _maker(cst.For, "target", "iter", "body", "orelse", "asynchronous")
_while = _maker(cst.While, "test", "body", "orelse")
_with = _maker(cst.With, "items", "body", "asynchronous")
_with_item = _maker(cst.WithItem, "item", "asname")
_try = _maker(cst.Try, "body", "handlers", "orelse", "finalbody")
_handler = _maker(cst.ExceptHandler, "body", "type", "name")
_finally = _maker(cst.Finally, "body")
_function = _maker(cst.FunctionDef, "name", "params", "body", "decorators", "returns", "asynchronous")
_class = _maker(cst.ClassDef, "name", "body", "bases", "keywords", "decorators")
_decorator = _maker(cst.Decorator, "decorator")
_module = _maker(cst.Module, "body")
_line = _maker(cst.SimpleStatementLine, "body")
_suite_on_row = _maker(cst.SimpleStatementSuite, "body")
_block = _maker(cst.IndentedBlock, "body")

_ASYNCHRONOUS = cst.Asynchronous()
_NONE = cst.MaybeSentinel.DEFAULT
_DOTS = tuple(cst.Dot(_NOTHING, _NOTHING) for _ in range(20))

# How tightly an expression holds together, from 0. What stands in another one is in brackets where it must be tighter.
_WALRUS, _YIELD, _TUPLE, _TEST, _OR, _AND, _NOT, _COMPARISON, _BITS = range(9)
_BITS_XOR, _BITS_AND, _SHIFT, _SUM, _PRODUCT, _FACTOR, _POWER, _AWAIT, _ATOM = range(9, 18)

_OPERATORS: dict[type[ast.operator], tuple[cst.BaseBinaryOp, cst.BaseAugOp, int]] = {
    ast.Add: (cst.Add(), cst.AddAssign(), _SUM),
    ast.Sub: (cst.Subtract(), cst.SubtractAssign(), _SUM),
    ast.Mult: (cst.Multiply(), cst.MultiplyAssign(), _PRODUCT),
    ast.Div: (cst.Divide(), cst.DivideAssign(), _PRODUCT),
    ast.FloorDiv: (cst.FloorDivide(), cst.FloorDivideAssign(), _PRODUCT),
    ast.Mod: (cst.Modulo(), cst.ModuloAssign(), _PRODUCT),
    ast.MatMult: (cst.MatrixMultiply(), cst.MatrixMultiplyAssign(), _PRODUCT),
    ast.Pow: (cst.Power(), cst.PowerAssign(), _POWER),
    ast.LShift: (cst.LeftShift(), cst.LeftShiftAssign(), _SHIFT),
    ast.RShift: (cst.RightShift(), cst.RightShiftAssign(), _SHIFT),
    ast.BitAnd: (cst.BitAnd(), cst.BitAndAssign(), _BITS_AND),
    ast.BitOr: (cst.BitOr(), cst.BitOrAssign(), _BITS),
    ast.BitXor: (cst.BitXor(), cst.BitXorAssign(), _BITS_XOR),
}
_SIGNS: dict[type[ast.unaryop], tuple[cst.BaseUnaryOp, int]] = {
    ast.USub: (cst.Minus(), _FACTOR),
    ast.UAdd: (cst.Plus(), _FACTOR),
    ast.Invert: (cst.BitInvert(), _FACTOR),
    ast.Not: (cst.Not(), _NOT),
}
_JOINERS: dict[type[ast.boolop], tuple[cst.BaseBooleanOp, int]] = {ast.And: (cst.And(), _AND), ast.Or: (cst.Or(), _OR)}
_COMPARISONS: dict[type[ast.cmpop], cst.BaseCompOp] = {
    ast.Eq: cst.Equal(),
    ast.NotEq: cst.NotEqual(),
    ast.Lt: cst.LessThan(),
    ast.LtE: cst.LessThanEqual(),
    ast.Gt: cst.GreaterThan(),
    ast.GtE: cst.GreaterThanEqual(),
    ast.Is: cst.Is(),
    ast.IsNot: cst.IsNot(),
    ast.In: cst.In(),
    ast.NotIn: cst.NotIn(),
}


class _Conversion:
    """Nodes made of the standard parser's for a text of these lines, the first of which is `first_row`."""

    def __init__(self, lines: Sequence[str], first_row: int) -> None:
        self.lines = lines
        self.first_row = first_row

    # -- text ------------------------------------------------------------------------------------------------------

    def text(self, node: ast.expr | ast.stmt) -> str:
        """How a node is written."""
        first, last = node.lineno - self.first_row, (node.end_lineno or node.lineno) - self.first_row
        start, end = node.col_offset, node.end_col_offset or 0
        line = self.lines[first]
        if first == last:
            return line[start:end] if line.isascii() else line.encode()[start:end].decode()
        return "".join((_from_byte(line, start), *self.lines[first + 1 : last], _up_to_byte(self.lines[last], end)))

    def after(self, node: ast.expr | ast.stmt) -> str:
        """What stands on the row of a node's beginning from there on."""
        return _from_byte(self.lines[node.lineno - self.first_row], node.col_offset)

    def is_alone(self, statement: ast.stmt) -> bool:
        """Does a statement begin its row, and not stand behind a colon?"""
        row = statement.lineno - self.first_row
        if self.lines[row][: statement.col_offset].strip():
            return False
        before = self.lines[row - 1] if row else ""
        return not before.endswith("\\\n") or "#" in before

    # -- statements ------------------------------------------------------------------------------------------------

    def statements(self, body: Iterable[ast.stmt]) -> list[Any]:
        """Statements by lines."""
        found: list[Any] = []
        small: list[Any] = []
        last = 0  # the row in which the statement before ends
        for statement in body:
            convert = _SMALL.get(type(statement))
            if convert is None:
                found.append(self.compound(statement))
            elif statement.lineno == last and small:
                small.append(convert(self, statement))
            else:
                small = [convert(self, statement)]
                found.append(_line(small))
            last = statement.end_lineno or 0
        return found

    def compound(self, statement: ast.stmt) -> cst.BaseStatement:
        """A statement with others in it."""
        return _COMPOUND.get(type(statement), _parsed)(self, statement)

    def suite(self, body: Sequence[ast.stmt]) -> cst.BaseSuite:
        """What stands behind a colon."""
        if self.is_alone(body[0]):
            return _block(self.statements(body))
        return _suite_on_row([_SMALL[type(statement)](self, statement) for statement in body])

    def other(self, body: Sequence[ast.stmt]) -> cst.Else | None:
        """An `else` clause."""
        return _else(self.suite(body)) if body else None

    # -- expressions -----------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr, least: int = _YIELD) -> Any:
        """An expression, in brackets if it holds together less tightly than `least`."""
        convert, tight = _EXPRESSIONS[type(node)]
        made = convert(self, node)
        if least > tight >= 0 or (tight < 0 and least > _tightness(node)):
            _bracket(made)
        return made

    def elements(self, nodes: Sequence[ast.expr]) -> list[cst.BaseElement]:
        """The elements of a tuple, list or set."""
        return [
            _starred_element(self.expression(node.value, _BITS))
            if type(node) is ast.Starred
            else _element(self.expression(node, _TEST))
            for node in nodes
        ]

    def arguments(self, positional: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> list[cst.Arg]:
        """The arguments of a call, in the order in which they stand there."""
        found = [self.argument(node) for node in positional]
        if not keywords:
            return found
        if positional and _place(positional[-1]) > _place(keywords[0]):
            places = {_place(one): self.argument(one) for one in positional}
            places.update({_place(one): self.named(one) for one in keywords})
            return [places[place] for place in sorted(places)]
        return found + [self.named(keyword) for keyword in keywords]

    def argument(self, node: ast.expr) -> cst.Arg:
        if type(node) is ast.Starred:
            return _starred(self.expression(node.value, _TEST), "*")
        return _positional(self.expression(node, _TEST))

    def named(self, keyword: ast.keyword) -> cst.Arg:
        value = self.expression(keyword.value, _TEST)
        return _named(value, _name(keyword.arg)) if keyword.arg is not None else _starred(value, "**")

    def parameters(self, given: ast.arguments) -> cst.Parameters:
        """The parameters of a function."""
        positional = [*given.posonlyargs, *given.args]
        without = len(positional) - len(given.defaults)
        made = [
            self.parameter(one, given.defaults[number - without] if number >= without else None)
            for number, one in enumerate(positional)
        ]
        first = len(given.posonlyargs)
        star: object = _NONE
        if given.vararg is not None:
            star = self.parameter(given.vararg, star="*")
        elif given.kwonlyargs:
            star = cst.ParamStar()
        return _parameters(
            made[first:],
            star,
            [self.parameter(one, value) for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)],
            self.parameter(given.kwarg, star="**") if given.kwarg is not None else None,
            made[:first],
            cst.ParamSlash() if first else _NONE,
        )

    def parameter(self, given: ast.arg, default: ast.expr | None = None, star: str = "") -> cst.Param:
        annotation = self.annotation(given.annotation) if given.annotation is not None else None
        value = self.expression(default, _TEST) if default is not None else None
        equal = _NONE if value is None or annotation is not None else _EQUAL
        return _parameter(_name(given.arg), annotation, equal, value, star)

    def annotation(self, node: ast.expr) -> cst.Annotation:
        if isinstance(node, ast.Starred):  # `*args: *Ts`
            return _annotation(_starred_element(self.expression(node.value, _BITS)))
        return _annotation(self.expression(node, _TEST))

    def loops(self, generators: Sequence[ast.comprehension]) -> cst.CompFor:
        """The `for` clauses of a comprehension, each with those after it in it."""
        inner: cst.CompFor | None = None
        for one in reversed(generators):
            inner = _loop(
                self.expression(one.target),
                self.expression(one.iter, _OR),
                [_condition(self.expression(test, _OR)) for test in one.ifs],
                inner,
                _ASYNCHRONOUS if one.is_async else None,
            )
        assert inner is not None
        return inner

    def subscripts(self, node: ast.expr) -> list[cst.SubscriptElement]:
        """What stands in the brackets of a subscript."""
        if isinstance(node, ast.Tuple) and node.elts and not self.is_in_brackets(node):
            comma = cst.Comma() if len(node.elts) == 1 else _NONE
            return [_subscript_element(self.index(one), comma) for one in node.elts]
        return [_subscript_element(self.index(node), _NONE)]

    def index(self, node: ast.expr) -> cst.BaseSlice:
        if isinstance(node, ast.Slice):
            parts = (node.lower, node.upper, node.step)
            return _slice(*(self.expression(part, _TEST) if part is not None else None for part in parts))
        if isinstance(node, ast.Starred):
            return _starred_index(self.expression(node.value, _BITS))
        return _index(self.expression(node, _TEST))

    def is_in_brackets(self, node: ast.Tuple) -> bool:
        """Are there brackets around a tuple? It begins and ends with them, then."""
        if self.after(node)[0] != "(":
            return False
        text = self.text(node)
        if text[-1] != ")":
            return False
        match parse(f"_[{text}\n,]").body:
            case [ast.Expr(value=ast.Subscript(slice=ast.Tuple(elts=[_])))]:
                return True
        return False


def _from_byte(line: str, start: int) -> str:
    return line[start:] if line.isascii() else line.encode()[start:].decode()


def _up_to_byte(line: str, end: int) -> str:
    return line[:end] if line.isascii() else line.encode()[:end].decode()


def _place(node: ast.expr | ast.keyword) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _bracket(node: cst.CSTNode) -> None:
    """Put brackets around an expression that was just made."""
    if not node.lpar:  # type: ignore[attr-defined]
        object.__setattr__(node, "lpar", _OPEN)
        object.__setattr__(node, "rpar", _CLOSE)


def _tightness(node: ast.expr) -> int:
    """How tightly an operation holds together."""
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)][2]
    if isinstance(node, ast.UnaryOp):
        return _SIGNS[type(node.op)][1]
    assert isinstance(node, ast.BoolOp)
    return _JOINERS[type(node.op)][1]


# -- expressions -----------------------------------------------------------------------------------------------------


def _of_name(it: _Conversion, node: ast.Name) -> cst.Name:
    return _name(node.id)


def _of_attribute(it: _Conversion, node: ast.Attribute) -> cst.Attribute:
    value = it.expression(node.value, _ATOM)
    if type(value) is cst.Integer:
        _bracket(value)  # `(1).real`
    return _attribute(value, _name(node.attr))


def _of_call(it: _Conversion, node: ast.Call) -> cst.Call:
    func = it.expression(node.func, _ATOM)
    match node.args:
        case [ast.GeneratorExp(elt=element, generators=generators)] if not node.keywords:
            return _call(func, [_positional(_bare_generator(it.expression(element, _TEST), it.loops(generators)))])
    return _call(func, it.arguments(node.args, node.keywords))


def _of_constant(it: _Conversion, node: ast.Constant) -> cst.BaseExpression:
    value = node.value
    if value is None or value is True or value is False:
        return _name(repr(value))
    if value is ...:
        return _ellipsis()
    text = it.text(node)
    match value:
        case str() | bytes():
            return _of_literals(text)
        case int():
            return _integer(text)
        case float():
            return _float(text)
        case _:
            return _imaginary(text)


def _of_literals(text: str) -> cst.BaseExpression:
    """A string, of one literal or of several in a row."""
    begin = _STRING.match(text)
    if begin is not None and text.find(begin["quotes"], begin.end()) == len(text) - len(begin["quotes"]):
        return _string(text)
    return _of_literals_apart(text)


def _of_formatted(it: _Conversion, node: ast.JoinedStr) -> cst.BaseExpression:
    return _of_literals_apart(it.text(node))


def _of_literals_apart(text: str) -> cst.BaseExpression:
    made = _made_of_literals(text)
    return _on_one_row(cst.parse_expression(f"({text}\n)")) if made is None else made


def _made_of_literals(text: str) -> cst.BaseExpression | None:
    """String literals in a row, f-strings among them; None where only a parser can tell."""
    made: list[cst.BaseExpression] = []
    for literal in literals(text) or ():
        if isinstance(literal, str):
            made.append(_string(literal))
            continue
        parts = [_text_part(part) if isinstance(part, str) else _of_field(part) for part in literal.parts]
        if None in parts:
            return None
        made.append(_formatted(parts, literal.start, literal.end))
    return _in_a_row(made) if made else None


def _of_field(field: Field) -> cst.FormattedStringExpression | None:
    expression = _written(field.expression.strip())
    spec = None if field.spec is None else [_text_part(field.spec)] if field.spec else ()
    return _field(expression, field.conversion, spec) if expression is not None else None


def _written(text: str) -> cst.BaseExpression | None:
    """An expression; None where the text is none, as that of a field up to its first colon may be."""
    if _DOTTED.fullmatch(text) and text != "yield":
        return _dotted(text)
    try:
        statements = parse(text).body
    except SyntaxError:
        return None
    match statements:
        case [ast.Expr(value=value)] if type(value) is not ast.Tuple:  # which has no brackets in a field
            return cast(cst.BaseExpression, _Conversion([f"{text}\n"], 1).expression(value))
    return None


def _in_a_row(made: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    *before, joined = made
    for literal in reversed(before):
        joined = _concatenated(literal, joined)
    return joined


def _on_one_row(parsed: cst.BaseExpression) -> cst.BaseExpression:
    """String literals without the row ends and brackets around them."""
    before: list[cst.BaseExpression] = []
    while isinstance(parsed, cst.ConcatenatedString):
        before.append(parsed.left)
        parsed = parsed.right
    return _in_a_row([*before, parsed.with_changes(lpar=(), rpar=())])


def _of_subscript(it: _Conversion, node: ast.Subscript) -> cst.Subscript:
    return _subscript(it.expression(node.value, _ATOM), it.subscripts(node.slice))


def _of_binary(it: _Conversion, node: ast.BinOp) -> cst.BinaryOperation:
    operator, _, tight = _OPERATORS[type(node.op)]
    if operator is _OPERATORS[ast.Pow][0]:
        return _binary(it.expression(node.left, _AWAIT), operator, it.expression(node.right, _FACTOR))
    return _binary(it.expression(node.left, tight), operator, it.expression(node.right, tight + 1))


def _of_unary(it: _Conversion, node: ast.UnaryOp) -> cst.UnaryOperation:
    operator, tight = _SIGNS[type(node.op)]
    return _unary(operator, it.expression(node.operand, tight))


def _of_boolean(it: _Conversion, node: ast.BoolOp) -> cst.BooleanOperation:
    operator, tight = _JOINERS[type(node.op)]
    values = [it.expression(value, tight + 1) for value in node.values]
    made = values[0]
    for value in values[1:]:
        made = _boolean(made, operator, value)
    return cast(cst.BooleanOperation, made)


def _of_comparison(it: _Conversion, node: ast.Compare) -> cst.Comparison:
    return _comparison(
        it.expression(node.left, _BITS),
        [
            _comparison_target(_COMPARISONS[type(operator)], it.expression(value, _BITS))
            for operator, value in zip(node.ops, node.comparators, strict=True)
        ],
    )


def _of_conditional(it: _Conversion, node: ast.IfExp) -> cst.IfExp:
    return _conditional(it.expression(node.test, _OR), it.expression(node.body, _OR), it.expression(node.orelse, _TEST))


def _of_lambda(it: _Conversion, node: ast.Lambda) -> cst.Lambda:
    return _lambda(it.parameters(node.args), it.expression(node.body, _TEST))


def _of_tuple(it: _Conversion, node: ast.Tuple) -> cst.Tuple:
    made = _tuple(it.elements(node.elts))
    if not node.elts:
        _bracket(made)
    return made


def _of_list(it: _Conversion, node: ast.List) -> cst.List:
    return _list(it.elements(node.elts))


def _of_set(it: _Conversion, node: ast.Set) -> cst.Set:
    return _set(it.elements(node.elts))


def _of_dict(it: _Conversion, node: ast.Dict) -> cst.Dict:
    return _dict(
        [
            _entry(it.expression(key, _TEST), it.expression(value, _TEST))
            if key is not None
            else _starred_entry(it.expression(value, _BITS))
            for key, value in zip(node.keys, node.values, strict=True)
        ]
    )


def _of_generator(it: _Conversion, node: ast.GeneratorExp) -> cst.GeneratorExp:
    return _generator(it.expression(node.elt, _TEST), it.loops(node.generators))


def _of_list_comprehension(it: _Conversion, node: ast.ListComp) -> cst.ListComp:
    return _list_comprehension(it.expression(node.elt, _TEST), it.loops(node.generators))


def _of_set_comprehension(it: _Conversion, node: ast.SetComp) -> cst.SetComp:
    return _set_comprehension(it.expression(node.elt, _TEST), it.loops(node.generators))


def _of_dict_comprehension(it: _Conversion, node: ast.DictComp) -> cst.DictComp:
    return _dict_comprehension(
        it.expression(node.key, _TEST), it.expression(node.value, _TEST), it.loops(node.generators)
    )


def _of_await(it: _Conversion, node: ast.Await) -> cst.Await:
    return _await(it.expression(node.value, _ATOM))


def _of_yield(it: _Conversion, node: ast.Yield) -> cst.Yield:
    return _yield(it.expression(node.value) if node.value is not None else None)


def _of_yield_from(it: _Conversion, node: ast.YieldFrom) -> cst.Yield:
    return _yield(_from(it.expression(node.value, _TEST)))


def _of_walrus(it: _Conversion, node: ast.NamedExpr) -> cst.NamedExpr:
    return _walrus(it.expression(node.target), it.expression(node.value, _TEST))


_EXPRESSIONS: dict[type[ast.expr], tuple[Callable[[_Conversion, Any], Any], int]] = {
    ast.Name: (_of_name, _ATOM),
    ast.Attribute: (_of_attribute, _ATOM),
    ast.Call: (_of_call, _ATOM),
    ast.Constant: (_of_constant, _ATOM),
    ast.Subscript: (_of_subscript, _ATOM),
    ast.BinOp: (_of_binary, -1),  # it depends on the operator
    ast.UnaryOp: (_of_unary, -1),
    ast.BoolOp: (_of_boolean, -1),
    ast.Compare: (_of_comparison, _COMPARISON),
    ast.IfExp: (_of_conditional, _TEST),
    ast.Lambda: (_of_lambda, _TEST),
    ast.Tuple: (_of_tuple, _TUPLE),
    ast.List: (_of_list, _ATOM),
    ast.Set: (_of_set, _ATOM),
    ast.Dict: (_of_dict, _ATOM),
    ast.GeneratorExp: (_of_generator, _ATOM),
    ast.ListComp: (_of_list_comprehension, _ATOM),
    ast.SetComp: (_of_set_comprehension, _ATOM),
    ast.DictComp: (_of_dict_comprehension, _ATOM),
    ast.JoinedStr: (_of_formatted, _ATOM),
    ast.Await: (_of_await, _AWAIT),
    ast.Yield: (_of_yield, _YIELD),
    ast.YieldFrom: (_of_yield_from, _YIELD),
    ast.NamedExpr: (_of_walrus, _WALRUS),
}
if hasattr(ast, "TemplateStr"):  # Python 3.14
    _EXPRESSIONS[ast.TemplateStr] = (_of_formatted, _ATOM)


# -- statements ------------------------------------------------------------------------------------------------------


def _of_expression(it: _Conversion, node: ast.Expr) -> cst.Expr:
    return _expression(it.expression(node.value))


def _of_assign(it: _Conversion, node: ast.Assign) -> cst.Assign:
    return _assign([_target(it.expression(target)) for target in node.targets], it.expression(node.value))


def _of_annotated(it: _Conversion, node: ast.AnnAssign) -> cst.AnnAssign:
    value = it.expression(node.value) if node.value is not None else None
    return _annotated(it.expression(node.target, _TEST), it.annotation(node.annotation), value)


def _of_augmented(it: _Conversion, node: ast.AugAssign) -> cst.AugAssign:
    return _augmented(it.expression(node.target), _OPERATORS[type(node.op)][1], it.expression(node.value))


def _of_return(it: _Conversion, node: ast.Return) -> cst.Return:
    return _return(it.expression(node.value, _TUPLE) if node.value is not None else None)


def _of_raise(it: _Conversion, node: ast.Raise) -> cst.Raise:
    cause = _from(it.expression(node.cause, _TEST)) if node.cause is not None else None
    return _raise(it.expression(node.exc, _TEST) if node.exc is not None else None, cause)


def _of_assert(it: _Conversion, node: ast.Assert) -> cst.Assert:
    return _assert(it.expression(node.test, _TEST), it.expression(node.msg, _TEST) if node.msg is not None else None)


def _of_del(it: _Conversion, node: ast.Delete) -> cst.Del:
    if len(node.targets) == 1:
        return _del(it.expression(node.targets[0], _TEST))
    return _del(_tuple(it.elements(node.targets)))


def _of_pass(it: _Conversion, node: ast.Pass) -> cst.Pass:
    return _pass()


def _of_break(it: _Conversion, node: ast.Break) -> cst.Break:
    return _break()


def _of_continue(it: _Conversion, node: ast.Continue) -> cst.Continue:
    return _continue()


def _of_global(it: _Conversion, node: ast.Global) -> cst.Global:
    return _global([_name_item(_name(name)) for name in node.names])


def _of_nonlocal(it: _Conversion, node: ast.Nonlocal) -> cst.Nonlocal:
    return _nonlocal([_name_item(_name(name)) for name in node.names])


def _dotted(path: str) -> cst.Name | cst.Attribute:
    first, *rest = path.split(".")
    made: cst.Name | cst.Attribute = _name(first)
    for name in rest:
        made = _attribute(made, _name(name))
    return made


def _aliases(names: Sequence[ast.alias]) -> list[cst.ImportAlias]:
    return [_alias(_dotted(one.name), _as_name(_name(one.asname)) if one.asname else None) for one in names]


def _of_import(it: _Conversion, node: ast.Import) -> cst.Import:
    return _import(_aliases(node.names))


def _of_import_from(it: _Conversion, node: ast.ImportFrom) -> cst.ImportFrom:
    names = _star_import() if node.names[0].name == "*" else _aliases(node.names)
    return _import_from(_dotted(node.module) if node.module else None, names, _DOTS[: node.level])


_SMALL: dict[type[ast.stmt], Callable[[_Conversion, Any], cst.BaseSmallStatement]] = {
    ast.Expr: _of_expression,
    ast.Assign: _of_assign,
    ast.AnnAssign: _of_annotated,
    ast.AugAssign: _of_augmented,
    ast.Return: _of_return,
    ast.Raise: _of_raise,
    ast.Assert: _of_assert,
    ast.Delete: _of_del,
    ast.Pass: _of_pass,
    ast.Break: _of_break,
    ast.Continue: _of_continue,
    ast.Global: _of_global,
    ast.Nonlocal: _of_nonlocal,
    ast.Import: _of_import,
    ast.ImportFrom: _of_import_from,
}


def _parsed(it: _Conversion, node: ast.stmt) -> cst.BaseStatement:
    """A statement as libcst parses it."""
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
    last = node.end_lineno or node.lineno
    text = without_form_feeds("".join(it.lines[first - it.first_row : last - it.first_row + 1]))
    if not text[0].isspace():
        return cast(cst.BaseStatement, cst.parse_module(text).body[0])
    outer = cst.parse_module(f"if _:\n{text}").body[0]
    assert isinstance(outer, cst.If)
    return cast(cst.BaseStatement, outer.body.body[0])


def _of_type_alias(it: _Conversion, node: ast.stmt) -> cst.BaseSmallStatement:
    parsed = cst.parse_statement(it.text(node))
    assert isinstance(parsed, cst.SimpleStatementLine)
    return parsed.body[0]


if hasattr(ast, "TypeAlias"):  # Python 3.12
    _SMALL[ast.TypeAlias] = _of_type_alias


def _of_if(it: _Conversion, node: ast.If) -> cst.If:
    orelse: cst.If | cst.Else | None = None
    if node.orelse:
        first = node.orelse[0]
        if isinstance(first, ast.If) and it.after(first).startswith("elif"):
            orelse = _of_if(it, first)
        else:
            orelse = it.other(node.orelse)
    return _if(it.expression(node.test, _TEST), it.suite(node.body), orelse)


def _of_for(it: _Conversion, node: ast.For | ast.AsyncFor) -> cst.For:
    return _for(
        it.expression(node.target),
        it.expression(node.iter, _TUPLE),
        it.suite(node.body),
        it.other(node.orelse),
        _ASYNCHRONOUS if isinstance(node, ast.AsyncFor) else None,
    )


def _of_while(it: _Conversion, node: ast.While) -> cst.While:
    return _while(it.expression(node.test, _TEST), it.suite(node.body), it.other(node.orelse))


def _of_with(it: _Conversion, node: ast.With | ast.AsyncWith) -> cst.With:
    items = [
        _with_item(
            it.expression(one.context_expr, _TEST),
            _as_name(it.expression(one.optional_vars, _ATOM)) if one.optional_vars is not None else None,
        )
        for one in node.items
    ]
    return _with(items, it.suite(node.body), _ASYNCHRONOUS if isinstance(node, ast.AsyncWith) else None)


def _of_try(it: _Conversion, node: ast.Try) -> cst.Try:
    return _try(
        it.suite(node.body),
        [
            _handler(
                it.suite(one.body),
                it.expression(one.type, _TEST) if one.type is not None else None,
                _as_name(_name(one.name)) if one.name else None,
            )
            for one in node.handlers
        ],
        it.other(node.orelse),
        _finally(it.suite(node.finalbody)) if node.finalbody else None,
    )


def _decorators(it: _Conversion, nodes: Sequence[ast.expr]) -> list[cst.Decorator]:
    return [_decorator(it.expression(node, _TEST)) for node in nodes]


def _of_function(it: _Conversion, node: ast.FunctionDef | ast.AsyncFunctionDef) -> cst.BaseStatement:
    if getattr(node, "type_params", None):
        return _parsed(it, node)
    return _function(
        _name(node.name),
        it.parameters(node.args),
        it.suite(node.body),
        _decorators(it, node.decorator_list),
        it.annotation(node.returns) if node.returns is not None else None,
        _ASYNCHRONOUS if isinstance(node, ast.AsyncFunctionDef) else None,
    )


def _of_class(it: _Conversion, node: ast.ClassDef) -> cst.BaseStatement:
    if getattr(node, "type_params", None):
        return _parsed(it, node)
    arguments = it.arguments(node.bases, node.keywords)
    bases = [one for one in arguments if one.keyword is None and one.star != "**"]
    keywords = [one for one in arguments if one.keyword is not None or one.star == "**"]
    return _class(_name(node.name), it.suite(node.body), bases, keywords, _decorators(it, node.decorator_list))


_COMPOUND: dict[type[ast.stmt], Callable[[_Conversion, Any], cst.BaseStatement]] = {
    ast.If: _of_if,
    ast.For: _of_for,
    ast.AsyncFor: _of_for,
    ast.While: _of_while,
    ast.With: _of_with,
    ast.AsyncWith: _of_with,
    ast.Try: _of_try,
    ast.FunctionDef: _of_function,
    ast.AsyncFunctionDef: _of_function,
    ast.ClassDef: _of_class,
}

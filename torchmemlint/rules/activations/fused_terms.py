"""What the arguments of the fused call are written with."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchmemlint.flow.program import Program
from torchmemlint.rules.activations.attention import axes
from torchmemlint.rules.activations.attention.stages import Kind, Stage, Step
from torchmemlint.syntax.outline import dotted

FAR_BELOW = -1e9  # a score of less adds nothing: `score + FAR_BELOW` and `FAR_BELOW` are the same to rounding


class NoCallError(Exception):
    """The fused function cannot be said, or not be proven, to compute the same."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A step on the way, and what it is taken under."""

    step: Step
    weights: bool
    test: ast.expr | None
    branch: ast.If | None


class Renaming(ast.NodeTransformer):
    """`scores.dtype` is `q.dtype`: matrix products keep dtypes."""

    def __init__(self, chain: set[str], query: ast.expr) -> None:
        self.chain = chain
        self.query = dotted(query)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`scores.dtype`, where the queries have a name."""
        own = isinstance(node.value, ast.Name) and node.value.id in self.chain
        if own and self.query and node.attr in ("dtype", "device"):
            return ast.parse(f"{self.query}.{node.attr}", mode="eval").body
        return self.generic_visit(node)


def in_order(weights: Stage) -> list[Taken]:
    """The steps from the product to the weights. Raises NoCallError where ways meet that are not one step left out."""
    found: list[Taken] = []
    stage = weights
    while stage.parents:
        if stage.step.kind is Kind.CHOICE:
            if len(stage.parents) != 2:
                raise NoCallError
            first, second = stage.parents
            longer, base = (first, second) if any(one is second for one in first.past()) else (second, first)
            if not any(one is base for one in longer.past()):
                raise NoCallError
            while longer is not base:
                branch = longer.path[-1] if longer.path else None
                if branch is None or len(longer.parents) != 1 or not isinstance(branch[0], ast.If) or branch[1] != 0:
                    raise NoCallError
                if longer.path[:-1] != base.path:
                    raise NoCallError
                found.append(Taken(longer.step, longer.weights, branch[0].test, branch[0]))
                longer = longer.parents[0]
            stage = base
            continue
        if len(stage.parents) != 1:
            raise NoCallError
        found.append(Taken(stage.step, stage.weights, None, None))
        stage = stage.parents[0]
    return [taken for taken in reversed(found) if taken.step.kind is not Kind.SWAP]


def exchanged(node: ast.expr) -> ast.expr:
    """What is left of an operand without an exchange of its last two axes."""
    found = axes.exchanged(node, {})
    return found if found is not None else node


def root_of(node: ast.expr | None, *, inverted: bool) -> ast.expr | None:
    """`width`, of `math.sqrt(width)` (or, inverted, of one over that) in its usual spellings."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math" | "np" | "numpy"), attr="sqrt"), args=[width]) if (
            not inverted
        ):
            return width
        case ast.BinOp(left=width, op=ast.Pow(), right=ast.Constant(value=0.5)) if not inverted:
            return width
        case ast.BinOp(left=width, op=ast.Pow(), right=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=0.5))):
            return width if inverted else None
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Div(), right=right) if inverted:
            return root_of(right, inverted=False)
    return None


def number(node: ast.expr | None, program: Program) -> float | None:
    """The value that fills, where it is a number that can be told, or the least of a dtype."""
    match node:
        case ast.Constant(value=int() | float() as literal):
            return float(literal)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            if isinstance(operand, ast.Attribute) and operand.attr == "max" and is_finfo(operand.value, program):
                return float("-1e38")
            value = number(operand, program)
            return -value if value is not None else None
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(text))]):
            return {"inf": float("inf"), "-inf": float("-inf")}.get(text.lower().replace("infinity", "inf"))
        case ast.Attribute(attr="inf"):
            return float("inf") if program.qualify(dotted(node)) in ("math.inf", "torch.inf", "numpy.inf") else None
        case ast.Attribute(attr="min", value=value) if is_finfo(value, program):
            return float("-1e38")
    return None


def is_finfo(node: ast.expr, program: Program) -> bool:
    """Is it `torch.finfo(...)`?"""
    return isinstance(node, ast.Call) and program.qualify(dotted(node.func)) == "torch.finfo"


def is_boolean(node: ast.expr) -> bool:
    """Is a condition a tensor of booleans for certain?"""
    match node:
        case ast.Compare():
            return True
        case ast.UnaryOp(op=ast.Invert()) | ast.Call(func=ast.Attribute(attr="bool" | "logical_not")):
            return True
    return False


def denied(node: ast.expr, text: str) -> str:
    """The opposite of a condition, as a boolean tensor."""
    match node:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return text.replace("==", "!=") if text.count("==") == 1 else f"{ast.unparse(left)} != {ast.unparse(right)}"
        case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]):
            return text.replace("!=", "==") if text.count("!=") == 1 else f"{ast.unparse(left)} == {ast.unparse(right)}"
        case ast.UnaryOp(op=ast.Invert()) if text.startswith("~"):
            return text[1:].strip()
    return f"{bracketed(text)}.logical_not()"


def bracketed(text: str, node: ast.expr | None = None) -> str:
    """The text of an expression, in brackets where something is to be applied to it."""
    node = node if node is not None else ast.parse(text, mode="eval").body
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant) else f"({text})"


def applied(text: str, method: str) -> str:
    """A method called on an expression."""
    return bracketed(text) + method


def permuted(text: str, order: str, wanted: str) -> str:
    """A tensor with its axes in another order; with an empty text only what does it."""
    if sorted(order) != sorted(wanted):
        raise NoCallError
    if order == wanted:
        return text
    moved = [index for index, (one, other) in enumerate(zip(order, wanted, strict=True)) if one != other]
    places = ", ".join(map(str, moved)) if len(moved) == 2 else ", ".join(str(order.index(letter)) for letter in wanted)
    method = f".{'transpose' if len(moved) == 2 else 'permute'}({places})"
    return applied(text, method) if text else method


def bound(statement: ast.stmt) -> str:
    """The one local name that a statement binds or changes, and does nothing else."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            return name
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name
    return ""

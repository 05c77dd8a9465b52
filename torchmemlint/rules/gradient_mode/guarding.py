"""Fixes that run code with gradients off: a decorator on the function, or a `with` around statements.

Where the code keeps something that later code may differentiate, such a fix is no safe one; where it would take in more
than it is for, none is made, and a hint says why.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Sequence

from torchmemlint.findings import Applicability, Edit, Fix, Position, Span
from torchmemlint.flow import inner_gradients
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.program import Function
from torchmemlint.flow.values import Origin
from torchmemlint.knowledge import torch_api
from torchmemlint.rules.gradient_mode import side_effects
from torchmemlint.rules.gradient_mode.side_effects import Stored
from torchmemlint.syntax.outline import dotted
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened

_HINT = Applicability.HINT
_IMPORTS_PART = re.compile(r"import torch\.|from torch(?:\.[\w.]+)? import\b")


def no_grad_name(facts: FileFacts) -> str | None:
    """How this file can spell `torch.no_grad`, None where it imports neither torch nor that."""
    for name, qualified in facts.program.imported.items():
        if qualified in facts.program.contracts.off and qualified.endswith("no_grad"):
            return name
    for name, qualified in facts.program.imported.items():
        if qualified == "torch":
            return f"{name}.no_grad"
    return None


def _spelled(facts: FileFacts, row: int) -> tuple[str, tuple[Edit, ...]] | None:
    """How to write `torch.no_grad` in a row, with the import that this takes: beside one of another part of torch.

    None where nothing of torch is imported above.
    """
    name = no_grad_name(facts)
    if name is not None:
        return name, ()
    if facts.program.defines("torch"):
        return None
    for piece in facts.source.pieces:
        if piece.first_row < row and _IMPORTS_PART.match(_line(facts, piece.first_row)):
            return "torch.no_grad", (Edit(_at(piece.first_row, 1), "import torch\n"),)
    return None


def without_gradients(
    facts: FileFacts, span: Span, row: int | None, beside: Sequence[Span], *, wholly: bool, certain: bool
) -> Fix | None:
    """Run a forward pass at `span`, of which it is `certain` or not that it needs no gradients, with gradients off.

    `row` is where the function around it begins, if there is one, and `beside` is what in that needs gradients.
    `wholly`: the function may run without gradients.
    """
    applicability = Applicability.SAFE if certain else Applicability.UNSAFE
    function = facts.program.function_at(row) if row is not None else None
    wasted = next((one.origin for one in facts.passes_at(span)), None)
    if wholly and function is not None and not _may_differentiate(facts, function, span):
        fix = decorate(facts, function, applicability, wasted=wasted)
        if fix is not None:
            return fix
    statement = facts.source.statement_span(span)
    trained = next((other for other in beside if statement.contains(other)), None)
    if trained is not None:
        return _hint(f"`{shortened(trained.text(facts.source.rows), 40)}` needs gradients")
    parsed = side_effects.parsed(facts, statement)
    if parsed is None or len(parsed) != 1 or not _only_runs(parsed[0], facts, span):
        applicability = Applicability.UNSAFE
    return wrap(facts, function, statement, applicability, wasted=wasted)


def _may_differentiate(facts: FileFacts, function: Function, span: Span) -> bool:
    """May a function that runs a pass at `span` take gradients, or hand the network to what does?"""
    call = _expression(facts, span)
    network = dotted(call.func) if isinstance(call, ast.Call) else ""
    program = facts.program
    return inner_gradients.may_take(function, program) or inner_gradients.hands_out(function, program, network)


def _expression(facts: FileFacts, span: Span) -> ast.expr:
    return ast.parse(f"({span.text(facts.source.rows)})", mode="eval").body


def _only_runs(statement: ast.stmt, facts: FileFacts, span: Span) -> bool:
    """Does all that a statement gives come from a pass at `span`, so that it needs no gradients either?

    What is computed of a pass without anything that cuts its graph would be differentiated if the pass was.
    """
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr) or statement.value is None:
        return False
    wanted = ast.unparse(_expression(facts, span))
    node: ast.expr = statement.value
    mixed = False  # with something else
    while ast.unparse(node) != wanted:
        match node:
            case ast.Attribute(value=inner, attr=name) if not (mixed and name in _CUTTING):
                node = inner
            case ast.Subscript(value=inner) | ast.Call(func=inner):
                node = inner
            case ast.UnaryOp(operand=inner):
                node, mixed = inner, True
            case ast.BinOp(left=left, right=right):
                inside = [side for side in (left, right) if wanted in ast.unparse(side)]
                if len(inside) != 1:
                    return False
                node, mixed = inside[0], True
            case _:
                return False
    return True


_CUTTING = torch_api.CUTS | torch_api.READERS | torch_api.DISCRETE | torch_api.DISCRETE_TYPES | {"data"}


def decorate(
    facts: FileFacts, function: Function, applicability: Applicability, *, wasted: Origin | None = None
) -> Fix | None:
    """`@torch.no_grad()` on the function; not on coroutines, which the decorator would not cover."""
    start = Site(function.piece, function.node).span.start
    spelled = _spelled(facts, start.row)
    if spelled is None or function.node.asynchronous is not None or function.parent is not None:
        return None
    line = _line(facts, start.row)
    indent = line[: start.column - 1]
    if indent.strip():
        return None
    name, importing = spelled
    added = Edit(_at(start.row, 1), f"{indent}@{name}()\n")
    stored = None
    if applicability is Applicability.SAFE:
        whole = Site(function.piece, function.node).span
        stored = side_effects.of_function(facts, function) or side_effects.differentiated(facts, whole, wasted)
    message, applicability = _with_doubt(f"Run `{function.name}` with gradients off", applicability, stored)
    return Fix(message, applicability, (*importing, added))


def wrap(
    facts: FileFacts,
    function: Function | None,
    statement: Span,
    applicability: Applicability,
    *,
    wasted: Origin | None = None,
) -> Fix | None:
    """`with torch.no_grad():` around whole statements of a function, or of the file, that stand on lines of their own.

    A hint where the lines hold something else that has to stay out of it. `wasted` is a forward pass of which it is
    known that its gradients are not needed, though they are computed.
    """
    spelled = _spelled(facts, statement.start.row)
    if spelled is None:
        return None
    name, importing = spelled
    first, last = statement.start.row, statement.end.row
    lines = [_line(facts, row) for row in range(first, last + 1)]
    indent = lines[0][: statement.start.column - 1]
    if indent.strip() or not lines or not _indentable(lines):
        return None
    reason = _keeps_out(facts, statement)
    if reason is not None:
        return _hint(reason)
    stored = None
    if applicability is Applicability.SAFE:
        stored = side_effects.of_statements(facts, function, statement)
        stored = stored or side_effects.differentiated(facts, statement, wasted)
    edits = [Edit(_at(first, 1), f"{indent}with {name}():\n")]
    step = "\t" if "\t" in indent else "    "
    edits[0] = Edit(_at(first, 1), f"{indent}with {name}():\n{step}")
    edits += [Edit(_at(row, 1), step) for row, line in enumerate(lines[1:], first + 1) if line.strip()]
    message, applicability = _with_doubt("Run it with gradients off", applicability, stored)
    return Fix(message, applicability, (*importing, *edits))


def _hint(reason: str) -> Fix:
    return Fix(f"Run the forward pass under `torch.no_grad()`, in a statement of its own: {reason}", _HINT)


def _with_doubt(message: str, applicability: Applicability, stored: Stored | None) -> tuple[str, Applicability]:
    """A fix's message and how far it may be trusted, given what the code keeps beside its results."""
    if stored is None:
        return message, applicability
    return f"{message} (`{stored}` would have no graph then)", Applicability.UNSAFE


def _keeps_out(facts: FileFacts, statement: Span) -> str | None:
    """Why whole rows must not be run with gradients off."""
    if not ends_its_row(facts, statement):
        return "another statement shares its line"
    parsed = side_effects.parsed(facts, statement)
    if parsed is None:
        return "its lines hold more than that statement"
    for node in (node for one in parsed for node in ast.walk(one)):
        match node:
            case ast.Await() | ast.AsyncFor() | ast.AsyncWith() | ast.comprehension(is_async=1):
                return "other tasks run while it waits, and would run without gradients"
            case ast.Yield() | ast.YieldFrom():
                return "the code that is yielded to would run without gradients"
            case ast.NamedExpr(target=ast.Name(id=name)) if node not in _of_loops(parsed):
                return f"it also assigns `{name}`"
    for one in parsed:
        for target in one.targets if isinstance(one, ast.Assign) else ():
            if any(isinstance(node, ast.Call) for node in ast.walk(target)):
                return "it also calls what its target is made of"
    return None


def ends_its_row(facts: FileFacts, statement: Span) -> bool:
    """Does nothing but a comment stand behind a statement on its last row?"""
    rest = _line(facts, statement.end.row)[statement.end.column - 1 :].strip()
    return not rest or rest.startswith("#")


def _of_loops(statements: list[ast.stmt]) -> set[ast.AST]:
    """What stands in blocks, whose names are looked at as those of any other statement."""
    blocks = [one for one in statements if isinstance(one, ast.For | ast.While)]
    return {node for block in blocks for node in ast.walk(block)}


def _at(row: int, column: int) -> Span:
    return Span(Position(row, column), Position(row, column))


def _line(facts: FileFacts, row: int) -> str:
    lines = facts.source.rows
    return lines[row - 1] if 0 < row <= len(lines) else ""


def _indentable(lines: list[str]) -> bool:
    """Would moving these lines to the right change a string that spans several of them?"""
    import textwrap

    text = textwrap.dedent("\n".join(lines)) + "\n"
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return False
    multiline = {getattr(tokenize, "FSTRING_MIDDLE", -1), tokenize.STRING}
    return not any(t.type in multiline and t.start[0] != t.end[0] for t in tokens)

"""Fixes that run code with gradients off: a decorator on the function, or a `with` around statements.

Where the code keeps something that later code may differentiate, such a fix is no safe one; where it would take in more
than it is for, none is made, and a hint says why.
"""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from torchmemlint.doubts import is_sure
from torchmemlint.findings import Applicability, Edit, Fix, Position, Span
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.facts import FileFacts
from torchmemlint.knowledge import torch_api
from torchmemlint.rules.separating import separated, step_of
from torchmemlint.rules.told import Told
from torchmemlint.rules.undetaching import needless_detaching
from torchmemlint.syntax import standard
from torchmemlint.syntax.text import shortened

_HINT = Applicability.HINT
_DEFINITION = re.compile(r"(\s*)def (\w+)")


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
    block = _imports_of_torch(facts, row)
    if not block:
        return None
    plain = [one for one in block if isinstance(one, ast.Import)]
    later = [one for one in plain if one.names[0].name.lower() > "torch"]
    leading = next((one for one in block if isinstance(one, ast.ImportFrom)), None)
    if later:
        at = later[0].lineno
    elif plain and (leading is None or plain[-1].lineno < leading.lineno):
        at = (plain[-1].end_lineno or plain[-1].lineno) + 1
    else:  # `import` does not come first here
        at = next(one for one in block if _is_of_torch(one)).lineno if plain or leading is None else leading.lineno
    return "torch.no_grad", (Edit(_at(at, 1), "import torch\n"),)


def _imports_of_torch(facts: FileFacts, row: int) -> list[ast.Import | ast.ImportFrom]:
    """The imports above a row, on lines that follow each other, among which the first of a part of torch is."""
    block: list[ast.Import | ast.ImportFrom] = []
    for one in facts.source.statements:
        if one.lineno >= row:
            break
        follows = bool(block) and one.lineno == (block[-1].end_lineno or 0) + 1
        if not follows and any(map(_is_of_torch, block)):
            break
        block = block if follows else []
        if isinstance(one, ast.Import | ast.ImportFrom):
            block.append(one)
    return block if any(map(_is_of_torch, block)) else []


def _is_of_torch(statement: ast.Import | ast.ImportFrom) -> bool:
    names = [one.name for one in statement.names] if isinstance(statement, ast.Import) else [statement.module or ""]
    return any(name.split(".")[0] == "torch" for name in names)


def without_gradients(told: Told, *, wholly: bool) -> Fix | None:
    """Run a forward pass that needs no gradients with gradients off.

    `wholly`: may the function around it, too, if nothing in that needs any?
    """
    narrow = around_statements([told])
    around = around_function(told) if wholly else None
    return replace(around, narrower=narrow) if around is not None else narrow


def _best(told: Told) -> Applicability:
    program = told.facts.program
    spelled = {name for name, of in program.imported.items() if of in _LATER}
    spelled |= {f"{name}.{_LATER[of]}" for name, of in program.imported.items() if of in _LATER}
    spelled |= {name for name in _RUNNERS if not program.defines(name)}
    unseen = _runs_unseen(tuple(told.facts.source.statements), frozenset(spelled))
    return Applicability.SAFE if is_sure(told.doubts) and not unseen else Applicability.UNSAFE


@lru_cache(maxsize=8)
def _runs_unseen(body: tuple[ast.stmt, ...], runners: frozenset[str]) -> bool:
    """May code of a file that stores something, or trains, run where no call of it is written?"""
    nodes = [node for one in body for node in ast.walk(one)]
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    for node in nodes:
        match node:
            case ast.Call(func=func) if isinstance(func, ast.Name | ast.Attribute) and ast.unparse(func) in runners:
                return True
            case ast.ClassDef(bases=bases, body=methods):
                is_meta = any(isinstance(base, ast.Name) and base.id == "type" for base in bases)
                if any(_runs_by_itself(one, is_meta) and _leaves_something(one, functions) for one in methods):
                    return True
    return False


def _runs_by_itself(method: ast.stmt, is_meta: bool) -> bool:
    """Is it a method that Python calls where that is not written, and the analysis does not follow?"""
    if not isinstance(method, ast.FunctionDef) or not (method.name.startswith("__") and method.name.endswith("__")):
        return False
    return is_meta or method.name not in _FOLLOWED


def _leaves_something(method: ast.stmt, functions: Mapping[str, ast.FunctionDef]) -> bool:
    """Does a method store what others may find, of what a call gives, or differentiate something?

    What it calls of the file may do so for it.
    """
    todo, seen = [method], {method}
    while todo:
        for node in ast.walk(todo.pop()):
            match node:
                case ast.Assign(targets=targets, value=ast.Call()) if any(
                    isinstance(target, ast.Attribute | ast.Subscript) for target in targets
                ):
                    return True
                case ast.Global() | ast.Attribute(attr="backward"):
                    return True
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                    called = functions.get(name)
                    if called is not None and called not in seen:
                        seen.add(called)
                        todo.append(called)
    return False


_RUNNERS = frozenset({"exec", "eval"})
_LATER = {"weakref": "finalize", "weakref.finalize": "finalize"}  # what runs when an object goes
_FOLLOWED = frozenset(
    f"__{name}__"
    for name in (
        "init call enter exit getitem setitem missing iter next getattr get post_init add sub mul matmul".split()
    )
)


def around_function(told: Told) -> Fix | None:
    """Run the function around a pass with gradients off, if nothing in it needs any."""
    function = told.case.function
    return _decorate(told, function, _best(told)) if function is not None and not told.case.beside else None


def around_statements(passes: Sequence[Told]) -> Fix | None:
    """Run the statements of some passes with gradients off; they follow each other."""
    facts, applicability = passes[0].facts, _best(passes[0])
    for told in passes:
        statement = told.statement
        if told.case.function is not None and statement.contains(told.span_of(told.case.function)):
            return _hint("a `lambda` runs it, wherever that is called")
        beside = map(told.span_of, told.case.beside)
        trained = next((other for other in beside if statement.contains(other)), None)
        if trained is not None:
            return _hint(f"`{shortened(trained.text(facts.source.rows), 40)}` needs gradients")
        parsed = _parsed(facts, statement)
        if parsed is None or len(parsed) != 1 or not _only_runs(parsed[0], facts, told.span):
            applicability = Applicability.UNSAFE
    if len(passes) > 1 and not all(_is_alone(facts, told.statement) for told in passes):
        return None
    region = Span(passes[0].statement.start, passes[-1].statement.end)
    needless = tuple(edit for told in passes for edit in needless_detaching(told))
    return wrap(facts, region, applicability, besides=needless)


def _only_runs(statement: ast.stmt, facts: FileFacts, span: Span) -> bool:
    """Does all that a statement gives come from a pass at `span`, so that it needs no gradients either?

    What is computed of a pass without anything that cuts its graph would be differentiated if the pass was.
    """
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr) or statement.value is None:
        return False
    wanted = ast.unparse(standard.expression(span.text(facts.source.rows)))
    node: ast.expr = statement.value
    mixed = False  # with something else
    while ast.unparse(node) != wanted:
        match node:
            case ast.Attribute(value=inner, attr=name) if not (mixed and name in torch_api.GRAPHLESS):
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


def _decorate(told: Told, function: Place, applicability: Applicability) -> Fix | None:
    """`@torch.no_grad()` on the function; not on coroutines, which the decorator would not cover."""
    facts, row = told.facts, function.span[0]
    line = _line(facts, row)
    spelled, definition = _spelled(facts, row), _DEFINITION.match(line)
    if spelled is None or definition is None:
        return None
    indent, function_name = definition.groups()
    name, importing = spelled
    added = Edit(_at(row, 1), f"{indent}@{name}()\n")
    return Fix(f"Decorate `{function_name}` with `@torch.no_grad()`", applicability, (*importing, added))


def wrap(
    facts: FileFacts,
    statement: Span,
    applicability: Applicability,
    *,
    besides: tuple[Edit, ...] = (),
) -> Fix | None:
    """`with torch.no_grad():` around whole statements of a function, or of the file.

    A statement that shares its line gets lines of its own. A hint where something within has to stay out of it.
    `besides` are edits to make, too.
    """
    spelled = _spelled(facts, statement.start.row)
    if spelled is None or not _can_move(facts, statement):
        return None
    name, importing = spelled
    reason = _keeps_out(facts, statement)
    if reason is not None:
        return _hint(reason)
    edits = put_under(facts, statement, f"{name}()", besides=besides)
    if not edits:
        return _hint("another statement shares its line")
    return Fix("Wrap in `torch.no_grad()`", applicability, (*importing, *edits, *besides))


def put_under(facts: FileFacts, statement: Span, context: str, *, besides: tuple[Edit, ...] = ()) -> tuple[Edit, ...]:
    """Edits that put `with context:` around whole statements; () where these cannot be moved to the right.

    `besides` are edits to make, too: rows that they join are left alone.
    """
    if not _can_move(facts, statement):
        return ()
    first, last = statement.start.row, statement.end.row
    lines = [_line(facts, row) for row in range(first, last + 1)]
    own = None if _is_alone(facts, statement) else separated(facts, statement)
    indent = own.indent if own is not None else lines[0][: statement.start.column - 1]
    if indent.strip():
        return ()
    step = step_of(facts, statement)
    head = f"with {context}:\n{indent}{step}"
    edits = list(own.led_by(head)) if own is not None else [Edit(_at(first, 1), f"{indent}with {context}:\n{step}")]
    joined = {row for edit in besides for row in range(edit.span.start.row + 1, edit.span.end.row + 1)}
    rows = [row for row, line in enumerate(lines[1:], first + 1) if line.strip() and row not in joined]
    return (*edits, *(Edit(_at(row, 1), step) for row in rows))


def _can_move(facts: FileFacts, statement: Span) -> bool:
    """May the rows of a statement be moved to the right?"""
    lines = [_line(facts, row) for row in range(statement.start.row, statement.end.row + 1)]
    return bool(lines) and _indentable(lines)


def _hint(reason: str) -> Fix:
    return Fix(f"Run the forward pass under `torch.no_grad()`, in a statement of its own: {reason}", _HINT)


def _parsed(facts: FileFacts, span: Span) -> list[ast.stmt] | None:
    """The statements of a span; None where it is no whole statements."""
    before = _line(facts, span.start.row)[: span.start.column - 1]
    try:
        text = span.text(facts.source.rows)
        return standard.parse(textwrap.dedent(text if before.strip() else before + text)).body
    except SyntaxError:  # a `return` or `await` parses anywhere: a part of a statement
        return None


def _keeps_out(facts: FileFacts, statement: Span) -> str | None:
    """Why statements must not be run with gradients off."""
    parsed = _parsed(facts, statement)
    if parsed is None:
        return "its line holds another statement"
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


def _is_alone(facts: FileFacts, statement: Span) -> bool:
    """Are the rows of a statement its own, but for a comment?"""
    before = _line(facts, statement.start.row)[: statement.start.column - 1]
    return not before.strip() and ends_its_row(facts, statement)


def ends_its_row(facts: FileFacts, statement: Span) -> bool:
    """Does nothing but a comment stand behind a statement on its last row?"""
    rest = _line(facts, statement.end.row)[statement.end.column - 1 :].strip()
    return not rest or rest.startswith("#")


def _of_loops(parsed: list[ast.stmt]) -> set[ast.AST]:
    """What stands in blocks, whose names are looked at as those of any other statement."""
    blocks = [one for one in parsed if isinstance(one, ast.For | ast.While)]
    return {node for block in blocks for node in ast.walk(block)}


def _at(row: int, column: int) -> Span:
    return Span(Position(row, column), Position(row, column))


def _line(facts: FileFacts, row: int) -> str:
    lines = facts.source.rows
    return lines[row - 1] if 0 < row <= len(lines) else ""


def _indentable(lines: list[str]) -> bool:
    """Would moving these lines to the right change a string that spans several of them?"""
    text = textwrap.dedent("\n".join(lines)) + "\n"
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return False
    multiline = {getattr(tokenize, "FSTRING_MIDDLE", -1), tokenize.STRING}
    return not any(t.type in multiline and t.start[0] != t.end[0] for t in tokens)

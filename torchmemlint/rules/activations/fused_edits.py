"""The edits that put a call of `F.scaled_dot_product_attention` in the place of an attention written out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.rules.activations import fused_terms as terms
from torchmemlint.rules.activations.attention.stages import Attention, Kind
from torchmemlint.rules.activations.fused_call import Call
from torchmemlint.syntax.outline import dotted

WIDTH = 100  # a longer call is written over several lines


def edits(found: Attention, rows: Sequence[str], *, with_scale: bool) -> tuple[Edit, ...]:
    """Edits that replace the attention by a call of the fused function; () where none can be given.

    `with_scale`: does the oldest torch in use have the argument `scale`?
    """
    try:
        return _Rewriting(found, rows, with_scale).edits()
    except terms.NoCallError:
        return ()


class _Rewriting:
    def __init__(self, found: Attention, rows: Sequence[str], with_scale: bool) -> None:
        self.found = found
        self.rows = rows
        self.call = Call(found, rows, with_scale=with_scale)

    def edits(self) -> tuple[Edit, ...]:
        dropped = self._dropped()
        written = self.call.written()
        self._check_names(dropped)
        span = self._span_with_brackets()
        return (*self._removals(dropped), Edit(span, self._laid_out(written, span)))

    def _dropped(self) -> list[ast.stmt]:
        """The statements that go: all that lead to the weights, but for the one with the result."""
        block = _block(self.found.function, self.found.statement)
        if block is None:
            raise terms.NoCallError
        leading: list[ast.stmt] = []
        for stage in self.found.weights.past():
            known = any(stage.statement is other for other in [*leading, self.found.statement])
            if stage.step.kind is not Kind.CHOICE and not known:
                leading.append(stage.statement)
        dropped: list[ast.stmt] = []
        for statement in leading:
            if not terms.bound(statement):
                raise terms.NoCallError
            if any(statement is other for other in block):
                around = statement
            else:
                around = next(
                    (other for other in block if isinstance(other, ast.If) and any(statement is s for s in other.body)),
                    statement,
                )
                if not isinstance(around, ast.If) or around.orelse:
                    raise terms.NoCallError
                if any(not any(inner is one for one in leading) for inner in around.body):
                    raise terms.NoCallError
            if not any(around is other for other in dropped):
                dropped.append(around)
        return sorted(dropped, key=lambda statement: statement.lineno)

    def _check_names(self, dropped: list[ast.stmt]) -> None:
        """What is evaluated later than before must mean the same there, and what goes must not be asked for."""
        used = {name for node in self.call.moved for name in _names(node)}
        own = self.call.chain & used
        if any(name not in _only_dtypes(self.call.moved, own) for name in own):
            raise terms.NoCallError
        first = min([*(statement.lineno for statement in dropped), self.found.statement.lineno])
        last = self.found.statement.end_lineno or self.found.statement.lineno
        final = terms.bound(self.found.statement)
        gone = [inner for statement in dropped for inner in ast.walk(statement)]
        gone += list(ast.walk(self.found.node))
        kept = {id(node) for node in gone}
        stored_after: dict[str, int] = {}
        for node in ast.walk(self.found.function):
            if id(node) in kept:
                continue
            match node:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del(), lineno=row):
                    if name in self.call.chain and isinstance(node.ctx, ast.Del):
                        raise terms.NoCallError
                    if first <= row <= last and name in used and row < self.found.statement.lineno:
                        self._check_before_use(name, row)
                    if row > last:
                        stored_after[name] = min(row, stored_after.get(name, row))
                case ast.Call(func=ast.Attribute(value=owner, attr=method), lineno=row):
                    if (
                        method.endswith("_")
                        and not method.endswith("__")
                        and first <= row <= last
                        and dotted(owner) in used
                    ):
                        raise terms.NoCallError
        for node in ast.walk(self.found.function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in kept:
                if node.id not in self.call.chain or node.lineno < first:
                    continue
                renewed = final == node.id or stored_after.get(node.id, node.lineno + 1) <= node.lineno
                if node.lineno <= last or not renewed:
                    raise terms.NoCallError

    def _check_before_use(self, name: str, row: int) -> None:
        """A name may be bound between the statements only before any of what is moved reads it."""
        for node in self.call.moved:
            if name in _names(node) and node.lineno <= row:
                raise terms.NoCallError

    def _removals(self, dropped: list[ast.stmt]) -> Iterator[Edit]:
        groups: list[tuple[int, int]] = []
        for statement in dropped:
            first, last = statement.lineno, statement.end_lineno or statement.lineno
            before = self.rows[first - 1].encode()[: statement.col_offset].decode()
            after = self.rows[last - 1].encode()[statement.end_col_offset or 0 :].decode().strip()
            if before.strip() or (after and not after.startswith("#")):
                raise terms.NoCallError
            if groups and all(not self.rows[row].strip() for row in range(groups[-1][1], first - 1)):
                groups[-1] = (groups[-1][0], last)
            else:
                groups.append((first, last))
        for first, last in groups:
            blank_before = first < 2 or not self.rows[first - 2].strip()
            if blank_before and last < len(self.rows) and not self.rows[last].strip():
                last += 1
            yield Edit(Span(Position(first, 1), Position(last + 1, 1)), "")

    def _span_with_brackets(self) -> Span:
        """Of the weighted sum, with the brackets that only a method called on it needed."""
        node = self.found.node
        start, end = self._start(node), self._end(node)
        for outer in ast.walk(self.found.statement):
            if isinstance(outer, ast.Attribute) and outer.value is node and self._start(outer) < start:
                start = self._start(outer)
                row, column = end.row, end.column
                while self.rows[row - 1][column - 1 : column] != ")":
                    row, column = (row, column + 1) if column <= len(self.rows[row - 1]) else (row + 1, 1)
                end = Position(row, column + 1)
        return Span(start, end)

    def _start(self, node: ast.expr) -> Position:
        return Position(node.lineno, len(self.rows[node.lineno - 1].encode()[: node.col_offset].decode()) + 1)

    def _end(self, node: ast.expr) -> Position:
        row, column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return Position(row, len(self.rows[row - 1].encode()[:column].decode()) + 1)

    def _laid_out(self, call: tuple[str, list[str], str], span: Span) -> str:
        function, arguments, after = call
        line = f"{function}({', '.join(arguments)}){after}"
        rest = len(self.rows[span.end.row - 1]) - span.end.column + 1
        if span.start.column - 1 + len(line) + rest <= WIDTH:
            return line
        row = self.rows[span.start.row - 1]
        blank = row[: len(row) - len(row.lstrip())]
        inner = "".join(f"{blank}    {argument},\n" for argument in arguments)
        return f"{function}(\n{inner}{blank}){after}"


def _only_dtypes(nodes: list[ast.expr], names: set[str]) -> set[str]:
    """Those of the names of which the expressions read nothing but the dtype and device."""
    asked: dict[str, int] = {}
    read: dict[str, int] = {}
    for node in nodes:
        for inner in ast.walk(node):
            match inner:
                case ast.Attribute(value=ast.Name(id=name), attr="dtype" | "device"):
                    asked[name] = asked.get(name, 0) + 1
                case ast.Name(id=name):
                    read[name] = read.get(name, 0) + 1
    return {name for name in names if asked.get(name, 0) == read.get(name, 0)}


def _block(function: ast.AST, statement: ast.stmt) -> list[ast.stmt] | None:
    """The block that a statement stands in."""
    for node in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and any(inner is statement for inner in block):
                return block
    return None


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}

"""Who a finding is: an identity that outlives moves, renames and formatters, told from the syntax around it.

A fingerprint is `SSSSSSSSTTTTTTTT:n`, three things in one text:

- `S` for the rule and the expression that the finding points at,
- `T` for the rule and the statement that this stands in (of a compound statement, its header),
- `n` counts those of a file that are equal in both, from 1, as in the line hashes of code scanning.

What a formatter changes (line breaks, quotes, brackets, trailing commas, comments) is not in the syntax tree, and
neither rows nor the names of the file, the function and the class are in the fingerprint. Nothing in it depends on the
release of Python: trees are written out here, not by `ast.dump`.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from torchmemlint.findings import Finding, Position, Span
from torchmemlint.source.decoding import lines_of

_HALF = 8  # hexadecimal digits
_BODIES = frozenset(("body", "orelse", "handlers", "finalbody", "cases", "decorator_list"))  # of statements
_IGNORED = frozenset(("ctx", "kind", "type_comment", "type_ignores"))


def core(fingerprint: str) -> str:
    """The part that is equal for findings that look the same."""
    return fingerprint.partition(":")[0]


def subject(fingerprint: str) -> str:
    """The part that an edit of the statement around the expression leaves alone."""
    return fingerprint[:_HALF]


def with_fingerprints(findings: Sequence[Finding], text: str) -> list[Finding]:
    """The findings of a text, which are in order, with their fingerprints."""
    lines = lines_of(text)
    seen: Counter[str] = Counter()
    marked = []
    for finding in findings:
        mark, line = _identity(finding, lines), _by_line(finding, lines)
        seen.update((mark, line))
        former = _digest(line, str(seen[line] - 1), length=16)
        marked.append(replace(finding, fingerprint=f"{mark}:{seen[mark]}", former_fingerprint=former))
    return marked


def _by_line(finding: Finding, lines: Sequence[str]) -> str:
    """What the first files of measurements went by: the rule, the file's name and the line's text."""
    return "\0".join((finding.code, finding.filename.name, " ".join(_row(lines, finding.span.start.row).split())))


def _identity(finding: Finding, lines: Sequence[str]) -> str:
    expression, statement = _told(finding, lines)
    return _digest(finding.code, expression) + _digest(finding.code, "in", statement)


def _digest(*parts: str, length: int = _HALF) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:length]


def _told(finding: Finding, lines: Sequence[str]) -> tuple[str, str]:
    """The expression and the statement, written in a way that does not change with their layout."""
    if finding.statement.start == finding.statement.end:  # what cannot be parsed
        line = _squeezed(_row(lines, finding.statement.start.row))
        return line, line
    text = _text(lines, finding.statement)
    try:
        parsed = _parse(text)
        if parsed is not None and parsed[0]:
            statements, rows, cut = parsed
            origin, span = finding.statement.start, finding.span
            start, end = (_byte_place(place, origin, rows, cut) for place in (span.start, span.end))
            inside = [_written(node) for node in _outermost(statements, start, end)]
            whole = " ".join(map(_written, statements))
            return " ".join(inside) or whole, whole
    except RecursionError:
        pass
    return _squeezed(_text(lines, finding.span)), _squeezed(text)  # a comment, or half a statement


# -- the text ---------------------------------------------------------------------------------------------------------


def _row(lines: Sequence[str], row: int) -> str:
    return lines[row - 1] if 1 <= row <= len(lines) else ""


def _text(lines: Sequence[str], span: Span) -> str:
    start, end = span.start, span.end
    if start.row == end.row:
        return _row(lines, start.row)[start.column - 1 : end.column - 1]
    between = (_row(lines, row) for row in range(start.row + 1, end.row))
    return "\n".join((_row(lines, start.row)[start.column - 1 :], *between, _row(lines, end.row)[: end.column - 1]))


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _parse(text: str) -> tuple[list[ast.stmt], list[str], int] | None:
    """The statements of a text, its rows, and how many characters were cut from its first; None where it is none."""
    cut = 2 if text.startswith("elif") else 0
    text = text[cut:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's strings
        for candidate in (text, f"{text}\n pass"):  # a header lacks its body
            try:
                return ast.parse(candidate).body, candidate.split("\n"), cut
            except (SyntaxError, ValueError, RecursionError, MemoryError):  # noqa: PERF203
                continue
    return None


def _byte_place(place: Position, origin: Position, rows: Sequence[str], cut: int) -> tuple[int, int]:
    """A place of the file as row and column of the parsed text: the parser counts bytes."""
    row = place.row - origin.row + 1
    column = place.column - origin.column - cut if row == 1 else place.column - 1
    if not 1 <= row <= len(rows):
        return row, 0
    return row, len(rows[row - 1][: max(column, 0)].encode("utf-8", "surrogatepass"))


# -- the tree ---------------------------------------------------------------------------------------------------------


def _outermost(nodes: Iterable[ast.AST], start: tuple[int, int], end: tuple[int, int]) -> Iterator[ast.AST]:
    """The nodes that lie in a stretch of the text and in no other such node, in the order of the text.

    Brackets around an expression are no part of its node, so it does not matter whether the stretch has them.
    """
    for node in nodes:
        place = tuple(getattr(node, name, None) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))
        if None not in place and start <= place[:2] and place[2:] <= end:
            yield node
        else:
            yield from _outermost(ast.iter_child_nodes(node), start, end)


def _written(value: object) -> str:
    """A tree as text: the kinds of its nodes, and what they hold; of a statement its header."""
    match value:
        case ast.Delete(targets=[ast.Tuple(elts=targets)]):  # formatters take the brackets away
            return f"Delete({_list(targets)})"
        case ast.JoinedStr(values=values):
            return f"JoinedStr({_list(_joined(values))})"
        case ast.AST():
            ignored = _IGNORED | _BODIES if isinstance(value, ast.stmt) else _IGNORED
            parts = (
                f"{name}={_written(part)}"
                for name, part in ast.iter_fields(value)
                if part is not None and part != [] and name not in ignored
            )
            return f"{type(value).__name__}({','.join(parts)})"
        case list():
            return f"[{_list(value)}]"
        case str():
            return f"{len(value)}:{value}"
        case int() if not isinstance(value, bool):
            return f"{value:x}"  # any number of digits
    return f"{type(value).__name__}:{value!r}"


def _list(values: Iterable[object]) -> str:
    return ",".join(map(_written, values))


def _joined(values: Iterable[ast.expr]) -> Iterator[object]:
    """The parts of an f-string; releases of Python differ in how they cut the text between two replacements."""
    text = ""
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            text += value.value
            continue
        if text:
            yield text
        text = ""
        yield value
    if text:
        yield text
